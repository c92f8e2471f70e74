"""Pools of accelerators: offers on a calendar, how many of them runs may take and when, and what they cost.

A run trains on one pool: accelerators of two kinds, or of two places, do not share a job here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Literal, TypeAlias

from core.hardware.offers import Contract, Offer, OfferError, quoted_line, read_offer
from core.limits import limit
from core.planning.calendar.dates import Closed
from core.planning.plan import Plan
from core.units import QuantityError
from core.wording import listed, plural

Holding: TypeAlias = Literal["owned", "rented", "reserved"]
"""How a pool is held: bought, paid for while runs work, or paid for from its first to its last day."""

_HOLDING: Mapping[Contract, Holding] = {
    "owned": "owned",
    "rented": "rented",
    "reserved": "reserved",
    "spot": "rented",
}
"""The contract of an offer → how its pool is held. Without a contract it is rented."""

OWN_CLUSTER = "the plan’s cluster"
"""The pool of a run that names none."""


@dataclass(frozen=True, slots=True)
class PoolEvent:
    """So many accelerators of a pool that no run can have, on the days of ``days``: lost, or in maintenance."""

    accelerators: int
    days: Closed


@dataclass(frozen=True, slots=True)
class Pool:
    """Accelerators of one kind on the same terms.

    spares: of them, idle to replace those that are out. prices: dollars per accelerator-hour, low and high; None takes
    the catalogue's. capital: dollars of one accelerator that is owned, over ``years``. idle: dollars of an hour in
    which an accelerator does no work, in addition to what the pool costs anyway. first, last: days; None where it is
    open. interruptions: an hour, each of which stops whatever runs on the pool, as spot capacity does. per_node:
    accelerators of a node; None for the usual number. is_ceiling: whether no more than ``accelerators`` can be had.
    in_catalogue: whether nobody offered it, and its price is the catalogue's.
    """

    name: str
    accelerator: str
    accelerators: int
    holding: Holding = "rented"
    spares: int = 0
    prices: tuple[float, float] | None = None
    capital: float = math.nan
    years: float = math.nan
    idle: float = math.nan
    first: date | None = None
    last: date | None = None
    place: str = ""
    events: tuple[PoolEvent, ...] = ()
    interruptions: float = 0.0
    per_node: int | None = None
    is_ceiling: bool = True
    in_catalogue: bool = False

    @property
    def most(self) -> float:
        """The most accelerators that runs can have; infinite if there is no ceiling."""
        return self.usable if self.is_ceiling else math.inf

    def part(self, count: int) -> Pool:
        """The pool with no more accelerators for runs than ``count``. Those that runs do not take replace the first of
        what is out, as its spares do."""
        out = ((event, event.accelerators - max(0, self.usable - count)) for event in self.events)
        events = tuple(replace(event, accelerators=left) for event, left in out if left > 0)
        return replace(self, accelerators=count + self.spares, events=events)

    def without(self, part: Pool) -> Pool | None:
        """What is left of the pool beside a part of it; None if nothing is, and if there is no ceiling."""
        left = self.accelerators - part.accelerators
        if left <= 0 or not self.is_ceiling:
            return None
        taken = {event.days: event.accelerators for event in part.events}
        out = ((event, min(left, event.accelerators - taken.get(event.days, 0))) for event in self.events)
        events = tuple(replace(event, accelerators=count) for event, count in out if count > 0)
        return replace(self, accelerators=left, spares=0, events=events)

    @property
    def usable(self) -> int:
        """Accelerators that runs may take."""
        return self.accelerators - self.spares

    def left(self, out: int) -> int:
        """Accelerators that runs may have while so many are out: spares stand in for the first of them."""
        return max(0, min(self.usable, self.accelerators - out))

    def capacity(self, start: date) -> tuple[tuple[float, float, int], ...]:
        """Times in days from ``start`` at which events leave runs fewer accelerators than usual, and how many."""
        spans = [
            (float((event.days.first - start).days), float((event.days.last - start).days + 1), event.accelerators)
            for event in self.events
        ]
        edges = sorted({edge for a, b, _ in spans for edge in (a, b)})
        times = [(a, b, self.left(sum(out for x, y, out in spans if x <= a < y))) for a, b in pairwise(edges)]
        return tuple(time for time in times if time[2] < self.usable)


@dataclass(frozen=True, slots=True)
class PoolList:
    """Offers as pools are made of them, each under a name of its own. problem: what is wrong with lines that are left
    out; empty if none is."""

    offers: tuple[Offer, ...] = ()
    problem: str = ""

    def pools(self, count: int, start: date) -> tuple[Pool, ...]:
        """The pools. count: of accelerators where an offer says none. start: when a term begins that says no day."""
        return tuple(_pool(offer, count, start) for offer in self.offers)


def parse_pools(text: str) -> PoolList:
    """Return the offers of a text, one a line. A line that cannot be read is left out, and quoted in the problem.

    Offers without a name get that of their accelerator. Raises `QuantityError` for a text that is too long.
    """
    if len(text) > limit("spec_chars"):
        raise QuantityError(f"{len(text):,} characters; {limit('spec_chars'):,} are the most here.")
    offers: list[Offer] = []
    problems: list[OfferError] = []
    for line in filter(None, map(str.strip, _lines(text))):
        try:
            offers.append(_checked(line, read_offer(line), offers))
        except OfferError as problem:
            problems.append(problem)
    names = [offer.name for offer in offers]
    for i, offer in enumerate(offers):
        numbered = (f"{offer.accelerator} {n}" if n > 1 else offer.accelerator for n in range(1, len(offers) + 1))
        names[i] = offer.name or next(name for name in numbered if name.casefold() not in _folded(names))
    return PoolList(
        tuple(replace(offer, name=name) for offer, name in zip(offers, names, strict=True)), _left_out(problems)
    )


def _checked(line: str, offer: Offer, earlier: Sequence[Offer]) -> Offer:
    """An offer of which a pool can be made."""
    if offer.name.casefold() == OWN_CLUSTER:
        raise OfferError(line, f"“{offer.name}” is the name of the plan’s own cluster.", "Write another name.")
    if offer.name and offer.name.casefold() in _folded([other.name for other in earlier]):
        raise OfferError(line, f"another pool has the name “{offer.name}”.", "Write another name.")
    if offer.contract == "spot" and not offer.interruptions:
        reason = "it does not say how often spot capacity is interrupted, without which its days are unknown."
        raise OfferError(line, reason, "Add, for example, 0.05 interruptions/h.")
    if len(earlier) == limit("pools"):
        raise OfferError(line, f"a calendar has at most {limit('pools')} pools.", "Remove a line.")
    return offer


def _folded(names: Sequence[str]) -> set[str]:
    return {name.casefold() for name in names}


def _left_out(problems: Sequence[OfferError]) -> str:
    """One message on all lines that are left out, those with the same problem together."""
    lines: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        lines.setdefault((problem.reason, problem.remedy), []).append(quoted_line(problem.line))
    if not lines:
        return ""
    said = list(lines.items())[:_SAID]
    parts = [f"{listed(_first(some))}: {reason} {remedy}".rstrip() for (reason, remedy), some in said]
    if more := len(problems) - sum(len(some) for _, some in said):
        parts.append(f"{more} more {'has another problem' if more == 1 else 'have other problems'}.")
    count = len(problems)
    return f"{count} {plural(count, 'pool')} {'is' if count == 1 else 'are'} left out. {' '.join(parts)}"


_SAID, _QUOTED = 2, 3
"""Problems, and lines of each, that one message names: the answer has to stay on the first screen."""


def _first(lines: Sequence[str]) -> list[str]:
    return [*lines[:_QUOTED], *([f"{len(lines) - _QUOTED} more"] if len(lines) > _QUOTED else [])]


def _pool(offer: Offer, count: int, start: date) -> Pool:
    spares = offer.spare_nodes * offer.node_size
    first, last = offer.first, offer.last
    if offer.days and not last:
        last = (first or start) + timedelta(days=offer.days - 1)
    return Pool(
        offer.name,
        offer.accelerator,
        count + spares if offer.count is None else offer.count,
        _HOLDING[offer.contract or "rented"],
        spares=spares,
        prices=offer.hourly,
        capital=math.nan if offer.capital is None else offer.capital,
        years=math.nan if offer.years is None else offer.years,
        idle=math.nan if offer.idle is None else offer.idle,
        first=first,
        last=last,
        place=offer.place,
        events=tuple(PoolEvent(out.accelerators, Closed(out.first, out.last)) for out in offer.outages),
        interruptions=offer.interruptions or 0.0,
        per_node=offer.per_node,
        is_ceiling=offer.is_ceiling,
    )


_NEXT = re.compile(r"\s*;\s*(?=[^:;]+:\s*\d)")


def _lines(text: str) -> list[str]:
    """One pool each: lines, or what a semicolon and the next pool's name part."""
    return [line for lines in text.splitlines() for line in _NEXT.split(lines)]


def plan_on(pool: Pool, plan: Plan) -> Plan:
    """A plan on the accelerators of a pool, at its price and with its interruptions; how many it takes stays."""
    on = plan.on_accelerator(pool.accelerator)
    return replace(
        on,
        per_node=pool.per_node or on.per_node,
        prices=(0.0, 0.0) if pool.holding == "owned" else pool.prices,
        reliability=replace(plan.reliability, taken=pool.interruptions),
    )
