"""What the runs of a calendar cost: accelerators rented by the hour, reserved, or owned.

Every line is known or not: one whose price or amount was never given is unknown, and the total says so. Energy and
accelerator-hours are those of the one `answer` of each run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from core.budget.equations import Interval, rent
from core.formula import Explanation, Formula, Source, Symbol, formula
from core.planning.calendar.schedule import Schedule
from core.sources import OWN_CONSTRUCTION


@dataclass(frozen=True, slots=True)
class Prices:
    """What money depends on beside the plan's own price; NaN wherever nothing was given.

    held: whether a rented fleet is paid for from its start to the last end, or only while runs work. reserved: per
    accelerator-hour. term: days. capital: per accelerator. staff, space: a year. kwh: dollars.
    """

    held: bool = False
    reserved: float = math.nan
    term: float = math.nan
    capital: float = math.nan
    years: float = math.nan
    kwh: float = math.nan
    staff: float = math.nan
    space: float = math.nan


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
SAVINGS = Source(
    "AWS Savings Plans",
    "terms of one or three years",
    "https://docs.aws.amazon.com/cli/latest/reference/savingsplans/index.html",
)
_STRAIGHT = OWN_CONSTRUCTION.at("straight-line depreciation over the years of use")

_DAYS = Symbol("T", "days from the fleet’s start to the last end", "days")
_COUNT = Symbol("n", "accelerators of the fleet, spares included", "count")
_HELD = Symbol("H_f", "accelerator-hours of the whole fleet, from its start to the last end", "accelerator_hours")
_IDLE = Symbol("H_i", "accelerator-hours in which no run works: spares, maintenance, waiting", "accelerator_hours")


@formula(
    r"\v{held} - \v{used}",
    result=_IDLE,
    symbols={"held": _HELD, "used": Symbol("H", "accelerator-hours of all runs", "accelerator_hours")},
    sources=(OWN_CONSTRUCTION.at("what is held and not used"),),
)
def idle_hours(held: float, used: float) -> float:
    """Idle accelerator-hours of a fleet that is held throughout."""
    return held - used


@formula(
    r"\v{price} \cdot \v{accelerators} \cdot 24 \cdot \v{term} \cdot \v{terms}",
    result=Symbol(r"\text{reservation}", "price of the reservation", "usd"),
    symbols={
        "price": Symbol("p_r", "reserved price per accelerator-hour", "usd_per_hour"),
        "accelerators": _COUNT,
        "term": Symbol("L", "days of one term", "days"),
        "terms": Symbol("k", "terms, as many as hold the whole calendar", "number"),
    },
    sources=(SAVINGS,),
)
def reservation(price: float, accelerators: float, term: float, terms: float) -> float:
    """A reserved fleet.

    All of it is paid for whole terms, used or not.
    """
    return price * accelerators * 24 * term * terms


@formula(
    r"\v{capital} \cdot \v{accelerators} \cdot \frac{\v{days}}{365.25 \cdot \v{years}}",
    result=Symbol(r"\text{capital}", "share of the capital that the calendar uses up", "usd"),
    symbols={
        "capital": Symbol("K", "capital per accelerator, its share of hosts and network included", "usd"),
        "accelerators": _COUNT,
        "days": _DAYS,
        "years": Symbol("Y", "years of use", "number"),
    },
    sources=(_STRAIGHT, AMAZON),
)
def capital_used(capital: float, accelerators: float, days: float, years: float) -> float:
    """Capital that an owned fleet uses up.

    In equal parts over its years of use; interest is not in it.
    """
    return capital * accelerators * days / (365.25 * years)


@formula(
    r"\frac{\v{energy}}{1000} \cdot \v{price}",
    result=Symbol(r"\text{power}", "bill for electricity", "usd"),
    symbols={
        "energy": Symbol("W", "energy of all runs, cooling and supply included", "watt_hours"),
        "price": Symbol("e", "price, dollars per kWh", "number"),
    },
    sources=(EIA,),
)
def power_bill(energy: float, price: float) -> float:
    """Electricity of all runs.

    What accelerators draw while they idle is not in it.
    """
    return energy / 1000 * price


@formula(
    r"\v{yearly} \cdot \frac{\v{days}}{365.25}",
    result=Symbol(r"\text{share}", "share of a yearly cost", "usd"),
    symbols={"yearly": Symbol("a", "cost of a year", "usd"), "days": _DAYS},
    sources=(OWN_CONSTRUCTION.at("a yearly cost, by the days"),),
)
def share_of_years(yearly: float, days: float) -> float:
    """A yearly cost over the days of the calendar."""
    return yearly * days / 365.25


@dataclass(frozen=True, slots=True)
class BillLine:
    """One line of a bill. id: what it is for, the same in every way of paying. needs: ids of what was not given;
    ``rented`` where the plan's price is 0, that of accelerators that are owned. main: without it there is no total."""

    id: str
    amount: Interval
    needs: tuple[str, ...] = ()
    main: bool = False
    explained: Callable[[], list[Explanation]] = field(default=list[Explanation], compare=False)

    @property
    def known(self) -> bool:
        return self.amount.known


