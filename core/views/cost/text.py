"""The bill in words and table cells: what each line is, what is missing, and which way costs least."""

from __future__ import annotations

from collections.abc import Sequence

from core.budget.equations import Interval
from core.dates import format_day
from core.planning.calendar.pools import Pool
from core.planning.calendar.schedule import Schedule
from core.planning.cost import form
from core.planning.cost.bill import BillLine, CostOption, Prices, energy_of, idle_of, peak_of
from core.planning.cost.pool_bill import PoolCost, pool_costs
from core.planning.form.plan_form import PRICE
from core.units import format_count, format_quantity
from core.wording import amount, listed, percent, rent, span, strong, unmarked

NAMES = {
    "rent": "accelerators",
    "reservation": "accelerators",
    "capital": "accelerators",
    "owned_pools": "owned pools at work",
    "rented_pools": "rented pools at work",
    "reserved_pools": "reserved pools at work",
    "idle": "idle accelerators",
    "idle_pools": "idle pools",
    "power": "power",
    "staff": "staff",
    "space": "space",
}
"""Id of a line → what it is for; that of the accelerators has an id for each way of paying."""

_INSIDE = {
    ("rented", "power"),
    ("rented", "space"),
    ("reserved", "power"),
    ("reserved", "space"),
    ("reserved", "idle"),
    ("owned", "idle"),
}
"""Lines that another way of paying has in its price."""


_FIELDS = {
    "price": PRICE,
    "reserved": form.RESERVED,
    "term": form.TERM,
    "capital": form.CAPITAL,
    "years": form.YEARS,
    "kwh": form.KWH,
    "staff": form.STAFF,
    "space": form.SPACE,
}

POOLS = ("pool", "held", "accelerators", "work", "idle", "cost of work", "of idling", "power", "total")


def heading(ways: Sequence[CostOption]) -> tuple[str, ...]:
    """The headings over `rows`."""
    return ("line", *(way.id for way in ways))


def _needed(needs: Sequence[str]) -> str:
    """What has to be typed for a line to be known."""
    if "watts" in needs:
        return "the accelerator’s power is unknown"
    if "pool_capital" in needs:
        return "an owned pool has no capital: $30,000 over 4 years"
    if "pool_price" in needs:
        return "a pool’s price is unknown: $2.60/h"
    if "rented" in needs:
        return f"“{PRICE.label}” is 0, for what is owned"
    return f"type {listed([f'“{_FIELDS[name].label}”' for name in needs])}"


def unknown(way: CostOption) -> str:
    """What has to be typed for the total to be known; empty where it is."""
    return "; ".join(_needed(line.needs) for line in way.lines if line.main and not line.known)


def missing(way: CostOption) -> str:
    """What a total leaves out: ``without staff and space``; empty where it has all."""
    main = {line.id for line in way.lines if line.main}
    names = [NAMES[text] for text in way.without if text not in main]
    return f"without {listed(names)}" if names else ""


def rows(ways: Sequence[CostOption]) -> list[tuple[tuple[str, str], ...]]:
    """Cells of the table of lines, each with a remark under it: what is still to be typed, or its range."""
    by_name = {NAMES[line.id]: line for way in ways for line in way.lines}
    result: list[tuple[tuple[str, str], ...]] = []
    for name in dict.fromkeys(NAMES.values()):
        if name in by_name:
            of = [(way, next((line for line in way.lines if NAMES[line.id] == name), None)) for way in ways]
            needs = {line.needs: way for way, line in reversed(of) if line and line.needs}
            ask = [(f"{way.id}: " if by_name[name].main else "") + _needed(need) for need, way in needs.items()]
            result.append(((name, "; ".join(reversed(ask))), *(_cell(way, line, by_name[name].id) for way, line in of)))
    return [*result, (("**total**", ""), *(_amount(way.total, bold=True) for way in ways))]


def _cell(way: CostOption, line: BillLine | None, id: str) -> tuple[str, str]:
    if line is None:
        return ("included" if (way.id, id) in _INSIDE else "–"), ""
    return _amount(line.amount)


