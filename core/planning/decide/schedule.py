"""When assigned runs start and end, what they draw, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias

from core.budget.equations import Interval, rent
from core.formula import Explanation
from core.planning.decide.matrix import (
    SIDES,
    UNKNOWN,
    Cell,
    OfferMatrix,
    added,
    capital_of,
    capital_used,
    energy_cost,
)
from core.planning.decide.offers import Offer

LEVELS = (0.1, 0.5, 0.9)
"""Of the low end, the median, and the high end of a range."""


@dataclass(frozen=True, slots=True)
class Span:
    """A running job: when it began, and when it will end, in days from the start."""

    begin: float
    end: Interval


@dataclass(frozen=True, eq=False)
class Placement:
    """A run on an offer.

    Attributes:
        after: Indices of the runs that it starts after: the one that its row says, and those that leave it too few
            accelerators, or too little power.
    """

    cell: Cell
    after: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class ScheduledRun:
    """A run with its start and end in days from the start.

    Attributes:
        deadline: Days from the start; infinite without one.
        maintenance: Days of it between start and end, in the median.
    """

    cell: Cell
    begin: Interval
    end: Interval
    deadline: float
    maintenance: float


def times_at(
    matrix: OfferMatrix, placements: Sequence[Placement], level: float, actuals: Mapping[int, Span] | None = None
) -> list[tuple[float, float]]:
    """Return start and end of every run, each no longer than a share ``level`` of such runs, in days from the start.

    Args:
        actuals: Running jobs by the index of their run, whose times stand in place of the estimate.
    """
    times: dict[int, tuple[float, float]] = {}
    while len(times) < len(placements):
        for i, placement in enumerate(placements):
            if i in times or any(j not in times for j in placement.after):
                continue
            cell = placement.cell
            begin = max([cell.run.first, cell.offer.opens(matrix.start), *(times[j][1] for j in placement.after)])
            end = begin + cell.calendar_days.quantile(level)
            if actuals and i in actuals:
                begin, end = actuals[i].begin, actuals[i].end.quantile(level)
            times[i] = begin, end
    return [times[i] for i in range(len(placements))]


@dataclass(frozen=True, eq=False)
class Schedule:
    """Every run of an assignment, in the order of the runs."""

    start: date
    runs: tuple[ScheduledRun, ...]

    @cached_property
    def ends(self) -> Interval:
        """When the last run ends, in days from the start."""
        return Interval(*(max(getattr(run.end, side) for run in self.runs) for side in SIDES))

    def day(self, at: float) -> date:
        """Return the day of a moment."""
        return self.start + timedelta(days=math.floor(at))

    @property
    def power(self) -> tuple[tuple[float, float, float], ...]:
        """Peak power over time, in the median: from a day, to a day, watts; NaN where that of a run is unknown."""
        edges = sorted({edge for run in self.runs for edge in (run.begin.mid, run.end.mid)})
        return tuple(
            (a, b, sum(run.cell.watts for run in self.runs if run.begin.mid <= a < run.end.mid))
            for a, b in pairwise(edges)
        )

    @property
    def peak_watts(self) -> float:
        """The most power at once. NaN if unknown."""
        watts = [watts for *_, watts in self.power]
        return math.nan if any(map(math.isnan, watts)) else max(watts)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The offers that runs are on."""
        return tuple(dict.fromkeys(run.cell.offer for run in self.runs))


def schedule(
    matrix: OfferMatrix, placements: Sequence[Placement], actuals: Mapping[int, Span] | None = None
) -> Schedule:
    """Return when assigned runs start and end.

    Args:
        actuals: Running jobs by the index of their run.
    """
    low, mid, high = (times_at(matrix, placements, level, actuals) for level in LEVELS)
    runs: list[ScheduledRun] = []
    for i, placement in enumerate(placements):
        cell = placement.cell
        begin, end = (Interval(low[i][side], mid[i][side], high[i][side]) for side in (0, 1))
        maintenance = (end.mid - begin.mid) * (1 - cell.offer.uptime)
        runs.append(ScheduledRun(cell, begin, end, matrix.due(cell.run), maintenance))
    return Schedule(matrix.start, tuple(runs))


BillId: TypeAlias = Literal["rent", "reserved", "capital", "energy", "idle"]


@dataclass(frozen=True, eq=False, slots=True)
class BillLine:
    """What one offer costs, or a part of it.

    Attributes:
        amount: All NaN if unknown.
        counted: Whether it is in the total. Idle hours are not: those of a reservation are in its price, and owned
            accelerators cost the same without any run.
    """

    id: BillId
    offer: Offer
    amount: Interval
    counted: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Bill:
    """The bill of an assignment."""

    lines: tuple[BillLine, ...]

    @property
    def total(self) -> Interval:
        """Its counted lines, added end by end. All NaN if one is unknown."""
        return added([line.amount for line in self.lines if line.counted])

    @property
    def unknown(self) -> tuple[Offer, ...]:
        """The offers of which a counted line is unknown."""
        return tuple(dict.fromkeys(line.offer for line in self.lines if line.counted and not line.amount.known))


def committed(offer: Offer, start: date) -> Interval:
    """Return dollars of a reservation, used or not. All NaN without a price."""
    low, high = offer.prices or (offer.device.price_low, offer.device.price_high)
    hours = 24 * offer.term(start) * offer.count
    return Interval(*(float(rent(hours=hours, price=price)) for price in (low, (low + high) / 2, high)))


def bill(s: Schedule) -> Bill:
    """Return what a schedule costs, offer by offer."""
    lines: list[BillLine] = []
    for offer in s.offers:
        cells = [run.cell for run in s.runs if run.cell.offer == offer]
        match offer.contract:
            case "owned":
                used = added([cell.answer.range_of("hours") for cell in cells if cell.answer])
                lines.append(BillLine("capital", offer, capital_of(offer, used)))
                lines.append(BillLine("energy", offer, added([cell.energy for cell in cells])))
                days = s.ends.through(lambda end, offer=offer: max(0.0, end - offer.opens(s.start)))
                held = days.through(lambda days, offer=offer: 24 * days * offer.count)
                idle = capital_of(offer, _idle(held, used))
                lines.append(BillLine("idle", offer, idle, counted=False))
            case "reserved":
                whole, used = committed(offer, s.start), added([cell.cost for cell in cells])
                lines.append(BillLine("reserved", offer, whole))
                lines.append(BillLine("idle", offer, _idle(whole, used), counted=False))
            case _:
                lines.append(BillLine("rent", offer, added([cell.cost for cell in cells])))
    return Bill(tuple(lines))


def _idle(held: Interval, used: Interval) -> Interval:
    """What is paid for and not used, as hours or as dollars."""
    if not (held.known and used.known):
        return UNKNOWN
    return Interval(*sorted(max(0.0, getattr(held, side) - getattr(used, side)) for side in SIDES))


def explain(s: Schedule, kwh: float) -> list[Explanation]:
    """Return the formulas of every known cost of the runs.

    Args:
        kwh: Dollars per kWh of owned accelerators.
    """
    steps: list[Explanation] = []
    for run in s.runs:
        cell, a = run.cell, run.cell.answer
        if a is None or not cell.cost.known:
            continue
        hours = a.middle.hours
        if cell.offer.contract == "owned":
            values = {"capital": cell.offer.capital, "hours": hours, "years": cell.offer.years}
            steps.append(capital_used.explain(**values).about(cell.run.name))
            steps.append(energy_cost.explain(energy=a.energy.mid, price=kwh).about(cell.run.name))
        else:
            steps.append(rent.explain(hours=hours, price=a.middle.price).about(cell.run.name))
    return steps