@dataclass(frozen=True, slots=True)
class CostOption:
    """One way of paying for the same schedule."""

    id: str
    lines: tuple[BillLine, ...]

    @property
    def total(self) -> Interval:
        """All known lines, ends with ends; unknown where the main line is."""
        if not all(line.known for line in self.lines if line.main):
            return UNKNOWN
        return total_of([line.amount for line in self.lines if line.known])

    @property
    def without(self) -> tuple[str, ...]:
        """Ids of the lines that are unknown."""
        return tuple(line.id for line in self.lines if not line.known)


SIDES = ("low", "mid", "high")
UNKNOWN = Interval.point(math.nan)


def total_of(amounts: Sequence[Interval]) -> Interval:
    """Return amounts added end by end; unknown if one is."""
    if not all(amount.known for amount in amounts):
        return UNKNOWN
    return Interval(*sorted(sum(getattr(amount, side) for amount in amounts) for side in SIDES))


COST_OPTIONS = ("rented", "reserved", "owned")


def costs(s: Schedule, p: Prices) -> tuple[CostOption, ...]:
    """The schedule rented, reserved and owned."""
    lines = (_rented(s, p), _reserved(s, p), _owned(s, p))
    return tuple(CostOption(name, own) for name, own in zip(COST_OPTIONS, lines, strict=True))


def explain(ways: Sequence[CostOption]) -> list[Explanation]:
    """Every line that is known, once, whichever ways have it."""
    lines = {line.id: line for way in ways for line in way.lines if line.known}
    return [step for line in lines.values() for step in line.explained()]


def energy_of(s: Schedule) -> Interval:
    """Watt-hours of all runs; unknown where the power of the accelerator is."""
    return total_of([run.answer.energy for run in s.runs])


def peak_of(s: Schedule) -> float:
    """Watts that are drawn at most, every accelerator of the fleet at work; of several pools by the runs that are on at
    once in the middle of the range. NaN where that is unknown."""
    if s.fleet.pools:
        watts = [(run.middle, run.answer.middle.peak_watts) for run in s.runs]
        if any(math.isnan(peak) for _, peak in watts):
            return math.nan
        return max(sum(peak for other, peak in watts if other.begin <= at.begin < other.end) for at, _ in watts)
    m = s.runs[0].answer.middle
    return s.fleet.accelerators * m.peak_watts / m.accelerators


def idle_of(s: Schedule) -> Interval:
    """Idle accelerator-hours of the fleet while it is held, none where rounding alone leaves some; ends in order,
    whichever way they go."""
    ends = [(getattr(s.held_hours, side), getattr(s.used_hours, side)) for side in SIDES]
    values = [0.0 if used > held * (1 - 1e-12) else float(idle_hours(held=held, used=used)) for held, used in ends]
    return Interval(min(values), values[1], max(values))


