"""The best assignment of runs to offers: a mixed-integer program over the matrix.

Every run takes one cell: so many accelerators of one offer, and an offer may be split among runs. Runs that together
need more accelerators than an offer has, or more power than a limit allows, go one after the other. Runs of a team are
fast or slow together, so all times and costs are taken at one level of their ranges, and the probability that all
limits are met is the highest level at which they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import combinations, product
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from core.budget.equations import Interval
from core.planning.decide.matrix import Cell, Matrix
from core.planning.decide.runs import Run
from core.planning.decide.schedule import Bill, Placement, Schedule, bill, committed, schedule, times_at
from core.planning.plan_limits import Check, all_met, keeps_limit

Goal: TypeAlias = Literal["probable", "cost", "soonest"]
"""What the best assignment has: the highest probability to meet all limits, the least cost, or the earliest end."""

GOALS: tuple[Goal, ...] = get_args(Goal)

_GRID = tuple(level / 100 for level in range(1, 100))
"""Levels among which the highest is sought."""

_NODES = 10_000
"""Nodes of the longest search for one assignment, of which ten are usual."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """Every run on an offer.

    Attributes:
        placements: In the order of the runs.
    """

    matrix: Matrix
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
        """Deadline of the run that is likeliest to miss its own, budget, and power limit; those that there are."""
        level, limits = self.matrix.limits.level, self.matrix.limits
        ends = [end for _, end in times_at(self.matrix, self.placements, level)]
        every: list[Check] = []
        bounds = [_bound(self.matrix, placement.cell) for placement in self.placements]
        due = [(self._level(self._in_time(i, bound)), i, bound) for i, bound in enumerate(bounds) if bound < math.inf]
        if due:
            probability, i, bound = min(due)
            every.append(Check("deadline", bound, ends[i], keeps_limit(ends[i], bound), probability))
        if not math.isnan(limits.dollars):
            cost = self.cost_at(level)
            met = None if math.isnan(cost) else keeps_limit(cost, limits.dollars)
            chance = math.nan if met is None else self._level(lambda at: keeps_limit(self.cost_at(at), limits.dollars))
            every.append(Check("money", limits.dollars, cost, met, chance))
        every += [Check("power", most, watts, keeps_limit(watts, most), math.nan) for most, watts in self._powers()][:1]
        return tuple(every)

    def _powers(self) -> list[tuple[float, float]]:
        """Power limits, and the most that is drawn under each; that with least to spare first."""
        power = self.schedule
        bounds: list[tuple[float, float]] = []
        for offer in (None, *power.offers):
            most = offer.watts if offer else self.matrix.limits.watts
            if not math.isnan(most):
                runs = tuple(run for run in power.runs if offer is None or run.cell.offer == offer)
                bounds.append((most, replace(power, runs=runs).peak_watts))
        return sorted(bounds, key=lambda bound: -bound[1] / bound[0] if not math.isnan(bound[1]) else -math.inf)

    def _in_time(self, i: int, bound: float) -> Callable[[float], bool]:
        return lambda level: keeps_limit(times_at(self.matrix, self.placements, level)[i][1], bound)

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

_Limited: TypeAlias = Literal["deadline", "money", "power"]
_ALL: tuple[_Limited, ...] = get_args(_Limited)


def _bound(matrix: Matrix, cell: Cell) -> float:
    """Days from the start by which a run has to end on an offer: its deadline, or the offer's last day."""
    return min(matrix.due(cell.run), cell.offer.closes(matrix.start))


@dataclass(frozen=True, slots=True)
class Broken:
    """A limit that an assignment breaks: what it allows, and what the assignment has."""

    limit: Literal["deadline", "money", "power", "count", "after", "first"]
    name: str
    allowed: float
    value: float


