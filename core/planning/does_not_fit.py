"""The error of a plan that does not fit, with the fewest accelerators that hold it."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

from core.budget.errors import BudgetError
from core.limits import cached, limit
from core.planning.memory_estimate import memory_estimate
from core.planning.plan import Plan
from core.planning.resolved_layout import tried_layouts
from core.planning.solving import allocations, first_place
from core.training.layout import LayoutError


class DoesNotFitError(BudgetError):
    """That no layout of a plan's accelerators holds it; how many it needs is only searched for once it is told."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("count", f"It does not fit on {int(plan.accelerators):,} × {plan.accelerator}")
        self.plan = plan

    def __str__(self) -> str:
        return f"{self.args[0]}{f': it needs {self.needed:,}' if self.needed else '; take more of them, or others'}."

    @property
    def needed(self) -> int | None:
        """How many accelerators the plan needs; None where no number of them is enough."""
        return fewest_that_hold(self.plan)


@cached("results_kept")
def fewest_that_hold(plan: Plan) -> int | None:
    """The fewest accelerators, in whole units, on which the plan fits and leaves as much memory free as it keeps; None
    where no number of them is enough, or where too many layouts would be tried."""
    if tried_layouts((plan,)) > limit("repeated_search"):
        return None

    def lacking(at: int) -> float:
        with suppress(LayoutError):
            h = memory_estimate(replace(plan, accelerators=size(at)))
            if h.host_holds and not h.lacks:
                return 0.0
        return math.inf

    size, place = allocations(plan)
    found = first_place(lacking, 1, limit("accelerators"), size, place)
    return None if found is None else int(size(found))
