"""A plan with the layout that it names, timed and launched: what Parallel plan shows and every file of it says."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.planning.plan import Plan
from core.planning.plan_search import SearchRequest, evaluate_own_layout, launch_settings, search_request
from core.planning.search_around import days_for
from core.search.launch import Launch
from core.search.result import LayoutResult


@dataclass(frozen=True, eq=False, slots=True)
class AppliedLayout:
    """request: what the plan asks of a search. result: what its layout comes to."""

    plan: Plan
    request: SearchRequest
    result: LayoutResult

    def days(self, seconds: float) -> float:
        """Days of steps alone for all tokens, where one takes so many seconds."""
        return days_for(self.plan.tokens, self.request, seconds)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The settings of three systems."""
        return launch_settings(self.request, self.result)

    @property
    def results(self) -> dict[str, float]:
        """What it comes to, by name and in base units; unknown ones are missing."""
        result = self.result
        values = {
            "step_seconds": result.seconds,
            "step_seconds_low": result.low,
            "step_seconds_high": result.high,
            "step_mfu": result.mfu,
            "step_days": self.days(result.seconds),
            "step_memory_bytes": float(result.memory.total),
            "step_usable_bytes": result.usable,
        }
        return {name: float(value) for name, value in values.items() if math.isfinite(value)}


def applied_layout(plan: Plan) -> AppliedLayout:
    """The layout of ``plan`` as it is timed. Raises `LayoutError` where it cannot be, `BudgetError` where it cannot be
    asked about."""
    request = search_request(plan)
    return AppliedLayout(plan, request, evaluate_own_layout(request, plan.layout))
