"""Runs on the pools of a fleet, in sequence and beside each other: when each starts, pauses and ends.

How long a run takes is the one `estimate` of its plan, at both ends of its range and in the middle. Which runs wait for
which follows from the order of the rows and from how many accelerators each takes, never from how long one happens to
take: a run that does not fit beside earlier ones on its pool waits for them. So no delay ever makes another run end
sooner. Where an event of a pool leaves too few accelerators for all that may be under way, runs of later rows pause.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations
from types import MappingProxyType

from core.budget.equations import BudgetError, Interval, accelerator_hours, training_seconds
from core.formula import Explanation, Symbol, formula
from core.limits import cached, limit
from core.planning.calendar.dates import Closed, Pauses, day_of, pauses_from, quarter
from core.planning.calendar.pools import OWN_CLUSTER, Pool
from core.planning.estimate import PlanEstimate, estimate
from core.planning.plan import Plan
from core.sources import OWN_CONSTRUCTION

_YEAR_DAYS, _ROUNDING = 365.25, 1e-6

_NONE_KNOWN: Mapping[Plan, PlanEstimate] = MappingProxyType({})


@formula(
    r"\v{work} + \v{paused}",
    result=Symbol("T", "days from a run’s start to its end", "days"),
    symbols={
        "work": Symbol("d", "days of training, the plan’s answer", "days"),
        "paused": Symbol("m", "days in which the cluster was closed for maintenance", "days"),
    },
    sources=(OWN_CONSTRUCTION.at("a run trains in all hours but those of maintenance"),),
)
def days_on_the_calendar(work: float, paused: float) -> float:
    """Days on the calendar.

    What failures and checkpoints take is in the training time; maintenance comes on top.
    """
    return work + paused


@dataclass(frozen=True, slots=True)
class Fleet:
    """The plan's own cluster, and the pools that are owned or offered. accelerator, accelerators: of the cluster.
    spares: of them, idle to replace failed ones. closed: days on which nothing runs on any pool. monthly_hours: of
    maintenance more, from midnight of each month's first Monday, in UTC. source: the pool that the cluster is part of.
    """

    accelerator: str
    accelerators: int
    spares: int = 0
    closed: tuple[Closed, ...] = ()
    monthly_hours: float = 0.0
    pools: tuple[Pool, ...] = ()
    source: Pool | None = None

    @property
    def usable(self) -> int:
        """Accelerators of the cluster that runs may take."""
        return self.accelerators - self.spares

    @property
    def cluster(self) -> Pool:
        """The plan's own cluster as a pool, on the terms of that which it is part of."""
        if self.source is None:
            return Pool(OWN_CLUSTER, self.accelerator, self.accelerators, spares=self.spares)
        part = self.source.part(self.usable)
        spares = part.spares + self.spares
        return replace(part, name=OWN_CLUSTER, accelerators=self.usable + spares, spares=spares, is_ceiling=True)

    @property
    def others(self) -> tuple[Pool, ...]:
        """The pools without the accelerators that are the plan's cluster."""
        if self.source is None:
            return self.pools
        left = (self.source.without(self.cluster) if pool == self.source else pool for pool in self.pools)
        return tuple(pool for pool in left if pool)


@dataclass(frozen=True, slots=True)
class Run:
    """One run. plan: finds the time of its own number of accelerators. after: place of the run that it waits for.
    pool: that it runs on; None for the plan's own cluster."""

    name: str
    plan: Plan
    after: int | None = None
    earliest: date | None = None
    pool: Pool | None = None


@dataclass(frozen=True, slots=True)
class RunPeriod:
    """Start and end of a run in days from the calendar's first midnight, and how long it paused meanwhile."""

    begin: float
    end: float
    paused: float

    @property
    def days(self) -> float:
        """Days on the calendar, pauses included."""
        return self.end - self.begin


@dataclass(frozen=True, eq=False, slots=True)
class ScheduledRun:
    """A run on the calendar. waits: places of the runs it waits for; queued: those of them for want of accelerators.
    low, middle, high: with every run at the low end, the middle and the high end of its days. pauses: of the middle."""

    run: Run
    answer: PlanEstimate
    waits: tuple[int, ...]
    queued: tuple[int, ...]
    low: RunPeriod
    middle: RunPeriod
    high: RunPeriod
    pauses: tuple[tuple[float, float], ...]

    @property
    def accelerators(self) -> int:
        return int(self.run.plan.accelerators)

    @property
    def ends(self) -> Interval:
        """Its end in days from the calendar's first midnight."""
        return Interval(self.low.end, self.middle.end, self.high.end)

    def explain(self) -> list[Explanation]:
        """From the plan's compute to days on the calendar."""
        a, m = self.answer, self.answer.middle
        cluster = {"accelerators": m.accelerators, "peak": a.peak}
        steps = [
            days_on_the_calendar.explain(work=m.days, paused=self.middle.paused),
            training_seconds.explain(flop=m.flop, mfu=m.mfu, **cluster),
            accelerator_hours.explain(accelerators=m.accelerators, seconds=86400 * m.days),
        ]
        return [step.about(self.run.name) for step in steps]


