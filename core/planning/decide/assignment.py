"""The best assignment of runs to offers: a mixed-integer program over the matrix.

Every run takes one cell: so many accelerators of one offer, and an offer may be split among runs. Runs that together
need more accelerators than an offer has, or more power than a limit allows, go one after the other. Runs of a team are
fast or slow together, so all times and costs are taken at one level of their ranges, and the probability that all
limits are met is the highest level at which they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from core.budget.equations import Interval
from core.planning.decide.matrix import OfferMatrix
from core.planning.decide.program import LIMITED, MOMENT, Limited, best_placements, end_by
from core.planning.decide.runs import Run
from core.planning.decide.schedule import Bill, Placement, Schedule, bill, committed, schedule, times_at
from core.planning.plan_limits import Check, all_met, keeps_limit

Goal: TypeAlias = Literal["probable", "cost", "soonest"]
"""What the best assignment has: the highest probability to meet all limits, the least cost, or the earliest end."""

GOALS: tuple[Goal, ...] = get_args(Goal)

_GRID = tuple(level / 100 for level in range(1, 100))
"""Levels among which the highest is sought."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """Every run on an offer.

    Attributes:
        placements: In the order of the runs.
    """

    matrix: OfferMatrix
    placements: tuple[Placement, ...]

    @cached_property
    def schedule(self) -> Schedule:
        """When the runs start and end."""
        return schedule(self.matrix, self.placements)

    @cached_property
    def bill(self) -> Bill:
        """What they cost."""
        return bill(self.schedule)

    @property
    def ends(self) -> Interval:
        """When the last run ends, in days from the start."""
        return self.schedule.ends

    @property
    def cost(self) -> Interval:
        """Dollars of all runs. All NaN if unknown."""
        return self.bill.total

    def cost_at(self, level: float) -> float:
        """Return dollars at a level of all ranges. NaN if unknown."""
        return sum(line.quantile(level) if line.known else math.nan for line in self._amounts)

    @cached_property
    def _amounts(self) -> list[Interval]:
        cells = [placement.cell for placement in self.placements]
        reserved = {cell.offer: committed(cell.offer, self.matrix.start) for cell in cells if cell.is_reserved}
        return [*reserved.values(), *(cell.cost for cell in cells if not cell.is_reserved)]

    @cached_property
    def limits(self) -> tuple[Check, ...]:
        """The deadline that comes nearest to be missed, the budget, and the power limit; those that there are."""
        every: list[Check] = []
        now = measures(self, self.matrix.limits.level)
        for name in LIMITED:
            if here := [one for one in now if one.limit == name]:
                worst = max(here, key=lambda one: math.inf if math.isnan(one.value) else one.value / one.allowed)
                met = None if math.isnan(worst.value) else worst.kept
                sure = met is None or name == "power"
                chance = math.nan if sure else self._level(lambda level, name=name: self._keeps(name, level))
                every.append(Check(name, worst.allowed, worst.value, met, chance))
        return tuple(every)

    def _keeps(self, name: Limited, level: float) -> bool:
        return all(one.kept for one in measures(self, level) if one.limit == name)

    @staticmethod
    def _level(holds: Callable[[float], bool]) -> float:
        """The highest level at which something holds that holds at all lower ones."""
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low if low > 0.5**_HALVINGS else 0.0

    @property
    def met(self) -> bool | None:
        """Whether it meets all limits; None where one is unknown and none is missed."""
        return all_met(self.limits)

    @property
    def probability(self) -> float:
        """That all limits are met: the least of theirs. NaN where none is uncertain, or one is unknown."""
        if any(check.met is None for check in self.limits):
            return math.nan
        certain = [0.0 for check in self.limits if math.isnan(check.probability) and check.met is False]
        every = [check.probability for check in self.limits if not math.isnan(check.probability)]
        return min([*certain, *every], default=math.nan)

    @property
    def key(self) -> str:
        """Offer and accelerators of every run, ``0@1x256,1@0x128``."""
        cells = [placement.cell for placement in self.placements]
        return ",".join(f"{cell.run.row}@{cell.offer.row}x{cell.accelerators}" for cell in cells)


_HALVINGS = 20


@dataclass(frozen=True, slots=True)
class Measure:
    """What a limit allows, and what an assignment has; of ``after`` and ``first`` the least day that it may have."""

    limit: Literal["deadline", "money", "power", "count", "after", "first"]
    name: str
    allowed: float
    value: float

    @property
    def kept(self) -> bool:
        """Whether the limit is kept, or that is unknown."""
        if self.limit in ("after", "first"):
            return self.value >= self.allowed - MOMENT
        return math.isnan(self.value) or keeps_limit(self.value, self.allowed)


def measures(assignment: Assignment, level: float) -> list[Measure]:
    """Return every limit of an assignment with what it has at a level of all ranges, from its times and cells alone."""
    matrix, cells = assignment.matrix, [placement.cell for placement in assignment.placements]
    times = times_at(matrix, assignment.placements, level)
    found = [Measure("money", "", matrix.limits.dollars, assignment.cost_at(level))]
    for cell, (begin, end) in zip(cells, times, strict=True):
        name, after = cell.run.name, cell.run.after
        found.append(Measure("first", name, max(cell.run.first, cell.offer.opens(matrix.start)), begin))
        found += [] if after is None else [Measure("after", name, times[after][1], begin)]
        found.append(Measure("deadline", name, end_by(matrix, cell), end))
    for at in {begin for begin, _ in times}:
        now = [cell for cell, (begin, end) in zip(cells, times, strict=True) if begin <= at + MOMENT < end]
        found.append(Measure("power", "", matrix.limits.watts, sum(cell.watts for cell in now)))
        for offer in dict.fromkeys(cell.offer for cell in now):
            here = [cell for cell in now if cell.offer == offer]
            found.append(Measure("power", offer.name, offer.watts, sum(cell.watts for cell in here)))
            most = math.inf if offer.or_more else offer.count
            found.append(Measure("count", offer.name, most, sum(cell.accelerators for cell in here)))
    return [one for one in found if math.isfinite(one.allowed)]


def broken_limits(assignment: Assignment, level: float | None = None) -> tuple[Measure, ...]:
    """Return every limit that an assignment breaks.

    Args:
        level: Of times and costs; the plan's own confidence if None.
    """
    level = assignment.matrix.limits.level if level is None else level
    return tuple(one for one in measures(assignment, level) if not one.kept)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why no assignment meets all limits.

    Attributes:
        limit: The limit that stands in the way; ``model`` where a run trains on no offer.
        allowed: What it is, in days, dollars, or watts.
        needed: The least that it would have to be. NaN where nothing is enough.
        assignment: The one with ``needed``. None where a run trains on no offer.
        alone: Whether ``needed`` is without any other limit, because no single one is enough to change.
    """

    limit: Literal["deadline", "money", "power", "model"]
    allowed: float
    needed: float
    assignment: Assignment | None = None
    run: Run | None = None
    alone: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Assigned:
    """The best assignment by a goal.

    Attributes:
        best: Which comes nearest where none meets all limits. None where a run trains on no offer.
        alternatives: By the other goals, and the next best; where none meets all limits, those of the reasons.
        reasons: Why none meets all limits; empty if one does.
    """

    best: Assignment | None
    alternatives: tuple[Assignment, ...] = ()
    reasons: tuple[Reason, ...] = ()


