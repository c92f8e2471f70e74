"""Which pool a plan should run on, and how many to rent instead: every way on the calendar, with its days, dollars and
power, and whether it keeps the deadline, the money there is and every limit of the plan.

One plan is one job, on one pool: no way here mixes accelerators. The fewest to rent are the exact inverse of the days
that the plan stays within at the probability that has to hold, rounded up to whole copies of the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date, timedelta

from core.budget.errors import BudgetError
from core.hardware.accelerators import accelerators
from core.planning.calendar.pools import Pool, plan_on
from core.planning.calendar.schedule import Fleet, Run, Schedule, maintenance, schedule
from core.planning.cost.bill import Prices
from core.planning.cost.pool_bill import pool_costs
from core.planning.evaluation import answer
from core.planning.plan import Limits, Plan
from core.planning.plan_limits import Check, all_checks, all_met


@dataclass(frozen=True, slots=True)
class PoolChoice:
    """One way to run the plan. accelerators: that it takes. fewest: whether these are the fewest that keep the
    deadline, not all there are. dollars: NaN where unknown. watts: on average while it runs, cooling and supply
    included; NaN where unknown. late: days after the deadline, in the middle and at the late end, negative before it.
    over: dollars above what there is. limits: those of the plan itself. problem: why there is no such way; the rest
    is empty then."""

    pool: Pool
    accelerators: int
    schedule: Schedule | None = None
    fewest: bool = False
    dollars: float = math.nan
    watts: float = math.nan
    late: tuple[int, int] = (0, 0)
    over: float = math.nan
    limits: tuple[Check, ...] = ()
    problem: str = ""

    @property
    def in_time(self) -> bool:
        """Whether the middle of the range keeps the deadline, and the pool is open until then."""
        s = self.schedule
        return s is not None and self.late[0] <= 0 and not s.days_beyond(s.runs[0], s.ends.mid)

    @property
    def affordable(self) -> bool:
        """Whether it costs no more than there is; also where its cost, or what there is, is unknown."""
        return not self.over > 0

    @property
    def meets(self) -> bool:
        """Whether it keeps both, and misses no limit of the plan."""
        return self.in_time and self.affordable and all_met(self.limits) is not False


def rentable() -> tuple[Pool, ...]:
    """Every accelerator whose price the catalogue has, as a pool to rent from; how many is asked, not given."""
    known = (device for device in accelerators() if not math.isnan(device.price_low))
    return tuple(Pool(device.name, device.name, device.node_size) for device in known)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of every way."""

    plan: Plan
    fleet: Fleet
    start: date
    due: date
    most: float
    prices: Prices


def choose_pools(
    plan: Plan, fleet: Fleet, start: date, due: date, most: float, prices: Prices
) -> tuple[PoolChoice, ...]:
    """The plan on each pool of the fleet alone, all that runs may take of it, and on the fewest of each accelerator to
    rent that end in time: those of the rented pools, or of the catalogue where none is. The best first: what keeps
    deadline, money and the plan's limits, then what is in time, by dollars. most: dollars, NaN where any will do.
    """
    asked = _Asked(plan, fleet, start, due, most, prices)
    choices = [_choice(asked, pool, pool.usable) for pool in (fleet.cluster, *fleet.pools)]
    rented = {pool.accelerator: pool for pool in reversed(fleet.pools) if pool.holding == "rented"}
    choices += [_fewest(asked, pool) for pool in rented.values() or rentable()]
    return tuple(sorted(choices, key=_rank))


def _rank(choice: PoolChoice) -> tuple[bool, bool, bool, float, float]:
    dollars = math.inf if math.isnan(choice.dollars) else choice.dollars
    days = choice.schedule.ends.mid if choice.schedule else math.inf
    return bool(choice.problem), not choice.meets, not choice.in_time, dollars, days


def _choice(asked: _Asked, pool: Pool, count: int) -> PoolChoice:
    """The plan as the only run of a calendar, on so many of a pool."""
    own = pool == asked.fleet.cluster
    plan = replace(asked.plan if own else plan_on(pool, asked.plan), find="time", accelerators=float(count))
    run = Run(pool.name, plan, pool=None if own else pool)
    try:
        s = schedule(replace(asked.fleet, pools=() if own else (pool,)), [run], asked.start, asked.due)
    except BudgetError as problem:
        return PoolChoice(pool, count, problem=str(problem))
    dollars = pool_costs(s, asked.prices)[0].total.mid
    answer = s.runs[0].answer
    return PoolChoice(
        pool,
        count,
        s,
        dollars=dollars,
        watts=answer.energy.mid / (24 * answer.middle.days),
        late=(s.late(s.ends.mid), s.late(s.ends.high)),
        over=dollars - asked.most,
        limits=all_checks(answer),
    )


_TRIES, _NUDGE = 4, 0.005
"""Days at a probability are not those in the middle on every number of accelerators: a little fewer are tried so
often."""


def _fewest(asked: _Asked, pool: Pool, level: float | None = None) -> PoolChoice:
    """The plan on the fewest accelerators of a rented pool that end by the deadline; more than it has may be. level:
    the share of such runs that does; None takes the plan's."""
    fleet, end = asked.fleet, float((asked.due - asked.start).days + 1)
    times = maintenance(fleet.closed, fleet.monthly_hours, asked.start)
    begin = times.open(max(0.0, float((pool.first - asked.start).days)) if pool.first else 0.0)
    days = end - begin - sum(b - a for a, b in times.within(begin, end))
    if days <= 0:
        return PoolChoice(pool, 0, fewest=True, problem=f"It opens on {pool.first}, after the deadline.")
    level = asked.plan.keeps.level if level is None else level
    inverse = replace(plan_on(pool, asked.plan), find="accelerators", limits=Limits(days))
    try:
        found = answer(inverse)
        for k in range(_TRIES):
            reached = answer(replace(inverse, find="time", accelerators=float(found.count))).range_of("days")
            if reached.quantile(level) <= days:
                break
            within = days * reached.mid / reached.quantile(level) * (1 - _NUDGE * k)
            found = answer(replace(inverse, limits=Limits(within)))
    except BudgetError as problem:
        return PoolChoice(pool, 0, fewest=True, problem=str(problem))
    count = found.count
    return replace(_choice(asked, replace(pool, accelerators=count, spares=0, events=()), count), fewest=True)


POINTS = 0.1
"""How much surer a plan is asked to be."""


@dataclass(frozen=True, slots=True)
class OtherTerms:
    """What other terms would take of the pool that a way rents: a week more, and ten more points of probability, which
    are then ``level``."""

    way: PoolChoice
    later: PoolChoice
    surer: PoolChoice
    level: float


def other_terms(
    choices: tuple[PoolChoice, ...], plan: Plan, fleet: Fleet, start: date, due: date, prices: Prices
) -> OtherTerms | None:
    """Of the best of ``choices`` that rents the fewest; None where none does."""
    way = next((choice for choice in choices if choice.fewest and choice.schedule), None)
    if way is None:
        return None
    asked = _Asked(plan, fleet, start, due, math.nan, prices)
    level = plan.keeps.level + POINTS if plan.keeps.level < 0.9 else 0.95
    later = _fewest(replace(asked, due=due + timedelta(days=7)), way.pool)
    return OtherTerms(way, later, _fewest(asked, way.pool, level), level)