@dataclass(frozen=True, eq=False, slots=True)
class Schedule:
    """Every run on the calendar. times: of the fleet's maintenance."""

    fleet: Fleet
    start: date
    due: date | None
    runs: tuple[ScheduledRun, ...]
    times: Pauses

    @property
    def ends(self) -> Interval:
        """When the last run ends, in days from the first midnight."""
        every = [run.ends for run in self.runs]
        return Interval(*(max(getattr(end, side) for end in every) for side in ("low", "mid", "high")))

    def day(self, at: float) -> date:
        """The day of a moment."""
        return day_of(self.start, at)

    @property
    def deadline(self) -> float:
        """The end of the deadline's day in days from the first midnight, NaN without one. Where the day is that of the
        plan's own deadline, the part of a day that this has counts."""
        if self.due is None:
            return math.nan
        days, own = float((self.due - self.start).days + 1), self.runs[0].answer.plan.limits.days
        return own if own > 0 and math.ceil(own) == days else days

    def late(self, at: float) -> float:
        """Return the days from the deadline to a moment, negative before it, and 0 without a deadline."""
        return 0.0 if math.isnan(self.deadline) or 0 < at - self.deadline < _ROUNDING else at - self.deadline

    def quarter(self, at: float) -> str:
        """The quarter that a moment falls in."""
        return quarter(self.day(at))

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The pools that are paid for: all that were named, behind the plan's own cluster where a run is on it."""
        cluster = (self.fleet.cluster,) if any(run.run.pool is None for run in self.runs) else ()
        return (*cluster, *self.fleet.others)

    def pool_of(self, run: ScheduledRun) -> Pool:
        """The pool that a run is on."""
        return run.run.pool or self.fleet.cluster

    def runs_on(self, pool: Pool) -> tuple[ScheduledRun, ...]:
        """The runs of a pool."""
        return tuple(run for run in self.runs if self.pool_of(run) == pool)

    def days_beyond(self, run: ScheduledRun, at: float) -> int:
        """Days from the last day of a run's pool to the day of a moment; none where it is still open then."""
        last = self.pool_of(run).last
        return max(0, (self.day(at) - last).days) if last else 0

    @property
    def used_hours(self) -> Interval:
        """Accelerator-hours of all runs."""
        every = [run.answer.range_of("hours") for run in self.runs]
        return Interval(*(sum(getattr(hours, side) for hours in every) for side in ("low", "mid", "high")))

    @property
    def held_hours(self) -> Interval:
        """Accelerator-hours of the whole fleet from the first midnight to the last end."""
        n = self.fleet.accelerators
        return self.ends.through(lambda days: float(accelerator_hours(accelerators=n, seconds=86400 * days)))


def schedule(
    fleet: Fleet,
    runs: Sequence[Run],
    start: date,
    due: date | None = None,
    known: Mapping[Plan, PlanEstimate] = _NONE_KNOWN,
) -> Schedule:
    """When each run starts and ends. known: answers that were worked out already. Raises `BudgetError`, whose field
    names what is at fault, where that cannot be said: a plan without an answer, a fleet too small, runs that wait in a
    circle, an end beyond the calendar."""
    if due is not None and due < start:
        raise BudgetError("due", f"The deadline, {due}, lies before the start, {start}.")
    if fleet.usable < 1:
        raise BudgetError("spare", f"{fleet.spares:,} spares leave none of {fleet.accelerators:,} accelerators to use.")
    explicit = _checked(fleet, runs)
    pools = [run.pool or fleet.cluster for run in runs]
    waits, needed = _queue(explicit, [int(run.plan.accelerators) for run in runs], pools)
    answers = [known.get(run.plan) or _answer(i, run) for i, run in enumerate(runs)]
    times = maintenance(fleet.closed, fleet.monthly_hours, start)
    spans: dict[int, tuple[RunPeriod, RunPeriod, RunPeriod]] = {}
    pauses: dict[int, Pauses] = {}
    for i in _order(explicit):
        days, run = answers[i].range_of("days"), runs[i]
        earliest = float((run.earliest - start).days) if run.earliest else 0.0
        pauses[i] = _pauses_on(pools[i], needed[i], times, start)
        periods: list[RunPeriod] = []
        for side, work in enumerate((days.low, days.mid, days.high)):
            begin = pauses[i].open(max([0.0, earliest, *(spans[j][side].end for j in waits[i])]))
            end = pauses[i].after(begin, work)
            if not end <= times.horizon:
                raise BudgetError(
                    "start",
                    f"“{run.name}” would end more than {limit('calendar_years')} years after the start, which is as "
                    "far as this calendar goes. Give it fewer tokens or more accelerators.",
                )
            periods.append(RunPeriod(begin, end, sum(b - a for a, b in pauses[i].within(begin, end))))
        spans[i] = (periods[0], periods[1], periods[2])
    placed = [
        ScheduledRun(
            run,
            answers[i],
            waits=tuple(sorted(waits[i])),
            queued=tuple(sorted(j for j in waits[i] if j != run.after)),
            low=spans[i][0],
            middle=spans[i][1],
            high=spans[i][2],
            pauses=pauses[i].within(spans[i][1].begin, spans[i][1].end),
        )
        for i, run in enumerate(runs)
    ]
    return Schedule(fleet, start, due, tuple(placed), times)