def broken_limits(assignment: Assignment, level: float | None = None) -> tuple[Broken, ...]:
    """Return every limit that an assignment breaks, from its times and cells alone.

    Args:
        level: Of times and costs; the plan's own confidence if None.
    """
    matrix, cells = assignment.matrix, [placement.cell for placement in assignment.placements]
    level = matrix.limits.level if level is None else level
    times = times_at(matrix, assignment.placements, level)
    found: list[Broken] = []

    def least(limit: Literal["after", "first"], name: str, allowed: float, value: float) -> None:
        if value < allowed - _MOMENT:
            found.append(Broken(limit, name, allowed, value))

    def most(limit: Literal["deadline", "money", "power", "count"], name: str, allowed: float, value: float) -> None:
        if not math.isnan(allowed + value) and not keeps_limit(value, allowed):
            found.append(Broken(limit, name, allowed, value))

    for cell, (begin, end) in zip(cells, times, strict=True):
        least("first", cell.run.name, max(cell.run.first, cell.offer.opens(matrix.start)), begin)
        if cell.run.after is not None:
            least("after", cell.run.name, times[cell.run.after][1], begin)
        most("deadline", cell.run.name, _bound(matrix, cell), end)
    for at in {begin for begin, _ in times}:
        now = [cell for cell, (begin, end) in zip(cells, times, strict=True) if begin <= at + _MOMENT < end]
        most("power", "", matrix.limits.watts, sum(cell.watts for cell in now))
        for offer in dict.fromkeys(cell.offer for cell in now):
            here = [cell for cell in now if cell.offer == offer]
            most("power", offer.name, offer.watts, sum(cell.watts for cell in here))
            if not offer.or_more:
                most("count", offer.name, offer.count, sum(cell.accelerators for cell in here))
    most("money", "", matrix.limits.dollars, assignment.cost_at(level))
    return tuple(found)


_MOMENT = 1e-6
"""Days that are none."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why no assignment meets all limits.

    Attributes:
        limit: The limit that stands in the way; ``model`` where a run trains on no offer.
        allowed: What it is, in days, dollars, or watts.
        needed: The least that it would have to be. NaN where nothing is enough.
        alone: Whether ``needed`` is without any other limit, because no single one is enough to change.
    """

    limit: Literal["deadline", "money", "power", "model"]
    allowed: float
    needed: float
    run: Run | None = None
    alone: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Assigned:
    """The best assignment by a goal.

    Attributes:
        best: Which comes nearest where none meets all limits. None where a run trains on no offer.
        alternatives: By the other goals, and the next best.
        reasons: Why none meets all limits; empty if one does.
    """

    best: Assignment | None
    alternatives: tuple[Assignment, ...] = ()
    reasons: tuple[Reason, ...] = ()


def assign(matrix: Matrix, goal: Goal = "probable") -> Assigned:
    """Return the best assignment of all runs."""
    stuck = [run for run in matrix.runs if not any(cell.possible for cell in matrix.every if cell.run == run)]
    if stuck or not matrix.runs:
        return Assigned(None, reasons=tuple(Reason("model", math.nan, math.nan, run) for run in stuck))
    program = Program(matrix)
    level = matrix.limits.level
    if (cheapest := program.solve("cost", level)) is None:
        return Assigned(program.nearest(), reasons=_reasons(program, level))
    by_goal = {name: program.best(name, level, cheapest) for name in GOALS}
    best = by_goal[goal]
    others: list[Assignment | None] = [by_goal[name] for name in GOALS if name != goal]
    second = "soonest" if goal == "soonest" else "cost"
    others.append(program.solve(second, level, without=[best]))
    if not all(program.known):
        others.append(program.solve(second, level, strict=False))
    alternatives: dict[str, Assignment] = {}
    for other in others:
        if other and other.key != best.key:
            alternatives.setdefault(other.key, other)
    return Assigned(best, tuple(alternatives.values()))


def _reasons(program: Program, level: float) -> tuple[Reason, ...]:
    """The least that each limit would have to be with all others kept; where none is enough, each by itself."""
    for alone in (False, True):
        found = [reason for name in _ALL if (reason := program.needed(name, level, alone))]
        if found:
            return tuple(found)
    return ()


