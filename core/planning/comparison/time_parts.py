"""What the days of plans go to, part by part, and what keeps one from being faster by as much as its accelerators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from core.budget.errors import BudgetError
from core.planning.applied_layout import applied_layout
from core.planning.comparison.comparison import ComparedPlan
from core.planning.evaluation import Answer
from core.search.result import LayoutResult
from core.training.layout import Layout, LayoutError

PARTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "computing": ("matmul", "attention"),
        "memory": ("elementwise", "optimizer"),
        "recomputing": ("recompute",),
        "communication": ("tensor", "context", "expert", "transfer", "data"),
        "waiting": ("bubble", "fixed", "jitter"),
    }
)
"""Parts of a run's steps → the parts of a step that are in them."""

BESIDE = "beside"
"""The part that is not in the steps of the plan's layout: slower steps, checkpoints, failures, evaluation."""


@dataclass(frozen=True, slots=True)
class TimeParts:
    """Days of a whole run by part: those of `PARTS`, and `BESIDE`; together the run's days.

    layout: the plan's, of whose steps they are. rate: FLOP/s of the cluster at its dense peak for each FLOP
    of the run, in 1/s: what a run would be as fast as if all of it kept up with the accelerators.
    """

    layout: Layout
    days: Mapping[str, float]
    rate: float

    @property
    def total(self) -> float:
        """Days of the whole run."""
        return sum(self.days.values())


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Two runs held against each other. peak: times that the second has of the first's dense peak for its work.
    faster: times that it is as fast. over: by part, days more than the first's divided by ``peak``."""

    peak: float
    faster: float
    over: Mapping[str, float]


def time_parts(plan: ComparedPlan) -> TimeParts | str:
    """What the days of a plan go to, or why nobody knows."""
    if plan.answer is None:
        return plan.problem
    try:
        at = applied_layout(plan.answer.plan)
    except (BudgetError, LayoutError) as problem:
        return str(problem)
    if at.result.spare < 0 and not at.plan.own_layout:
        return "No layout divides its accelerators and fits."
    return _parts(plan.answer, at.result)


def _parts(a: Answer, best: LayoutResult) -> TimeParts:
    """The days of the steps alone in the shares that a step of the plan's layout has, and the rest of the run."""
    m = a.middle
    steps = m.steps_days
    step = {name: sum(float(getattr(best.step, part)) for part in parts) for name, parts in PARTS.items()}
    days = {name: steps * seconds / best.seconds for name, seconds in step.items()}
    return TimeParts(best.layout, days | {BESIDE: m.days - steps}, m.accelerators * a.peak / m.flop)


def shortfall(base: TimeParts, other: TimeParts) -> Shortfall:
    """Where ``other`` is less fast than its accelerators let expect of ``base``; parts below 0 are faster still."""
    peak = other.rate / base.rate
    over = {name: other.days[name] - base.days[name] / peak for name in other.days}
    return Shortfall(peak, base.total / other.total, over)


def known_parts(parts: Sequence[TimeParts | str]) -> list[int]:
    """Places of the plans whose parts are known."""
    return [i for i, part in enumerate(parts) if isinstance(part, TimeParts) and math.isfinite(part.total)]