def assign(matrix: OfferMatrix, goal: Goal = "probable") -> Assigned:
    """Return the best assignment of all runs."""
    stuck = [run for run in matrix.runs if not any(cell.possible for cell in matrix.every if cell.run == run)]
    if stuck or not matrix.runs:
        return Assigned(None, reasons=tuple(Reason("model", math.nan, math.nan, run=run) for run in stuck))
    program = AssignmentProgram(matrix)
    level = matrix.limits.level
    if (cheapest := program.solve("cost", level)) is None:
        nearest, reasons = program.nearest(), _reasons(program, level)
        return Assigned(nearest, _distinct([reason.assignment for reason in reasons], nearest), reasons)
    by_goal = {name: program.best(name, level, cheapest) for name in GOALS}
    best = by_goal[goal]
    others: list[Assignment | None] = [by_goal[name] for name in GOALS if name != goal]
    second = "soonest" if goal == "soonest" else "cost"
    others.append(program.solve(second, level, without=[best]))
    if len(program.known) < len(program.cells):
        others.append(program.solve(second, level, strict=False))
    return Assigned(best, _distinct(others, best))


def _distinct(others: Sequence[Assignment | None], best: Assignment | None) -> tuple[Assignment, ...]:
    """Return each assignment once, without the best."""
    return tuple({other.key: other for other in others if other and not (best and other.key == best.key)}.values())


