"""What each pool of a calendar costs: its work, and the hours in which it is held and nothing runs on it.

A rented pool is paid for while runs work, and while it idles only where somebody says so. A reserved one is paid for
from its first to its last day, an owned one uses up its capital, whatever runs. Days before the calendar's start do not
count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from core.budget.equations import Interval, accelerator_hours, rent
from core.formula import Explanation
from core.planning.calendar.pools import Pool
from core.planning.calendar.schedule import Schedule, ScheduledRun
from core.planning.cost.bill import (
    SIDES,
    UNKNOWN,
    BillLine,
    CostOption,
    Prices,
    capital_used,
    costs,
    idle_hours,
    power_bill,
    total_of,
    yearly_lines,
)

_NOTHING = Interval.point(0.0)

_ROUNDING = 1e-9
"""A share of the hours held that is none."""

POOLED = "on its pools"
"""The way of paying for a schedule on several pools, each as it is held."""


@dataclass(frozen=True, slots=True)
class PoolHours:
    """Accelerator-hours of one pool. held: from when it is open; used: of its runs; idle: the others. days: held."""

    held: Interval
    used: Interval
    idle: Interval
    days: Interval


@dataclass(frozen=True, slots=True)
class PoolCost:
    """What one pool costs. work: dollars of the hours used; idling: of the others. power: of the runs, where the pool
    is owned. needs: what was not given, without which it is not known. explained: by its formulas."""

    pool: Pool
    hours: PoolHours
    work: Interval
    idling: Interval
    power: Interval = _NOTHING
    needs: tuple[str, ...] = ()
    explained: Callable[[], tuple[Explanation, ...]] = field(default=tuple[Explanation, ...], compare=False)

    @property
    def held_idle(self) -> bool:
        """Whether hours without a run are held: a rented pool's only where they are paid for."""
        return self.pool.holding != "rented" or self.idling.mid != 0

    @property
    def total(self) -> Interval:
        """All of it, ends with ends; unknown where a part is."""
        return total_of((self.work, self.idling, self.power))


def ways_to_pay(s: Schedule, p: Prices) -> tuple[CostOption, ...]:
    """The schedule rented, reserved and owned; where it has pools, each as it is held, and no other way."""
    if not s.fleet.pools:
        return costs(s, p)
    return (CostOption(POOLED, (*_pool_lines(s, p), *yearly_lines(s, p))),)


def pool_costs(s: Schedule, p: Prices) -> tuple[PoolCost, ...]:
    """What each pool of a schedule costs, in the order of its pools."""
    return tuple(pool_cost(s, pool, p) for pool in s.pools)


def _pool_lines(s: Schedule, p: Prices) -> tuple[BillLine, ...]:
    """Lines of a bill: by how pools are held, what idles, and the power of those that are owned."""
    every = pool_costs(s, p)
    lines: list[BillLine] = []
    for holding in dict.fromkeys(cost.pool.holding for cost in every):
        some = [cost for cost in every if cost.pool.holding == holding]
        needs = tuple(dict.fromkeys(name for cost in some for name in cost.needs))
        work = total_of([cost.work for cost in some])
        line = BillLine(f"{holding}_pools", work, needs, main=True)
        lines.append(replace(line, explained=partial(_explained, some)))
    idling = total_of([cost.idling for cost in every])
    unknown = tuple(dict.fromkeys(name for cost in every if not cost.idling.known for name in cost.needs))
    lines.append(BillLine("idle_pools", idling, unknown))
    if any(cost.pool.holding == "owned" for cost in every):
        power = total_of([cost.power for cost in every])
        lines.append(BillLine("power", power, () if power.known else ("kwh",) if math.isnan(p.kwh) else ("watts",)))
    return tuple(lines)


def _explained(costs: Sequence[PoolCost]) -> list[Explanation]:
    return [step for cost in costs for step in cost.explained()]