def _rented(s: Schedule, p: Prices) -> tuple[BillLine, ...]:
    plan = s.runs[0].answer.plan
    low, high = plan.price_range

    def explain() -> list[Explanation]:
        results = (rent.explain(hours=run.answer.middle.hours, price=run.answer.middle.price) for run in s.runs)
        return [result.about(placed.run.name) for result, placed in zip(results, s.runs, strict=True)]

    needs = ("rented",) if plan.owned else ("price",) if math.isnan(low) else ()
    paid = UNKNOWN if needs else total_of([run.answer.dollars for run in s.runs])
    lines = [BillLine("rent", paid, needs, main=True, explained=explain)]
    if p.held:
        idle = idle_of(s)
        middle = s.runs[0].answer.middle.price
        prices = zip((idle.low, idle.mid, idle.high), (low, middle, high), strict=True)
        amounts = [float(rent(hours=hours, price=price)) for hours, price in prices]
        interval = UNKNOWN if needs else Interval(*amounts)
        lines.append(BillLine("idle", interval, needs, explained=lambda: _explain_idle(s, middle)))
    return tuple(lines)


def _explain_idle(s: Schedule, price: float) -> list[Explanation]:
    hours = idle_hours.explain(held=s.held_hours.mid, used=s.used_hours.mid)
    return [rent.explain(hours=max(0.0, hours.value), price=price).about("idle while held"), hours]


def _reserved(s: Schedule, p: Prices) -> tuple[BillLine, ...]:
    needs = tuple(name for name in ("reserved", "term") if math.isnan(getattr(p, name)))
    if needs:
        return (BillLine("reservation", UNKNOWN, needs, main=True),)

    def values(days: float) -> dict[str, float]:
        terms = float(max(1, math.ceil(days / p.term - 1e-9)))
        return {"price": p.reserved, "accelerators": s.fleet.accelerators, "term": p.term, "terms": terms}

    interval = s.ends.through(lambda days: float(reservation(**values(days))))
    return (
        BillLine("reservation", interval, main=True, explained=lambda: [reservation.explain(**values(s.ends.mid))]),
    )


def _owned(s: Schedule, p: Prices) -> tuple[BillLine, ...]:
    used = {"capital": p.capital, "accelerators": float(s.fleet.accelerators), "years": p.years}
    energy = energy_of(s)
    bill = energy.through(lambda wh: float(power_bill(energy=wh, price=p.kwh))) if energy.known else UNKNOWN
    power = {"energy": energy.mid, "price": p.kwh}
    return (
        _over_days(s, "capital", capital_used, used, ("capital", "years"), p, main=True),
        BillLine(
            "power",
            bill,
            _missing(p, ("kwh",)) if energy.known else ("watts",),
            explained=lambda: [power_bill.explain(**power)] if bill.known else [],
        ),
        *yearly_lines(s, p),
    )


def yearly_lines(s: Schedule, p: Prices) -> tuple[BillLine, ...]:
    """Staff and space of a fleet of one's own."""
    return tuple(
        _over_days(s, name, share_of_years, {"yearly": getattr(p, name)}, (name,), p) for name in ("staff", "space")
    )


def _missing(p: Prices, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if math.isnan(getattr(p, name)))


def _over_days(
    s: Schedule,
    id: str,
    rule: Formula[...],
    values: dict[str, float],
    names: Sequence[str],
    p: Prices,
    *,
    main: bool = False,
) -> BillLine:
    """A line that grows with the days of the calendar."""
    needs = _missing(p, names)
    if needs:
        return BillLine(id, UNKNOWN, needs, main)

    def explain() -> list[Explanation]:
        return [rule.explain(days=s.ends.mid, **values).about(id)]

    return BillLine(id, s.ends.through(lambda days: float(rule(days=days, **values))), (), main, explain)
