"""A plan as a person asks for it: which quantity to find, in which limit, and the answer with its range.

The range is that of the MFU: at its low end the run takes longer, or fewer tokens fit. Prices are a range of their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from core.formula import Explanation
from core.hardware.accelerators import Accelerator
from core.models.flops import train_flop_6nd
from core.planning.budget.interval import Interval
from core.planning.budget.rule import Plan, effective_utilisation
from core.planning.budget.solver import BudgetError, SolvedBudget, Unknown, solve_budget
from core.planning.counting.lengths import Work
from core.planning.evidence.comparable import Comparables, Profile, comparable
from core.planning.evidence.rows import Evidence, Width, base_peak
from core.planning.evidence.runs import PublishedRun
from core.units import QuantityError, parse_quantity

Find: TypeAlias = Literal["time", "cost", "tokens", "parameters", "accelerators", "MFU"]
"""What can be asked for."""

FINDS: tuple[Find, ...] = ("time", "cost", "tokens", "parameters", "accelerators", "MFU")

UNKNOWN: Mapping[Find, Unknown] = {
    "time": "days",
    "cost": "days",
    "tokens": "tokens",
    "parameters": "parameters",
    "accelerators": "accelerators",
    "MFU": "mfu",
}
"""What the budget is solved for; the cost follows from the time."""

PUBLISHED = "published"
"""Typed for the MFU: take that of comparable published runs."""

_LONGEST_DAYS = 365_250.0
_SPAN = re.compile(r"(?<=[\d%])\s*(?:-|–|to)\s*(?=[\d.])")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run must keep to: days on the wall, or dollars; the other one is NaN."""

    days: float
    dollars: float

    @property
    def in_money(self) -> bool:
        return math.isnan(self.days)


def parse_mfu(text: str) -> Interval | None:
    """A typed MFU, ``0.4``, ``40%`` or a range ``35-45%``; None for ``published`` and for nothing.

    Raises `QuantityError` with the rule and an example otherwise.
    """
    if text.strip().lower() in ("", PUBLISHED):
        return None
    ends = _SPAN.split(text.strip())
    example = f"0.4, 40%, 35-45%, or {PUBLISHED}"
    if len(ends) > 2:
        raise QuantityError(f"“{text.strip()}” is neither a share nor a range of shares. For example: {example}.")
    if len(ends) == 2 and ends[1].endswith("%") and not ends[0].endswith("%"):
        ends[0] += "%"
    found = sorted(parse_quantity(end, "ratio", low=0.001, high=1.0, example=example) for end in ends)
    return Interval(found[0], (found[0] + found[-1]) / 2, found[-1])


def parse_within(text: str) -> Limits:
    """A typed limit: a duration such as ``90 days``, or money such as ``$5M``.

    Raises `QuantityError` with the rule and an example otherwise.
    """
    example = "90 days, 6 weeks or $5M"
    if "$" in text:
        return Limits(math.nan, parse_quantity(text, "usd", low=1.0, high=1e15, example=example))
    bare = re.fullmatch(r"\s*[\d.,]+\s*", text)
    if bare:
        raise QuantityError(f"“{text.strip()}” has no unit. Did you mean {text.strip()} days? For example: {example}.")
    seconds = parse_quantity(text, "seconds", low=60.0, high=_LONGEST_DAYS * 86400, example=example)
    return Limits(seconds / 86400, math.nan)


@dataclass(frozen=True, slots=True)
class Outlook:
    """The answer at the middle of the MFU's range, and at its two ends.

    find: what was asked for. limits: what it had to keep to, None for time and cost. at_low, at_high: the budget at
    the low and the high end of the MFU; the same object as ``middle`` where the MFU is exact. usd: dollars over both
    ranges, NaN where the price is unknown. work: a token's at long sequences, None where it is 6N.
    """

    find: Find
    limits: Limits | None
    middle: SolvedBudget
    at_low: SolvedBudget
    at_high: SolvedBudget
    mfu: Interval
    usd: Interval
    plan: Plan
    work: Work | None = None

    @property
    def by_rule(self) -> Plan:
        """The plan with its MFU by 6ND alone, which of the work of long sequences sees a part."""
        return self.plan if self.work is None else replace(self.plan, mfu=self.plan.mfu / self.work.factor)

    def over(self, name: str) -> Interval:
        """The range of the budget's quantity ``name`` over the MFU's."""
        ends = sorted(float(getattr(end, name)) for end in (self.at_low, self.at_high))
        return Interval(ends[0], float(getattr(self.middle, name)), ends[1])