def _reasons(program: AssignmentProgram, level: float) -> tuple[Reason, ...]:
    """The least that each limit would have to be with all others kept; where none is enough, each by itself."""
    for alone in (False, True):
        found = [reason for name in LIMITED if (reason := program.needed(name, level, alone))]
        if found:
            return tuple(found)
    return ()


class AssignmentProgram:
    """The mixed-integer program of a matrix."""

    def __init__(self, matrix: OfferMatrix) -> None:
        self.matrix = matrix
        self.cells = [cell for cell in matrix.every if cell.possible]
        self.known = [cell for cell in self.cells if cell.cost.known]

    def best(self, goal: Goal, level: float, cheapest: Assignment) -> Assignment:
        """The best assignment that meets all limits.

        Args:
            cheapest: The cheapest one at ``level``.
        """
        if goal == "soonest":
            return self.solve(goal, level) or cheapest
        uncertain = any(not math.isnan(check.probability) for check in cheapest.limits)
        return self.most_probable(cheapest, level) if goal == "probable" and uncertain else cheapest

    def nearest(self) -> Assignment | None:
        """The assignment that is likeliest to meet all limits where none meets them at the plan's level; without the
        limits of money and power where these cannot be met at all."""
        tries: tuple[tuple[Limited, ...], ...] = (LIMITED, ("deadline", "power"), ("deadline",), ("power",), ())
        for kept in tries:
            if found := self.solve("cost", _GRID[0], kept=kept):
                return self.most_probable(found, _GRID[0], kept)
        return None

    def most_probable(self, found: Assignment, level: float, kept: Sequence[Limited] = LIMITED) -> Assignment:
        """The cheapest assignment at the highest level of `_GRID` at which limits are met.

        Args:
            found: One that meets them at ``level``.
        """
        low, high = max(i for i, at in enumerate(_GRID) if at <= level + 1e-9), len(_GRID)
        known = all(placement.cell.cost.known for placement in found.placements)
        strict = True if known and self.has_budget(kept) else None
        while high - low > 1:
            middle = (low + high) // 2
            more = self.solve("cost", _GRID[middle], kept=kept, strict=strict)
            low, high, found = (middle, high, more) if more else (low, middle, found)
        return found

    def has_budget(self, kept: Sequence[Limited]) -> bool:
        """Whether a budget counts."""
        return "money" in kept and not math.isnan(self.matrix.limits.dollars)

    def needed(self, name: Limited, level: float, alone: bool) -> Reason | None:
        """The least that a limit would have to be; None where there is none, it is kept, or nothing is enough.

        Args:
            alone: Whether no other limit counts.
        """
        kept: list[Limited] = [] if alone else [other for other in LIMITED if other != name]
        strict = name == "money" or self.has_budget(kept)  # an unknown cost meets no budget
        goal = "soonest" if name == "deadline" else "power" if name == "power" else "cost"
        found = self.solve(goal, level, kept, strict=strict)
        if found is None:
            return None
        broken = [one for one in broken_limits(found, level) if one.limit == name]
        if not broken:
            return None
        worst = max(broken, key=lambda one: one.value / one.allowed)
        run = next((run for run in self.matrix.runs if name == "deadline" and run.name == worst.name), None)
        return Reason(name, worst.allowed, worst.value, found, run, alone)

    def solve(
        self,
        goal: Literal["cost", "soonest", "power"],
        level: float,
        kept: Sequence[Limited] = LIMITED,
        without: Sequence[Assignment] = (),
        strict: bool | None = None,
    ) -> Assignment | None:
        """The assignment with the least cost, or the earliest end, at a level of all ranges; of equal ones the earlier,
        or the cheaper.

        Args:
            kept: Limits that count, beside the number of accelerators.
            without: Assignments that are left out.
            strict: Whether cells of unknown cost are left out; None where there is an assignment without them, and
                cost counts.
        """
        counts = goal == "cost" or self.has_budget(kept)
        if strict is None and counts and len(self.known) < len(self.cells):
            return self.solve(goal, level, kept, without, True) or self.solve(goal, level, kept, without, False)
        cells = self.known if strict else self.cells
        others = [[placement.cell for placement in other.placements] for other in without]
        found = best_placements(self.matrix, cells, goal, level, kept, others)
        return Assignment(self.matrix, found) if found else None
