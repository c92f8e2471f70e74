"""What moves the answer: the same plan asked again with one input at each end of its range.

Every end is an answer of its own, so that what stands here is what one gets by typing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from core.budget.errors import BudgetError
from core.budget.interval import Interval
from core.limits import cached
from core.planning.estimate import PlanEstimate, estimate
from core.planning.plan import TYPED, Plan

Input: TypeAlias = Literal["tokens", "parameters", "accelerators", "MFU", "price"]


@dataclass(frozen=True, slots=True)
class Swing:
    """One input at its two ends with everything else as planned. days, dollars: at ``low`` and at ``high``."""

    input: Input
    low: float
    high: float
    days: tuple[float, float]
    dollars: tuple[float, float]

    def moved(self, *, dollars: bool) -> float:
        """How far days, or dollars, move, without sign."""
        low, high = self.dollars if dollars else self.days
        return abs(high - low)


def plan_as_answered(a: PlanEstimate) -> Plan:
    """The plan with what was found in its place, so that its time can be asked for."""
    m = a.middle
    filled = replace(a.plan, find="time", tokens=m.tokens, accelerators=m.accelerators)
    if a.find == "parameters":
        filled = replace(filled, model=TYPED, parameters=m.parameters)
    return replace(filled, mfu=Interval.point(m.mfu), mfu_kind="all hours") if a.find == "MFU" else filled


@cached("results_kept")
def swings(plan: Plan, share: float) -> tuple[Swing, ...]:
    """Days and dollars of a plan whose time is asked for, as each input runs over its range: the MFU over that of its
    answer and of published runs, the price over its own, the rest by ``share`` down and up.

    Another size of a dense model is one of unknown layers; a mixture has none. An end without an answer is left out.
    """
    here = estimate(plan)
    ends: dict[Input, tuple[tuple[float, Plan], tuple[float, Plan]]] = {}

    def pair(low: float, high: float, at: Mapping[float, Plan]) -> tuple[tuple[float, Plan], tuple[float, Plan]]:
        return (low, at[low]), (high, at[high])

    for name, value in (("tokens", plan.tokens), ("accelerators", plan.accelerators)):
        low, high = max(1.0, value * (1 - share)), value * (1 + share)
        ends[name] = pair(low, high, {end: replace(plan, **{name: end}) for end in (low, high)})  # type: ignore[index]
    if not (here.model and here.model.mixture):
        size = here.middle.parameters
        low, high = max(1.0, size * (1 - share)), size * (1 + share)
        ends["parameters"] = pair(low, high, {end: replace(plan, model=TYPED, parameters=end) for end in (low, high)})
    used, seen = here.range_of("mfu"), here.expected
    low, high = min(used.low, seen.low), max(used.high, seen.high)
    all_hours = {end: replace(plan, mfu=Interval.point(end), mfu_kind="all hours") for end in (low, high)}
    ends["MFU"] = pair(low, high, all_hours)  # type: ignore[arg-type]
    low, high = plan.price_range
    if low < high:
        ends["price"] = pair(low, high, {end: replace(plan, prices=(end, end)) for end in (low, high)})
    result: list[Swing] = []
    for name, (first, last) in ends.items():
        try:
            answers = [estimate(end) for _, end in (first, last)]
        except BudgetError:
            continue
        days = (answers[0].middle.days, answers[1].middle.days)
        result.append(Swing(name, first[0], last[0], days, (answers[0].middle.dollars, answers[1].middle.dollars)))
    return tuple(sorted(result, key=lambda swing: -swing.moved(dollars=False)))
