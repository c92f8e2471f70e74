"""Every run on every offer: the plan that Compute budget would show, its estimate, cost, and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

from core.budget.equations import BudgetError, Interval, mfu_needed
from core.fields import ParsedForm
from core.formula import Source, Symbol, formula
from core.limits import limit
from core.messages import message
from core.number_text import QuantityError
from core.planning.decide.offers import YEAR_DAYS, Offer, digits
from core.planning.decide.runs import Run
from core.planning.estimate import PlanEstimate, estimate
from core.planning.form.plan_form import FIND, PLAN_FIELDS, PLAN_FORM, plan_of
from core.planning.form.whole_run import DEADLINE, POWER_LIMIT
from core.planning.plan import PlanLimits
from core.planning.plan_limits import Check, all_checks, all_met, check_of, checks
from core.sources import OWN_CONSTRUCTION

AMAZON = Source(
    "Amazon.com, Form 10-K for 2022",
    "useful life of servers: five years, as its estimates of that year say",
    "https://shaulkoral.com/useful-life-of-servers-and-network-assets-at-tech-companies/",
)
EIA = Source(
    "US Energy Information Administration",
    "average price to industrial customers in 2023: 8.06 cents per kWh, as Statista passes it on",
    "https://www.statista.com/statistics/190680/us-industrial-consumer-price-estimates-for-retail-electricity-since-1970/",
)
UNKNOWN = Interval.point(math.nan)
ZERO = Interval.point(0.0)
SIDES = ("low", "mid", "high")


@formula(
    r"\v{capital} \cdot \frac{\v{hours}}{24 \cdot 365.25 \cdot \v{years}}",
    result=Symbol(r"\text{capital}", "share of the purchase cost that a run uses up", "usd"),
    symbols={
        "capital": Symbol("K", "purchase cost per accelerator, its share of hosts and network included", "usd"),
        "hours": Symbol("H", "accelerator-hours", "accelerator_hours"),
        "years": Symbol("Y", "useful life in years", "number"),
    },
    sources=(OWN_CONSTRUCTION.at("straight-line depreciation over the useful life"), AMAZON),
)
def capital_used(capital: float, hours: float, years: float) -> float:
    """Capital that accelerator-hours of owned accelerators use up.

    In equal parts over the useful life, without interest.
    """
    return capital * hours / (24 * YEAR_DAYS * years)


@formula(
    r"\frac{\v{energy}}{1000} \cdot \v{price}",
    result=Symbol(r"\text{energy}", "cost of electricity", "usd"),
    symbols={
        "energy": Symbol("W", "energy of a run, cooling and supply included", "watt_hours"),
        "price": Symbol("e", "price, dollars per kWh", "number"),
    },
    sources=(EIA,),
)
def energy_cost(energy: float, price: float) -> float:
    """Cost of the electricity of a run; idle power is not included."""
    return energy / 1000 * price


def added(amounts: Sequence[Interval]) -> Interval:
    """Return amounts added end by end; unknown if one is."""
    if not all(amount.known for amount in amounts):
        return UNKNOWN
    return Interval(*(sum(getattr(amount, side) for amount in amounts) for side in SIDES))


@dataclass(frozen=True, eq=False)
class Cell:
    """A run on so many accelerators of an offer.

    Attributes:
        texts: Of the plan's fields, by id: a link with them shows the same answer.
        answer: None where the plan has none, as ``problem`` says.
        energy: Dollars of electricity, 0 where the price of the accelerators includes it.
        cost: Dollars of the run. All NaN if unknown.
        mfu_needed: End-to-end MFU that meets the deadline. NaN without one.
        checks: Limits of the run by itself, the deadline without waiting for other runs.
    """

    run: Run
    offer: Offer
    accelerators: int
    texts: Mapping[str, str]
    answer: PlanEstimate | None = None
    problem: str = ""
    energy: Interval = UNKNOWN
    cost: Interval = UNKNOWN
    mfu_needed: float = math.nan
    checks: tuple[Check, ...] = ()

    @cached_property
    def days(self) -> Interval:
        """Days of training, as Compute budget has them. All NaN without an answer."""
        return self.answer.range_of("days") if self.answer else UNKNOWN

    @cached_property
    def calendar_days(self) -> Interval:
        """Days with the maintenance of the offer."""
        return self.days.through(lambda days: days / self.offer.uptime) if self.answer else UNKNOWN

    @property
    def watts(self) -> float:
        """Peak power of the building. NaN if unknown."""
        return self.answer.middle.peak_watts if self.answer else math.nan

    @property
    def is_reserved(self) -> bool:
        """Whether it is paid for by the term, used or not."""
        return self.offer.contract == "reserved"

    @property
    def possible(self) -> bool:
        """Whether the run trains at all: it fits, and no step is faster than the accelerator."""
        fits = all(check.met is not False for check in self.checks if check.id in ("memory", "host"))
        return self.answer is not None and not self.answer.impossible and fits

    @property
    def met(self) -> bool | None:
        """Whether it meets all limits; None where one is unknown and none is missed."""
        return False if not self.possible else all_met(self.checks)

    @property
    def probability(self) -> float:
        """The least probability of its limits, which slow runs miss together. NaN where all are certain."""
        return min((c.probability for c in self.checks if not math.isnan(c.probability)), default=math.nan)


@dataclass(frozen=True, eq=False)
class OfferMatrix:
    """Every run on every offer.

    Attributes:
        cells: By index of run and offer, on all accelerators of the offer.
        parts: On fewer of them, in whole units, or on more where the offer has more.
        limits: Of the plan: deadline, budget, and power of all runs together.
        kwh: Dollars per kWh.
    """

    start: date
    runs: tuple[Run, ...]
    offers: tuple[Offer, ...]
    cells: Mapping[tuple[int, int], Cell]
    parts: tuple[Cell, ...]
    limits: PlanLimits
    kwh: float

    def at(self, run: int, offer: int) -> Cell:
        """The run on all of the offer."""
        return self.cells[run, offer]

    @property
    def every(self) -> tuple[Cell, ...]:
        """Every cell, parts included."""
        return (*self.cells.values(), *self.parts)

    def due(self, run: Run) -> float:
        """Days from the start by which a run has to end; infinite without a deadline."""
        every = [days for days in (run.deadline, self.limits.days) if not math.isnan(days)]
        return min(every, default=math.inf)


def matrix(base: ParsedForm, runs: Sequence[Run], offers: Sequence[Offer], start: date, kwh: float) -> OfferMatrix:
    """Return every run on every offer.

    Args:
        base: A form over the plan's fields.
        start: The day that days count from.
        kwh: Dollars per kWh of owned accelerators. NaN if unknown.
    """
    reading = PLAN_FORM.parse({field.id: base.texts[field.id] for field in PLAN_FIELDS})
    limits = plan_of(reading).limits
    whole = OfferMatrix(start, tuple(runs), tuple(offers), {}, (), limits, kwh)
    cells = {
        (i, j): cell_of(whole, reading, run, offer, offer.count)
        for i, run in enumerate(runs)
        for j, offer in enumerate(offers)
    }
    parts = _parts(whole, reading, list(cells.values()))
    return replace(whole, cells=cells, parts=tuple(part for part in parts if part.possible))


def _parts(whole: OfferMatrix, reading: ParsedForm, cells: Sequence[Cell]) -> list[Cell]:
    """Cells on parts of an offer, or on more of it, that an assignment may need.

    Of three quarters, a half, and a quarter of an offer those two that are smallest and about in time; a single run
    takes a part only for want of power. Where the whole offer is late and there is more, twice as many until that is in
    time.
    """

    def on(cell: Cell, count: int) -> Cell:
        return cell_of(whole, reading, cell.run, cell.offer, count)

    found: list[Cell] = []
    wanted: list[tuple[int, int, Cell, int]] = []
    for at, cell in enumerate(cells):
        late, more = _lateness(cell), cell
        powered = all(check.met for check in cell.checks if check.id == "power")
        if not cell.possible or (late <= 1 and len(whole.runs) == 1 and powered):
            continue
        if late <= 1:
            sizes = [n for n in cell.offer.parts() if late * cell.accelerators / n <= _ABOUT]
            wanted += [(rank, at, cell, size) for rank, size in enumerate(sizes[-2:])]
        for _ in range(_DOUBLINGS if late > 1 and cell.offer.or_more else 0):
            more = on(cell, min(2 * more.accelerators, limit("accelerators")))
            found.append(more)
            if not more.possible or _lateness(more) <= 1:
                break
    return [*found, *(on(cell, size) for *_, cell, size in sorted(wanted)[: limit("decision_parts")])]


def _lateness(cell: Cell) -> float:
    """Days over those of the deadline; 0 without one."""
    return max((check.value / check.limit for check in cell.checks if check.id == "deadline"), default=0.0)


_ABOUT = 1.1
"""Share of a deadline up to which days that only grow as accelerators are fewer are about in time."""

_DOUBLINGS = 4


def cell_of(whole: OfferMatrix, reading: ParsedForm, run: Run, offer: Offer, count: int) -> Cell:
    """Return a run on so many accelerators of an offer."""
    plan, begin = plan_of(reading), max(run.first, offer.opens(whole.start))
    texts = {**run.texts, **offer.texts(count, plan), FIND.id: "time"}
    days = (min(whole.due(run), offer.closes(whole.start)) - begin) * offer.uptime
    if math.isfinite(days) and days != plan.limits.days:
        texts[DEADLINE.id] = f"{digits(max(_LEAST_DAYS, days))} days"
    if not plan.limits.watts <= offer.watts and not math.isnan(offer.watts):
        texts[POWER_LIMIT.id] = f"{digits(offer.watts)} W"
    cell = Cell(run, offer, count, texts)
    if days < _LEAST_DAYS:
        return replace(cell, problem=str(message("decision.no_time", run=run.name, offer=offer.name)))
    try:
        a = estimate(plan_of(PLAN_FORM.change(reading, texts)))
    except (BudgetError, QuantityError) as problem:
        return replace(cell, problem=str(problem))
    owned = offer.contract == "owned"
    power = a.energy.through(lambda wh: float(energy_cost(energy=wh, price=whole.kwh))) if a.energy.known else UNKNOWN
    energy = (power if not math.isnan(whole.kwh) else UNKNOWN) if owned else ZERO
    cost = added((capital_of(offer, a.range_of("hours")), energy)) if owned else a.dollars
    limits = a.plan.limits
    money = check_of("money", limits.dollars, cost, limits.level)
    known = count < offer.count and a.plan.expects_mfu and not a.plan.own_layout  # an answer then says that it fits
    every = checks(a, None) if known else all_checks(a)
    seconds = 86400 * limits.days
    m = a.middle
    needed = mfu_needed.over(flop=m.flop, accelerators=m.accelerators, peak=a.peak, seconds=seconds)
    return replace(
        cell,
        answer=a,
        energy=energy,
        cost=cost,
        mfu_needed=float(needed),
        checks=tuple(money if check.id == "money" and owned else check for check in every),
    )


_LEAST_DAYS = 1 / 24
"""Days below which nothing is trained."""


def capital_of(offer: Offer, hours: Interval) -> Interval:
    """Capital that accelerator-hours of an owned offer use up. All NaN if unknown."""
    if math.isnan(offer.capital + offer.years):
        return UNKNOWN
    return hours.through(lambda h: float(capital_used(capital=offer.capital, hours=h, years=offer.years)))