def outlook(
    find: Find,
    *,
    parameters: float,
    tokens: float,
    accelerators: float,
    peak: float,
    mfu: Interval,
    prices: tuple[float, float],
    limits: Limits | None = None,
    goodput: float = 1.0,
    work: Work | None = None,
) -> Outlook:
    """Solve for ``find``; the argument of that name is not looked at, and neither are limits for time and cost.

    prices: dollars per accelerator-hour, low and high, NaN when unknown. work: what long sequences make of 6N.
    Raises `BudgetError`, whose field names what is at fault, where there is no answer: money without a price, a limit
    no cluster can keep, numbers that overflow.
    """
    unknown = UNKNOWN[find]
    given: dict[str, object] = {"parameters": parameters, "tokens": tokens, "accelerators": accelerators}
    price = _middle_price(prices)
    if unknown == "days":
        limits = None
    elif limits is None:
        raise BudgetError("days", "Say how long the run may take, or what it may cost. For example: 90 days.")
    elif not limits.in_money:
        given["days"] = limits.days
    elif unknown == "accelerators":
        raise BudgetError(
            "dollars",
            "Twice the accelerators for half the time cost the same, so money alone does not say how many: give a "
            "time. For example: 90 days.",
        )
    elif math.isnan(price):
        raise BudgetError(
            "price", "Money buys nothing without a price per accelerator-hour: type one. For example: 2.50."
        )
    else:
        given["dollars"] = limits.dollars
    given.pop(unknown, None)
    if not math.isnan(price):
        # Money buys least where the price is highest.
        given["price"] = np.array([prices[1], price, prices[0]])
    if unknown != "mfu":
        given["mfu"] = np.array([mfu.low, mfu.mid, mfu.high])
    same = {"goodput": goodput, "flop_per_parameter": work.per_parameter if work else 6.0}
    solved = solve_budget(**given, peak=np.full(3, peak), **same)
    if np.isnan(solved.mfu).any():
        # Of an array only the entries that cannot be met are unknown; alone, the worst of them says why.
        worst = {name: float(np.asarray(value, dtype=np.float64).flat[0]) for name, value in given.items()}
        solve_budget(**worst, peak=peak, **same)
    low, middle, high = (solved.at(i) for i in range(3))
    hours = sorted(float(end.hours) for end in (low, high))
    return Outlook(
        find=find,
        limits=limits,
        middle=middle,
        at_low=low,
        at_high=high,
        mfu=Interval(*sorted(float(end.mfu) for end in (low, middle, high))),
        usd=_dollars(limits, hours, float(middle.hours), prices),
        plan=Plan(
            params=float(middle.parameters),
            tokens=float(middle.tokens),
            accelerators=float(middle.accelerators),
            peak=peak,
            mfu=float(middle.mfu),
            price_low=prices[0],
            price_high=prices[1],
        ),
        work=work if work and work.factor > 1 else None,
    )


def _dollars(limits: Limits | None, hours: list[float], middle: float, prices: tuple[float, float]) -> Interval:
    if limits and limits.in_money:
        return Interval(limits.dollars, limits.dollars, limits.dollars)
    return Interval(hours[0] * prices[0], middle * _middle_price(prices), hours[1] * prices[1])


def _middle_price(prices: tuple[float, float]) -> float:
    return (prices[0] + prices[1]) / 2


@dataclass(frozen=True, slots=True)
class Published:
    """The comparable published runs, and the MFU that they lead one to expect, over the plan's own peak.

    scale: that MFU over their utilisation of the dense 16-bit peak.
    """

    peers: Comparables
    mfu: Interval
    scale: float

    @property
    def middle(self) -> Evidence:
        """The run nearest to the median, as an example of how utilisations are worked out."""
        return min(self.peers.rows, key=lambda row: abs(row.utilisation - self.peers.utilisation.mid))