def _amount(interval: Interval, *, bold: bool = False) -> tuple[str, str]:
    """An amount, and its range."""
    if not interval.known:
        return "unknown", ""
    low, high, middle = rent(interval.low), rent(interval.high), rent(interval.mid)
    return strong(middle) if bold else middle, span(low, high) if low != high else ""


def compared(ways: Sequence[CostOption]) -> str:
    """Which way costs least among those that are known, and what is missing in each."""
    known = [way for way in ways if way.total.known]
    if not known:
        return "No way of paying is known yet: each needs its price."
    parts = [f"**{rent(way.total.mid)}** {way.id}" + (f" ({text})" if (text := missing(way)) else "") for way in known]
    if len(ways) == 1:
        return f"The calendar costs {parts[0]}."
    unknown = [
        f"{way.id} ({_needed(next(line.needs for line in way.lines if line.main))})"
        for way in ways
        if not way.total.known
    ]
    rest = f" Still unknown: {listed(unknown)}." if unknown else ""
    # What one of them leaves out and another counts would make it look cheap.
    alike = len(known) > 1 and len({way.without for way in known}) == 1
    least = f": least **{min(known, key=lambda way: way.total.mid).id}**" if alike else ""
    return f"The same calendar costs {listed(parts)}{least}.{rest}"


POOLED_BILL = (
    "Rented: while runs work, and idle hours where the pool says what they cost or “Pay for idle hours too” is on. "
    "Reserved: from its first to its last day, whatever runs. Owned: the part of the capital that these days use up, "
    "by the hours that work and those that do not; power is that of the runs. All from the calendar’s first day on"
)
OWNED = (
    "Owned: the part of the capital that these days use up, not the purchase; the fleet has years to come. Power is "
    "that of the runs. Reserved: whole terms, whatever runs."
)


def fleet_text(s: Schedule, p: Prices) -> str:
    """Accelerator-hours of the runs, those that are idle, the energy of the runs and the most power of the fleet."""
    idle, whole, costs = idle_of(s).mid, s.held_hours.mid, ""
    if s.fleet.pools:
        held = [cost for cost in pool_costs(s, p) if cost.held_idle]
        idle, idling = sum(cost.hours.idle.mid for cost in held), sum(cost.idling.mid for cost in held)
        whole = s.used_hours.mid + idle
        costs = f", **{rent(idling)}**" if idling > 0 else ""
    energy = energy_of(s)
    used_energy, peak = format_quantity(energy.mid, "watt_hours", 3), format_quantity(peak_of(s), "watts", 3)
    power = f" · **{used_energy}** of energy, **{peak}** of peak power" if energy.known else ""
    return (
        f"**{amount(s.used_hours.mid, 3)}** accelerator-hours in runs · **{amount(idle, 3)}** held outside them "
        f"({percent(idle / whole)}{costs}){power}"
    )


def pool_rows(costs: Sequence[PoolCost]) -> list[tuple[tuple[str, str], ...]]:
    """Cells of the table of pools, in the order of `POOLS`, each with a remark under it."""
    return [
        (
            (unmarked(cost.pool.name), _about(cost.pool)),
            (_held_as(cost.pool), f"{cost.pool.spares:,} spare" if cost.pool.spares else ""),
            (format_count(cost.pool.accelerators, 15), cost.pool.accelerator),
            (f"{amount(cost.hours.used.mid, 3)} h", percent(cost.hours.used.mid / (cost.hours.held.mid or 1))),
            (f"{amount(cost.hours.idle.mid, 3)} h", percent(cost.hours.idle.mid / (cost.hours.held.mid or 1)))
            if cost.held_idle
            else ("–", "not held"),
            *(_amount(part) for part in (cost.work, cost.idling, cost.power)),
            _amount(cost.total, bold=True),
        )
        for cost in costs
    ]


def _held_as(pool: Pool) -> str:
    return "spot" if pool.interruptions else pool.holding


def _about(pool: Pool) -> str:
    """Where a pool is, and from when to when it is open."""
    parts = [f"in {unmarked(pool.place)}" if pool.place else ""]
    parts += [
        f"from {format_day(pool.first)}" if pool.first else "",
        f"to {format_day(pool.last)}" if pool.last else "",
    ]
    return " ".join(part for part in parts if part)
