"""A plan with its layout, timed and launched: what Parallel plan shows and every file of it says."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from core.budget.equations import days_of_steps
from core.budget.errors import BudgetError
from core.planning.estimate import PlanEstimate, estimate
from core.planning.memory_estimate import memory_estimate, resolved_plan
from core.planning.plan import Plan, whole_accelerators
from core.planning.plan_search import evaluate_layout
from core.planning.resolved_layout import constraints_of, estimable_request, plan_layout, search_request
from core.planning.trl import trl
from core.search.launch import Launch, launches
from core.search.request import SearchRequest
from core.search.result import LayoutResult


@dataclass(frozen=True, eq=False, slots=True)
class AppliedLayout:
    """request: what the plan asks of a search, on the accelerators and with the sequences a step that its layout has.
    result: what its layout comes to, its MFU that of all accelerators."""

    plan: Plan
    answer: PlanEstimate
    request: SearchRequest
    result: LayoutResult

    @property
    def idle(self) -> int:
        """Accelerators that have nothing to do."""
        return whole_accelerators(self.plan.accelerators) - self.request.cluster.count

    def days(self, seconds: float) -> float:
        """Days of steps alone for all tokens, where one takes so many seconds."""
        return days_of_steps(self.plan.tokens, seconds, self.result.tokens, 1)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The lines that run it: of programs that pre-train, or of TRL where a part of the model is trained."""
        if not self.plan.trained.everything:
            return (trl(memory_estimate(self.plan)),)
        return launches(self.request, self.result.layout)

    @property
    def results(self) -> dict[str, float]:
        """What it comes to, by name and in base units; unknown ones are missing."""
        result = self.result
        values = {
            "step_seconds": result.seconds,
            "step_seconds_low": result.low,
            "step_seconds_high": result.high,
            "step_mfu": self.request.by_6n(result.mfu),
            "step_days": self.days(result.seconds),
            "step_memory_bytes": float(result.memory.total),
            "step_usable_bytes": result.usable,
        }
        return {name: float(value) for name, value in values.items() if math.isfinite(value)}


@lru_cache(maxsize=64)
def applied_layout(plan: Plan) -> AppliedLayout:
    """The layout of ``plan`` as it is timed. Raises `LayoutError` where it cannot be, `BudgetError` where it cannot be
    asked about.

    Of a model that is only counted, whose days do not follow from steps, it is that of the layers that stand in for it.
    """
    a = estimate(plan)
    whole = replace(resolved_plan(plan, a.stored_parameters, a.middle.accelerators), tokens=a.middle.tokens)
    request = estimable_request(whole)
    if request is None:
        search_request(whole)  # says what is unknown
        raise BudgetError("gpu", f"How long a step takes on {plan.accelerator} is not known.")
    layout = plan_layout(whole)
    batch = int(layout.data * layout.micro_batch * layout.micro_batches)
    request = replace(request, batch=batch, constraints=constraints_of(plan)).on(int(layout.accelerators))
    result = evaluate_layout(request, layout)
    share = int(layout.accelerators) / whole.accelerators
    return AppliedLayout(whole, a, request, replace(result, mfu=result.mfu * share))