def explain_row(row: Evidence) -> Explanation:
    """The utilisation of a published run with its formula; of a steady measurement, per accelerator and second."""
    run, peak = row.run, base_peak(row.run.accelerator)
    flop = train_flop_6nd(run.params, 1.0 if math.isnan(run.tokens) else run.tokens)
    hours = flop / (3600 * peak * row.utilisation)
    return replace(
        effective_utilisation.explain(flop=flop, hours=hours, peak=peak),
        title=f"{effective_utilisation.title}: {run.model} on {run.accelerator}",
    )


_WIDTHS: Mapping[str, Width] = {"fp8": "8-bit", "int8": "8-bit", "fp6": "8-bit", "fp4": "4-bit"}
_FIRST_GUESS = 70e9
_RATIO_GUESS = 100.0
_ROUNDS = 4


def published_mfu(device: Accelerator, dtype: str, params: float, tokens: float, *, experts: bool) -> Published:
    """The published runs comparable with so many parameters and tokens on ``device``.

    A format of 8 bits or fewer is held against its own, higher peak. Wider ones are taken to reach the same share of
    their lower peak.
    """
    peers = comparable(Profile(params, tokens, device.name, experts, _WIDTHS.get(dtype, "16-bit")))
    scale = base_peak(device.name) / device.peak(dtype)
    scale = scale if dtype in _WIDTHS and scale < 1 else 1.0
    return Published(peers, peers.utilisation.through(lambda used: used * scale), scale)


def ask_outlook(
    find: Find,
    *,
    parameters: float,
    tokens: float,
    accelerators: float,
    device: Accelerator,
    dtype: str,
    experts: bool,
    mfu: Interval | None,
    prices: tuple[float, float],
    limits: Limits | None = None,
    length: Callable[[float], Work] | None = None,
) -> tuple[Outlook, Published]:
    """`outlook` at ``mfu``, or where that is None at the MFU of the comparable published runs; and those runs.

    Which runs are comparable depends on parameters and tokens. The one that is asked for starts at a guess, and is
    looked for again with the runs comparable to the last answer until they stay the same. length: the work of a token
    at the plan's sequence length, of a model with so many parameters; without it 6N at any length.
    """
    if find == "parameters":
        parameters = _FIRST_GUESS
    elif find == "tokens":
        tokens = _RATIO_GUESS * parameters
    seen = published_mfu(device, dtype, parameters, tokens, experts=experts)
    rounds = _ROUNDS
    while True:
        work = length(parameters) if length else None
        found = outlook(
            find,
            parameters=parameters,
            tokens=tokens,
            accelerators=accelerators,
            peak=device.peak(dtype),
            mfu=mfu or seen.mfu,
            prices=prices,
            limits=limits,
            work=work,
        )
        parameters, tokens = found.plan.params, found.plan.tokens
        again = published_mfu(device, dtype, parameters, tokens, experts=experts)
        rounds -= 1
        if not rounds or (again.peers.rows == seen.peers.rows and (not length or length(parameters) == work)):
            return found, seen
        seen = again


@dataclass(frozen=True, slots=True)
class Peer:
    """A published run, and what the plan would come to at its utilisation: ``value`` in the unit of what was found."""

    run: PublishedRun
    mfu: float
    value: float


def peers_of(o: Outlook, seen: Published) -> tuple[Peer, ...]:
    """The plan at the utilisation of each comparable run: days, dollars, tokens, parameters, accelerators or MFU."""
    rows = ((row.run, row.utilisation * seen.scale) for row in seen.peers.rows)
    return tuple(Peer(run, mfu, at_mfu(o, mfu)) for run, mfu in rows)


def at_mfu(o: Outlook, mfu: float) -> float:
    """What was found, at another MFU: tokens and parameters rise with it, time, cost and accelerators fall."""
    if o.find == "MFU":
        return mfu
    if o.find in ("tokens", "parameters"):
        return found_value(o) * mfu / o.plan.mfu
    return found_value(o) * o.plan.mfu / mfu


def found_value(o: Outlook) -> float:
    """What was found, as a number: days, dollars, tokens, parameters, accelerators or MFU."""
    return o.usd.mid if o.find == "cost" else o.over(UNKNOWN[o.find]).mid
