"""Which pools of accelerators run a calendar within its limits at the least cost.

Every run takes all of so many accelerators, on one pool: nothing here mixes accelerators, and runs go one after the
other. Accelerators come as a budget finds them, in whole nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

from core.budget.equations import BudgetError, Interval
from core.fields import ParsedForm
from core.hardware.accelerators import accelerators
from core.limits import cached, limit
from core.planning.calendar.form import MOST, RUN_FIELDS, CalendarRequest, calendar_request
from core.planning.calendar.pools import OWN_CLUSTER, Pool, plan_on
from core.planning.calendar.schedule import Fleet, Run, Schedule, schedule
from core.planning.cost.bill import UNKNOWN, Prices, peak_of, total_of
from core.planning.cost.form import CALENDAR_FORM, prices_of
from core.planning.cost.pool_bill import pool_cost, pool_costs
from core.planning.form.plan_form import plan_as_given
from core.planning.plan import CERTAINTIES, Plan
from core.planning.plan_limits import SURE, Check, all_checks, all_met, check_of, keeps_limit
from core.planning.solving import allocation_unit


def calendar_checks(s: Schedule, dollars: Interval) -> tuple[Check, ...]:
    """Every limit of the plan that the runs share, and the memory of the run that has least to spare.

    dollars: what the calendar costs. Its own deadline stands in for the plan's, whose part of a day counts.
    """
    return (*shared_checks(s, dollars), *memory_checks(s))


def shared_checks(s: Schedule, dollars: Interval) -> tuple[Check, ...]:
    """The same without memory, for which layouts are searched."""
    limits = s.runs[0].answer.plan.limits
    every = (
        check_of("deadline", s.deadline, s.ends, limits.level),
        check_of("money", limits.dollars, dollars, limits.level),
        check_of("power", limits.watts, Interval.point(peak_of(s)), limits.level),
    )
    return tuple(check for check in every if not math.isnan(check.limit))


def memory_checks(s: Schedule) -> tuple[Check, ...]:
    """The memory of the run that has least to spare, and of its hosts where that is limited; unknown where a run has no
    layout."""
    every = sorted((check for run in s.runs for check in all_checks(run.answer)), key=_tightest)
    tightest = (next((check for check in every if check.id == name), None) for name in ("host", "memory"))
    return tuple(check for check in tightest if check)


def _tightest(check: Check) -> tuple[bool, bool, float]:
    """What is unknown comes first, then what is too much, then what leaves least."""
    return check.met is not None, check.met is not False, -check.over


WEEK = 7
"""Days of a later deadline that is tried too."""

_SURE, _SURER = CERTAINTIES[SURE], 0.95
"""What most would call sure, and what is asked of a plan that has to be so sure."""

_NOTHING = Interval.point(0.0)


@dataclass(frozen=True, slots=True)
class PoolChoice:
    """The runs on so many accelerators of a pool. dollars: of them alone, as the pool is held; unknown where its price
    is. limits: all but memory, the deadline that of the calendar. problem: why it cannot be; the rest is empty then."""

    pool: Pool
    accelerators: int
    schedule: Schedule | None = None
    dollars: Interval = UNKNOWN
    limits: tuple[Check, ...] = ()
    problem: str = ""

    @property
    def days(self) -> float:
        """From the start to its end, in the middle; endless where it cannot be."""
        return self.schedule.ends.mid if self.schedule else math.inf

    @property
    def hourly(self) -> float:
        """Dollars of all that it costs for each accelerator-hour that its runs take; NaN where unknown."""
        hours = sum(run.answer.middle.hours for run in self.schedule.runs) if self.schedule else math.nan
        return self.dollars.mid / hours

    def in_time(self, level: float, later: int = 0) -> bool:
        """Whether a share of such runs ends by the deadline, or so many days later, and the pool is open so long."""
        s = self.schedule
        if s is None or s.due is None or s.days_beyond(s.runs[0], s.ends.mid):
            return False
        within = next(check.limit for check in self.limits if check.id == "deadline")
        return keeps_limit(s.ends.quantile(level), within + later)

    def keeps(self, name: str) -> bool:
        """Whether it can be, and does not miss the limit of this name."""
        return self.schedule is not None and all(check.met is not False for check in self.limits if check.id == name)

    def misses(self, name: str) -> bool:
        """Whether it can be, and misses the limit of this name."""
        return self.schedule is not None and not self.keeps(name)

    @property
    def checks(self) -> tuple[Check, ...]:
        """Every limit, memory too, for which layouts are searched."""
        return (*self.limits, *memory_checks(self.schedule)) if self.schedule else ()

    @property
    def not_met(self) -> tuple[Check, ...]:
        """The limits that it misses, and those of which that is unknown, memory too."""
        return tuple(check for check in self.checks if not check.met)

    @property
    def meets(self) -> bool | None:
        """Whether it can be, keeps every limit, and ends before its pool does; None where a limit is unknown and none
        is missed."""
        s = self.schedule
        return s is not None and not s.days_beyond(s.runs[0], s.ends.mid) and all_met(self.not_met)


@dataclass(frozen=True, slots=True)
class PoolLine:
    """A pool over how many of it the runs take. choices: on more and more nodes, no more than there are to have.

    in_time: by the share of such runs that has to end by the deadline, the fewest of which it does; later: a week after
    it, at the plan's own share. None where no number does; more than the pool has may be. affordable, powered: the most
    that keep money and power; endless where any number does, NaN where that is unknown or there is no such limit.
    best: the fewest that meet every limit, memory too; None where none is known to. idle: dollars of what else is owned
    or reserved, and works for none, until the `nearest` ends; not in its limit of money.
    """

    pool: Pool
    choices: tuple[PoolChoice, ...]
    in_time: Mapping[float, PoolChoice | None]
    later: PoolChoice | None
    affordable: float
    powered: float
    best: PoolChoice | None
    idle: Interval = _NOTHING

    @property
    def nearest(self) -> PoolChoice:
        """`best`, or else what misses the fewest limits, and knows the most: of those the fewest in time, or the
        soonest."""

        def far(choice: PoolChoice) -> tuple[bool, int, int, float, int]:
            missed = sum(check.met is False for check in choice.limits)
            unknown = sum(check.met is None for check in choice.limits)
            late = 0.0 if choice.keeps("deadline") else choice.days
            return bool(choice.problem), missed, unknown, late, choice.accelerators

        return self.best or min(self.choices, key=far)


def rentable(count: int) -> tuple[Pool, ...]:
    """Every accelerator whose price the catalogue has, as a pool of any number, of which a run takes so many."""
    known = (device for device in accelerators() if not math.isnan(device.price_low))
    return tuple(Pool(device.name, device.name, count, is_ceiling=False, in_catalogue=True) for device in known)


@dataclass
class _Asked:
    """What is asked of a pool, and the choices that were worked out."""

    runs: tuple[Run, ...]
    fleet: Fleet
    start: date
    due: date
    prices: Prices
    pool: Pool
    known: dict[int, PoolChoice] = field(default_factory=dict[int, PoolChoice])

    @cached_property
    def node(self) -> int:
        """How many come at a time."""
        return max(allocation_unit(plan, math.inf) for plan in self._placed)

    @cached_property
    def _part(self) -> int:
        """How many come at a time inside of the first node."""
        return max(allocation_unit(plan, 1) for plan in self._placed)

    @cached_property
    def _placed(self) -> tuple[Plan, ...]:
        """The runs' plans, on this pool."""
        if self.pool.name == OWN_CLUSTER:
            return tuple(run.plan for run in self.runs)
        return tuple(plan_on(self.pool, run.plan) for run in self.runs)

    def at(self, count: int) -> PoolChoice:
        """The runs on so many of the pool."""
        if count not in self.known:
            self.known[count] = self._choice(count)
        return self.known[count]

    def _choice(self, count: int) -> PoolChoice:
        pool = self.pool.part(count)
        own = pool.name == OWN_CLUSTER
        fleet = replace(self.fleet, accelerators=count + pool.spares, pools=()) if own else self.fleet
        plans = (replace(plan, find="time", accelerators=float(count)) for plan in self._placed)
        runs = [replace(run, plan=plan, pool=None if own else pool) for run, plan in zip(self.runs, plans, strict=True)]
        try:
            s = schedule(fleet if own else replace(fleet, pools=(pool,)), runs, self.start, self.due)
        except BudgetError as problem:
            return PoolChoice(self.pool, count, problem=str(problem))
        dollars = pool_costs(s, self.prices)[0].total
        return PoolChoice(self.pool, count, s, dollars, shared_checks(s, dollars))

    def idle_beside(self, choice: PoolChoice) -> Interval:
        """What the rest of the fleet costs that is held whether it works or not, until the runs of a choice end."""
        s, held = choice.schedule, [pool for pool in self.fleet.pools if pool.holding != "rented"]
        if s is None:
            return UNKNOWN
        taken = {self.pool.name: choice.accelerators}
        rest = [replace(pool, accelerators=pool.accelerators - taken.get(pool.name, 0)) for pool in held]
        return total_of([pool_cost(s, pool, self.prices).total for pool in rest if pool.accelerators > 0])

    def near(self, level: float, later: int = 0) -> int:
        """About how many end by the deadline, or so many days later."""
        node, most = self.node, limit("accelerators") // self.node
        first = max(1, self.pool.usable // node)
        s = self.at(first * node).schedule
        guess = first * s.ends.quantile(level) / ((self.due - self.start).days + 1 + later) if s else first
        middle = max(1, min(most, math.ceil(guess)))
        return node * middle

    def fewest(self, level: float, later: int = 0) -> PoolChoice | None:
        """The runs on the fewest that end by the deadline, or so many days later. Days go nearly with one over how
        many there are: it is sought from there, in growing steps of whole nodes."""
        if self.pool.first and (self.pool.first - self.due).days > later:
            return None
        near = self.near(level, later)
        node, most = self.node, limit("accelerators") // self.node
        low, high, step = 0, near // node, 1
        if self.at(high * node).in_time(level, later):
            while high > 1 and low == 0:
                probe = max(1, high - step)
                fits = self.at(probe * node).in_time(level, later)
                low, high, step = (0, probe, 2 * step) if fits else (probe, high, step)
        else:
            steps = [min(most, high + 2**k - 1) for k in range((most - high + 1).bit_length() + 1)]
            high = next((count for count in steps if self.at(count * node).in_time(level, later)), 0)
            if not high:
                return None
            low = max(count for count in steps if count < high)
        _, least = self._edge(low * node, high * node, lambda choice: choice.in_time(level, later))
        fewer = range(part := self._part, node, part) if least == node else ()
        return next((self.at(count) for count in fewer if self.at(count).in_time(level, later)), self.at(least))

    def most_that_keep(self, name: str, choices: tuple[PoolChoice, ...]) -> float:
        """The most accelerators that keep a limit which grows with them, however many of them ``choices`` go up to."""
        if not any(check.id == name and check.met is not None for choice in choices for check in choice.limits):
            return math.nan
        missed = next((i for i, choice in enumerate(choices) if not choice.keeps(name)), None)
        if missed is not None:
            low = choices[missed - 1].accelerators if missed else 0
            return self._edge(low, choices[missed].accelerators, lambda choice: not choice.keeps(name))[0]
        last, most = max(1, choices[-1].accelerators // self.node), limit("accelerators") // self.node
        steps = [min(most, last * 2**k) for k in range((most // last).bit_length() + 1)]
        high = next((count for count in steps if self.at(count * self.node).misses(name)), 0)
        if not high:
            return math.inf
        low = max((count for count in steps if count < high), default=0)
        return self._edge(low * self.node, high * self.node, lambda choice: choice.misses(name))[0]

    def _edge(self, low: int, high: int, holds: Callable[[PoolChoice], bool]) -> tuple[int, int]:
        """The most in whole nodes from ``low`` on of which something does not hold, and the least of which it does, as
        of ``high``."""
        while high - low > self.node:
            middle = low + (high - low) // self.node // 2 * self.node
            low, high = (low, middle) if holds(self.at(middle)) else (middle, high)
        return low, high


def levels_of(plan: Plan) -> tuple[float, ...]:
    """Shares of such runs of which it is asked how many accelerators they take: half, the plan's own, a surer one."""
    level = plan.limits.level
    return tuple(sorted({0.5, level, _SURE if level < _SURE else _SURER}))


OF_CATALOGUE = 5
"""Accelerators of the catalogue that are held against each other: those that miss the fewest limits in time, for least.
"""


@cached("arrays_kept")
def choose_pools(runs: tuple[Run, ...], fleet: Fleet, start: date, due: date, prices: Prices) -> tuple[PoolLine, ...]:
    """The runs on each pool of the fleet, rented ones last, and where none is rented on those of the catalogue. The
    pools that they name, and how many they take, are not looked at; nor is the plan's cluster where it is part of a
    pool."""
    plan = runs[0].plan
    whole = replace(fleet, source=None)
    pools = sorted(fleet.pools, key=lambda pool: pool.holding == "rented")
    asked = [_Asked(runs, whole, start, due, prices, p) for p in (*(() if fleet.source else (fleet.cluster,)), *pools)]
    if not any(pool.holding == "rented" for pool in pools):
        some = [_Asked(runs, whole, start, due, prices, pool) for pool in rentable(fleet.accelerators)]
        in_time = ((one, one.fewest(plan.limits.level)) for one in some)
        ranked = sorted(
            (sum(check.met is False for check in choice.limits), choice.dollars.mid, i, one)
            for i, (one, choice) in enumerate(in_time)
            if choice
        )
        asked += [one for *_, one in ranked[:OF_CATALOGUE]]
    return tuple(_line(one) for one in asked)


_FEWER, _POINTS = 8, 7
"""A line goes down to an eighth of its most accelerators, in so many points."""


def _line(asked: _Asked) -> PoolLine:
    plan = asked.runs[0].plan
    levels, level = levels_of(plan), plan.limits.level
    in_time = {share: asked.fewest(share) for share in levels}
    later = asked.fewest(level, WEEK)
    most, node = asked.pool.most, asked.node
    fewest = [choice.accelerators for choice in (*in_time.values(), later) if choice]
    end = most if math.isfinite(most) else max(asked.pool.usable, node * round(1.5 * max(fewest, default=0) / node))
    steps = (end * _FEWER ** (-i / (_POINTS - 1)) for i in range(1, _POINTS))
    counts = {asked.pool.usable, int(end), *fewest, *(max(node, node * round(step / node)) for step in steps)}
    counts = sorted(count for count in counts if count <= end)
    choices = tuple(asked.at(count) for count in counts)
    affordable, powered = (asked.most_that_keep(name, choices) for name in ("money", "power"))
    best = next((choice for choice in choices if choice.meets is True), None)
    line = PoolLine(asked.pool, choices, in_time, later, affordable, powered, best)
    return replace(line, idle=asked.idle_beside(line.nearest))


NO_POOL = {fields[name].id: "" for fields in RUN_FIELDS.values() for name in ("pool", "count")}
"""The texts of runs that are on the plan's cluster, on all of it."""


@dataclass(frozen=True, slots=True)
class ComparedPools:
    """The pools of a team held against each other. plan: with the limits that its runs share."""

    plan: Plan
    due: date
    lines: tuple[PoolLine, ...]


def compare_pools(reading: ParsedForm, request: CalendarRequest) -> ComparedPools | None:
    """The runs of a calendar on each pool; None without a deadline. request: what the form asked when it last could be
    answered. Raises `BudgetError` where the runs cannot be."""
    if not request.due:
        return None
    plan, most = plan_as_given(reading), reading.values[MOST.id]
    limits = plan.limits if math.isnan(most) else replace(plan.limits, dollars=most)
    anywhere = calendar_request(CALENDAR_FORM.parse({**reading.texts, **NO_POOL})).runs
    runs = tuple(replace(run, plan=replace(run.plan, limits=limits)) for run in anywhere)
    lines = choose_pools(runs, request.fleet, request.start, request.due, prices_of(reading))
    return ComparedPools(replace(plan, limits=limits), request.due, lines)