class Program:
    """The mixed-integer program of a matrix."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self.cells = [cell for cell in matrix.every if cell.possible]
        self.run_of = [matrix.runs.index(cell.run) for cell in self.cells]
        self.offers = [offer for offer in matrix.offers if any(cell.offer is offer for cell in self.cells)]
        self.known = [cell.cost.known for cell in self.cells]
        self.forbidden = self._forbidden(1.0)

    def _forbidden(self, power: float) -> list[tuple[int, ...]]:
        """Least sets of cells, of a run each, that cannot be under way at once.

        Args:
            power: Factor of all power limits.
        """
        takes: list[tuple[dict[int, float], float]] = []
        watts = {k: cell.watts for k, cell in enumerate(self.cells) if not math.isnan(cell.watts)}
        for offer in self.offers:
            here = {k: cell for k, cell in enumerate(self.cells) if cell.offer is offer}
            room = math.inf if offer.or_more else offer.count
            takes.append(({k: float(cell.accelerators) for k, cell in here.items()}, room))
            takes.append(({k: watts[k] for k in here if k in watts}, offer.watts * power))
        takes.append((watts, self.matrix.limits.watts * power))
        found: set[tuple[int, ...]] = set()
        for amounts, room in takes:
            if not math.isnan(room):
                found |= set(self._least_sets(amounts, room * (1 + 1e-9)))
        return sorted(found)

    def _least_sets(self, amounts: dict[int, float], room: float) -> Iterable[tuple[int, ...]]:
        if sum(sorted(amounts.values())) <= room:
            return
        by_run = {run: [k for k in amounts if self.run_of[k] == run] for run in range(len(self.matrix.runs))}
        for size in range(1, len(self.matrix.runs) + 1):
            any_left = False
            for runs in combinations(by_run, size):
                for some in product(*(by_run[run] for run in runs)):
                    total = sum(amounts[k] for k in some)
                    any_left |= total <= room
                    if total > room >= total - min(amounts[k] for k in some):
                        yield some
            if not any_left:
                return

    def best(self, goal: Goal, level: float, cheapest: Assignment) -> Assignment:
        """The best assignment that meets all limits.

        Args:
            cheapest: The cheapest one at ``level``.
        """
        if goal == "soonest":
            return self.solve(goal, level) or cheapest
        return self.most_probable(cheapest, level) if goal == "probable" and _uncertain(self.matrix) else cheapest

    def nearest(self) -> Assignment | None:
        """The assignment that is likeliest to meet all limits where none meets them at the plan's level; without the
        limits of money and power where these cannot be met at all."""
        tries: tuple[tuple[_Limited, ...], ...] = (_ALL, ("deadline", "power"), ("deadline",), ("power",), ())
        for kept in tries:
            if found := self.solve("cost", _GRID[0], kept=kept):
                return self.most_probable(found, _GRID[0], kept)
        return None

    def most_probable(self, found: Assignment, level: float, kept: Sequence[_Limited] = _ALL) -> Assignment:
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

    def has_budget(self, kept: Sequence[_Limited]) -> bool:
        """Whether a budget counts."""
        return "money" in kept and not math.isnan(self.matrix.limits.dollars)

    def needed(self, name: _Limited, level: float, alone: bool) -> Reason | None:
        """The least that a limit would have to be; None where there is none, it is kept, or nothing is enough.

        Args:
            alone: Whether no other limit counts.
        """
        kept: list[_Limited] = [] if alone else [other for other in _ALL if other != name]
        strict = name == "money" or self.has_budget(kept)  # an unknown cost meets no budget
        if name == "power":
            found = self._least_power(level, kept, strict)
        else:
            found = self.solve("soonest" if name == "deadline" else "cost", level, kept, strict=strict)
        if found is None:
            return None
        broken = [one for one in broken_limits(found, level) if one.limit == name]
        if not broken:
            return None
        worst = max(broken, key=lambda one: one.value / one.allowed)
        run = next((run for run in self.matrix.runs if name == "deadline" and run.name == worst.name), None)
        return Reason(name, worst.allowed, worst.value, run, alone)

    def _least_power(self, level: float, kept: Sequence[_Limited], strict: bool) -> Assignment | None:
        """An assignment that needs the least power, by halving the factor of all power limits."""
        known = [cell.watts for cell in self.cells if not math.isnan(cell.watts)]
        limits = [self.matrix.limits.watts, *(offer.watts for offer in self.offers)]
        least = min((watts for watts in limits if not math.isnan(watts)), default=math.nan)
        low, high = 1.0, len(self.matrix.runs) * max(known, default=math.nan) / least
        found = self.solve("cost", level, kept, strict=strict) if high > low else None
        before = self.forbidden
        while found and (high := min(high, self._power_factor(found))) / low > 1.001:
            middle = math.sqrt(low * high)
            self.forbidden = self._forbidden(middle)
            fewer = self.solve("cost", level, (*kept, "power"), strict=strict)
            low, found = (low, fewer) if fewer else (middle, found)
        self.forbidden = before
        return found

    @staticmethod
    def _power_factor(found: Assignment) -> float:
        """By how much the power limits would have to be more."""
        return max((check.value / check.limit for check in found.limits if check.id == "power"), default=math.inf)

    def solve(
        self,
        goal: Literal["cost", "soonest"],
        level: float,
        kept: Sequence[_Limited] = _ALL,
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
        if strict is None and counts and not all(self.known):
            return self.solve(goal, level, kept, without, True) or self.solve(goal, level, kept, without, False)
        return _solution(self, goal, level, kept, without, bool(strict))


def _uncertain(matrix: Matrix) -> bool:
    """Whether a limit depends on how fast runs are."""
    limits = (matrix.limits.days, matrix.limits.dollars, *(run.deadline for run in matrix.runs))
    closing = any(offer.last for offer in matrix.offers)
    return closing or not all(map(math.isnan, limits))


def _solution(
    program: Program,
    goal: Literal["cost", "soonest"],
    level: float,
    kept: Sequence[_Limited],
    without: Sequence[Assignment],
    strict: bool,
) -> Assignment | None:
    matrix, cells = program.matrix, program.cells
    runs, count = len(matrix.runs), len(cells)
    days = np.array([cell.calendar_days.quantile(level) for cell in cells])
    opens = np.array([max(cell.run.first, cell.offer.opens(matrix.start)) for cell in cells])
    bound = np.array([_bound(matrix, cell) for cell in cells])
    reserved = [offer for offer in program.offers if offer.contract == "reserved"]
    fixed = [_amount(committed(offer, matrix.start), level) for offer in reserved]
    cost = np.array([0.0 if cell.is_reserved else _amount(cell.cost, level, cell.energy) for cell in cells])
    horizon = float(
        opens.max() + sum(max(days[k] for k in range(count) if program.run_of[k] == i) for i in range(runs))
    )
    pairs = [(i, j) for i in range(runs) for j in range(runs) if i != j]
    before = {pair: count + at for at, pair in enumerate(pairs)}
    starts = count + len(pairs)
    taken, end = starts + runs, starts + runs + len(reserved)
    width = end + 1
    rows: list[tuple[dict[int, float], float]] = []  # coefficients and the most that their sum may be

    def duration(i: int, factor: float = 1.0) -> dict[int, float]:
        return {k: factor * float(days[k]) for k in range(count) if program.run_of[k] == i}

    for i in range(runs):
        own = [k for k in range(count) if program.run_of[k] == i]
        rows += [(dict.fromkeys(own, sign), sign) for sign in (1.0, -1.0)]
        rows.append(({**{k: float(opens[k]) for k in own}, starts + i: -1.0}, 0.0))
        rows.append(({**duration(i), starts + i: 1.0, end: -1.0}, 0.0))
        if "deadline" in kept:
            late = {k: float(days[k] + horizon - min(bound[k], horizon)) for k in own}
            rows.append(({**late, starts + i: 1.0}, horizon))
        if (j := matrix.runs[i].after) is not None:
            rows.append(({**duration(j), starts + j: 1.0, starts + i: -1.0}, 0.0))
    for (i, j), at in before.items():
        rows.append(({**duration(i), starts + i: 1.0, starts + j: -1.0, at: horizon}, horizon))
        if i < j:
            rows.append(({at: 1.0, before[j, i]: 1.0}, 1.0))
    power_free = (
        program.forbidden if "power" in kept else [some for some in program.forbidden if _crowded(program, some)]
    )
    for some in power_free:
        orders = {before[program.run_of[k], program.run_of[m]]: -1.0 for k in some for m in some if k != m}
        rows.append(({**dict.fromkeys(some, 1.0), **orders}, len(some) - 1.0))
    for k, cell in enumerate(cells):
        if cell.offer in reserved:
            rows.append(({k: 1.0, taken + reserved.index(cell.offer): -1.0}, 0.0))
    total = {k: float(cost[k]) for k in range(count)} | {taken + at: amount for at, amount in enumerate(fixed)}
    if "money" in kept and not math.isnan(matrix.limits.dollars):
        rows.append((total, matrix.limits.dollars * (1 + 1e-9)))
    for other in without:
        chosen = {k: 1.0 for k, cell in enumerate(cells) if any(cell is one.cell for one in other.placements)}
        rows.append((chosen, runs - 1.0))
    dollars = max(1.0, float(cost.max()) * runs + sum(fixed))
    weights = np.zeros(width)
    for at, amount in total.items():
        weights[at] = amount / dollars * (1.0 if goal == "cost" else _LESS)
    weights[end] = (1.0 if goal == "soonest" else _LESS) / max(1.0, horizon)
    matrix_rows = np.zeros((len(rows), width))
    for at, (row, _) in enumerate(rows):
        matrix_rows[at, list(row)] = list(row.values())
    upper = np.ones(width)
    upper[starts : starts + runs], upper[end] = horizon, horizon
    if strict:
        upper[[k for k in range(count) if not program.known[k]]] = 0.0
    whole = np.ones(width)
    whole[starts : starts + runs], whole[end] = 0.0, 0.0
    optimize: Any = import_module("scipy.optimize")
    result = optimize.milp(
        weights,
        integrality=whole,
        bounds=optimize.Bounds(np.zeros(width), upper),
        constraints=optimize.LinearConstraint(matrix_rows, -np.inf, np.array([most for _, most in rows])),
        options={"node_limit": _NODES},
    )
    if result.x is None:
        return None
    chosen = sorted((k for k in range(count) if result.x[k] > 0.5), key=lambda k: program.run_of[k])
    return Assignment(
        matrix, _placements(program, chosen, power_free, result.x[starts : starts + runs].tolist(), days.tolist())
    )


_LESS = 1e-4
"""Weight of what decides between equal assignments."""


def _crowded(program: Program, some: Sequence[int]) -> bool:
    """Whether cells need more accelerators than their offer has."""
    offers = {id(program.cells[k].offer): program.cells[k].offer for k in some}
    offer = next(iter(offers.values()))
    return len(offers) == 1 and not offer.or_more and sum(program.cells[k].accelerators for k in some) > offer.count


def _placements(
    program: Program,
    chosen: Sequence[int],
    forbidden: Sequence[tuple[int, ...]],
    starts: Sequence[float],
    days: Sequence[float],
) -> tuple[Placement, ...]:
    """The chosen cells, each after the runs that the solution ends before it starts and that cannot go with it."""
    after: list[set[int]] = [{run.after} if run.after is not None else set() for run in program.matrix.runs]
    for some in forbidden:
        if all(k in chosen for k in some):
            pairs = [(starts[j] - starts[i] - days[k], i, j) for k in some for m in some if k != m
                     for i, j in [(program.run_of[k], program.run_of[m])]]  # fmt: skip
            _, i, j = max(pairs)
            after[j].add(i)
    return tuple(Placement(program.cells[k], tuple(sorted(after[i]))) for i, k in enumerate(chosen))


def _amount(cost: Interval, level: float, least: Interval | None = None) -> float:
    """Dollars at a level; of an unknown cost the part that is known."""
    known = [amount for amount in (cost, least) if amount and amount.known]
    return known[0].quantile(level) if known else 0.0