def _hours(s: Schedule, pool: Pool, runs: Sequence[ScheduledRun]) -> PoolHours:
    """Hours of a pool. It is held to its last day where it is reserved, else to the calendar's end if that is sooner;
    and for as long as a run is on it."""
    begin = max(0.0, float((pool.first - s.start).days)) if pool.first else 0.0
    last = float((pool.last - s.start).days + 1) if pool.last else math.inf
    ends: list[float] = []
    for side, span in zip(SIDES, ("low", "middle", "high"), strict=True):
        calendar_end = float(getattr(s.ends, side))
        closes = last if pool.holding == "reserved" and math.isfinite(last) else min(last, calendar_end)
        ends.append(max([begin, closes, *(getattr(run, span).end for run in runs)]))
    days = Interval(*sorted(end - begin for end in ends))
    held = days.through(lambda days: float(accelerator_hours(accelerators=pool.accelerators, seconds=86400 * days)))
    used = total_of([run.answer.range_of("hours") for run in runs] or [_NOTHING])
    spare = [float(idle_hours(held=getattr(held, side), used=getattr(used, side))) for side in SIDES]
    spare = [
        hours if hours > _ROUNDING * getattr(held, side) else 0.0 for side, hours in zip(SIDES, spare, strict=True)
    ]
    return PoolHours(held, used, Interval(min(spare), spare[1], max(spare)), days)


def pool_cost(s: Schedule, pool: Pool, p: Prices) -> PoolCost:
    """What a pool costs, which no run of the schedule need be on."""
    runs = s.runs_on(pool)
    hours = _hours(s, pool, runs)
    own = pool == s.fleet.cluster and s.fleet.source is None
    if own and runs[0].answer.plan.owned:  # at a price of 0; its capital is asked with the bill
        pool = replace(pool, holding="owned", capital=p.capital, years=p.years)
    extra = hours.idle.through(lambda hours: hours * pool.idle) if not math.isnan(pool.idle) else _NOTHING
    match pool.holding:
        case "owned":
            return _owned(pool, hours, runs, extra, p)
        case "reserved":
            return _reserved(pool, hours, extra)
        case "rented":
            return _rented(pool, hours, runs, extra, p)


def _rented(pool: Pool, hours: PoolHours, runs: Sequence[ScheduledRun], extra: Interval, p: Prices) -> PoolCost:
    work = total_of([run.answer.dollars for run in runs] or [_NOTHING])
    if p.held and math.isnan(pool.idle) and runs:
        extra = _at(hours.idle, runs[0].answer.plan.price_range)

    def steps() -> tuple[Explanation, ...]:
        every = ((run.answer.middle, f"{run.run.name}, {pool.name}") for run in runs if work.known)
        return tuple(rent.explain(hours=m.hours, price=m.price).about(what) for m, what in every)

    needs = () if work.known and extra.known else ("pool_price",)
    return PoolCost(pool, hours, work, extra, needs=needs, explained=steps)


def _reserved(pool: Pool, hours: PoolHours, extra: Interval) -> PoolCost:
    if pool.prices is None:
        return PoolCost(pool, hours, UNKNOWN, UNKNOWN, needs=("pool_price",))
    price = sum(pool.prices) / 2

    def steps() -> tuple[Explanation, ...]:
        return (rent.explain(hours=hours.held.mid, price=price).about(f"{pool.name}, reserved"),)

    idling = total_of((_at(hours.idle, pool.prices), extra))
    return PoolCost(pool, hours, _at(hours.used, pool.prices), idling, explained=steps)


def _at(hours: Interval, prices: tuple[float, float]) -> Interval:
    """Hours at a price, the low end at the low price."""
    low, high = prices
    return Interval(hours.low * low, hours.mid * (low + high) / 2, hours.high * high)


def _owned(pool: Pool, hours: PoolHours, runs: Sequence[ScheduledRun], extra: Interval, p: Prices) -> PoolCost:
    """Capital over the days held, shared out by the hours that work and those that do not."""
    energy = total_of([run.answer.energy for run in runs] or [_NOTHING])
    power = energy.through(lambda wh: float(power_bill(energy=wh, price=p.kwh))) if energy.known else UNKNOWN
    power = power if runs else _NOTHING
    if math.isnan(pool.capital + pool.years):
        return PoolCost(pool, hours, UNKNOWN, UNKNOWN, power, ("pool_capital",))
    values = {"capital": pool.capital, "accelerators": float(pool.accelerators), "years": pool.years}
    each = float(capital_used(days=1 / (24 * pool.accelerators), **values))

    def steps() -> tuple[Explanation, ...]:
        return (capital_used.explain(days=hours.days.mid, **values).about(f"{pool.name}, owned"),)

    idling = total_of((_at(hours.idle, (each, each)), extra))
    return PoolCost(pool, hours, _at(hours.used, (each, each)), idling, power, explained=steps)