@cached("arrays_kept")
def maintenance(closed: tuple[Closed, ...], monthly_hours: float, start: date) -> Pauses:
    """When nothing runs on any pool of a fleet."""
    return pauses_from(start, closed, monthly_hours, _YEAR_DAYS * limit("calendar_years"))


def _pauses_on(pool: Pool, needed: int, times: Pauses, start: date) -> Pauses:
    """When a run rests that, with those before it on its pool, needs so many accelerators: until the pool opens, in the
    fleet's maintenance, and while events leave fewer. The pool's end is no pause: what runs beyond it is said."""
    opens = ((0.0, float((pool.first - start).days)),) if pool.first and pool.first > start else ()
    few = [(a, b) for a, b, left in pool.capacity(start) if left < needed]
    return times.and_also((*opens, *few)) if opens or few else times


def _answer(i: int, run: Run) -> PlanEstimate:
    try:
        return estimate(run.plan)
    except BudgetError as problem:
        raise BudgetError(problem.field, f"Run {i + 1}, “{run.name}”: {problem}") from None


def _checked(fleet: Fleet, runs: Sequence[Run]) -> list[int | None]:
    """For each run the one that it was told to wait for. Raises `BudgetError` where they cannot be placed."""
    if not 1 <= len(runs) <= limit("calendar_runs"):
        raise BudgetError("runs", f"{len(runs)} runs; a calendar holds from 1 to {limit('calendar_runs')}.")
    for i, run in enumerate(runs):
        number = int(run.plan.accelerators)
        pool = run.pool or fleet
        if number > pool.usable:
            name = f"“{run.pool.name}”" if run.pool else "the fleet"
            spares = f" after {pool.spares:,} spares" if pool.spares else ""
            raise BudgetError(
                "count",
                f"Run {i + 1}, “{run.name}”, takes {number:,} accelerators; {name} has {pool.usable:,}{spares}.",
            )
        if run.after is not None and not 0 <= run.after < len(runs):
            raise BudgetError("after", f"Run {i + 1} waits for run {run.after + 1}; there are only {len(runs)} runs.")
    after = [run.after for run in runs]
    for first in range(len(runs)):
        path = [first]
        while (following := after[path[-1]]) is not None and following not in path:
            path.append(following)
        if following is not None:
            circle = [*path[path.index(following) :], following]
            text = " after run ".join(str(j + 1) for j in circle)
            raise BudgetError(
                "after", f"Runs wait for each other in a circle: run {text}. Let one of them start first."
            )
    return after


def _order(after: Sequence[int | None]) -> list[int]:
    """Places by row, each behind the one that it waits for."""
    order: list[int] = []
    while len(order) < len(after):
        order.append(next(i for i, j in enumerate(after) if i not in order and (j is None or j in order)))
    return order


def _queue(
    after: Sequence[int | None], takes: Sequence[int], pools: Sequence[Pool]
) -> tuple[list[set[int]], list[int]]:
    """For each run those that it waits for: the one it was told, and whoever leaves too few accelerators of its pool
    for it. And how many it takes with the most of those before it there that may be under way with it."""
    waits: list[set[int]] = [set() for _ in after]
    behind: list[set[int]] = [set() for _ in after]
    needed = list(takes)
    placed: list[int] = []
    for i in _order(after):
        number = after[i]
        if number is not None:
            waits[i], behind[i] = {number}, {number} | behind[number]
        there = [j for j in placed if pools[j] == pools[i]]
        while True:
            crowd = _largest_concurrent([j for j in there if j not in behind[i]], behind, takes)
            needed[i] = sum(takes[j] for j in crowd) + takes[i]
            if needed[i] <= pools[i].usable:
                break
            waits[i].add(crowd[0])
            behind[i] |= {crowd[0]} | behind[crowd[0]]
        waits[i] = {j for j in waits[i] if not any(j in behind[k] for k in waits[i])}
        placed.append(i)
    return waits, needed


def _largest_concurrent(among: Sequence[int], behind: Sequence[set[int]], takes: Sequence[int]) -> tuple[int, ...]:
    """Of the runs that may all be under way at once, the set that takes the most accelerators."""
    sets = (some for size in range(len(among) + 1) for some in combinations(among, size))
    beside = (some for some in sets if not any(j in behind[k] for j in some for k in some))
    return max(beside, key=lambda some: sum(takes[j] for j in some))
