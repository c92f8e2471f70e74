"""Pools of accelerators, as somebody types them: what is owned, rented or reserved, how many, at what price, and when.

One pool a line: ``ours: 512 H100 SXM owned $30,000 over 4 years``. A run trains on one pool: accelerators of two kinds,
or of two places, do not share a job here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from core.dates import parse_day
from core.hardware.accelerators import accelerators, slug
from core.hardware.accelerators import find as find_accelerator
from core.limits import limit
from core.planning.calendar.dates import Closed
from core.planning.plan import Plan, parse_price
from core.runs.goodput import MOST_TAKEN
from core.suggest import suggestions
from core.units import QuantityError, parse_quantity
from core.wording import cleaned

Holding: TypeAlias = Literal["owned", "rented", "reserved"]
"""How a pool is held: bought, paid for while runs work, or paid for from its first to its last day."""

_HOLDING: Mapping[str, Holding] = {"owned": "owned", "rented": "rented", "reserved": "reserved", "spot": "rented"}
"""The word of a line → how its pool is held."""

HOLDING_WORDS = tuple(_HOLDING)

OWN_CLUSTER = "the plan’s cluster"
"""The pool of a run that names none."""

EXAMPLES = (
    "ours: 512 H100 SXM owned $30,000 over 4 years, 2 spare nodes",
    "burst: 1,024 H200 rented $2.60/h from 2027-03-01 to 2027-09-01",
)


@dataclass(frozen=True, slots=True)
class PoolEvent:
    """So many accelerators of a pool that no run can have, on the days of ``days``: lost, or in maintenance."""

    accelerators: int
    days: Closed


@dataclass(frozen=True, slots=True)
class Pool:
    """Accelerators of one kind that are held together.

    spares: of them, kept idle to replace those that are out. prices: dollars per accelerator-hour, low and high; None
    takes the catalogue's. capital: dollars of one accelerator that is owned, over ``years``. idle: dollars of an hour
    in which an accelerator is held and no run works, beside what holding it costs anyway. first, last: days, None
    where it is open. interruptions: an hour, each of which stops whatever runs on it, as spot capacity does.
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
    """Pools that were typed, and what is wrong with lines that are none."""

    pools: tuple[Pool, ...] = ()
    problems: tuple[str, ...] = ()

    def named(self, name: str) -> Pool | None:
        """The pool of this name, whatever its case."""
        return next((pool for pool in self.pools if pool.name.casefold() == name.strip().casefold()), None)


def parse_pools(text: str) -> PoolList:
    """The pools of lines as typed. A line that cannot be read is left out, and named with its number and an example."""
    if len(text) > limit("spec_chars"):
        raise QuantityError(f"{len(text):,} characters; {limit('spec_chars'):,} are the most here.")
    pools: list[Pool] = []
    problems: list[str] = []
    lines = [(number, line.strip()) for number, line in enumerate(_lines(text), 1) if line.strip()]
    for number, line in lines:
        try:
            pool = _pool(line)
            if any(pool.name.casefold() == other.name.casefold() for other in pools):
                raise QuantityError(f"“{pool.name}” is the name of an earlier pool: give it another.")
            if len(pools) == limit("pools"):
                raise QuantityError(f"{len(lines)} pools; {limit('pools')} are the most here.")
            pools.append(pool)
        except QuantityError as problem:
            example = "" if "For example" in str(problem) else f" For example: {EXAMPLES[0]}."
            problems.append(f"Line {number} of the pools is left out. {problem}{example}")
    return PoolList(tuple(pools), tuple(problems))


def without(text: str, pool: Pool, accelerators: int) -> str:
    """The lines of ``text`` with so many accelerators less of a pool: without its line where none are left."""
    left = max(0, pool.usable - accelerators)
    lines: list[str] = []
    for line in _lines(text):
        if parse_pools(line).named(pool.name) is None:
            lines.append(line)
        elif left:
            lines.append(_COUNT.sub(rf"\g<1>{left + pool.spares:,}", line, count=1))
    return "\n".join(lines)


def _lines(text: str) -> list[str]:
    """One pool each: lines, or what a semicolon and the next pool's name part."""
    return [line for lines in text.splitlines() for line in _NEXT.split(lines)]


_NEXT = re.compile(r"\s*;\s*(?=[^:;]+:\s*\d)")
_HEAD = re.compile(r"([^:]+):\s*([\d.,]+(?:\s*[kM]\b)?)\s*(?:×|x\s)?\s*(\S.*)")
_COUNT = re.compile(r"^([^:]+:\s*)[\d.,]+(?:\s*[kM]\b)?")
_HELD = re.compile(rf"\s+({'|'.join(_HOLDING)})\b[\s,;]*", re.IGNORECASE)
_AMOUNT = r"\$?\s*[\d.,]*\d\s*[kKmMbB]?"
_DAY = r"\d{4}-\d{2}-\d{2}"


def _pool(line: str) -> Pool:
    """The pool of one line."""
    head = _HEAD.fullmatch(line)
    if head is None:
        raise QuantityError(f"A pool is a name, a colon, how many, and of what. For example: {EXAMPLES[0]}.")
    name = cleaned(" ".join(head[1].split()), limit("run_name"))
    if not name or name.casefold() == OWN_CLUSTER:
        raise QuantityError(f"It needs a name of its own. For example: {EXAMPLES[0]}.")
    count = _whole(head[2], "512")
    held = _HELD.search(f"{head[3]} ")
    if held is None:
        raise QuantityError(
            f"“{name}” does not say whether it is owned, rented, reserved or spot. For example: {EXAMPLES[1]}."
        )
    accelerator = accelerator_named(head[3][: held.start()])
    word = held[1].lower()
    pool = _with_clauses(Pool(name, accelerator, count, _HOLDING[word]), f"{head[3]} "[held.end() :])
    return _checked(pool, spot=word == "spot")


def accelerator_named(text: str) -> str:
    """The accelerator of a typed name, whatever its case; where several begin so, the SXM one. Raises `QuantityError`
    with those that are like it."""
    names = {slug(device.name): device.name for device in accelerators()}
    wanted = slug(text)
    if name := names.get(wanted) or names.get(f"{wanted}-sxm"):
        return name
    close = suggestions(text, list(names.values()))
    meant = f" Did you mean {' or '.join(close)}?" if close else ""
    raise QuantityError(f"No accelerator is called “{text.strip()[: limit('number_chars')]}”.{meant}")


def _whole(text: str, example: str) -> int:
    return int(parse_quantity(text, "count", low=1, high=limit("accelerators"), whole=True, example=example))


def _dollars(text: str) -> float:
    return parse_quantity(text, "usd", high=float(limit("dollars")), example="$30,000")


def _out(pool: Pool, match: re.Match[str]) -> dict[str, Any]:
    """Accelerators, or nodes, that are out from a day on, to another or for so many days."""
    count = _whole(match["count"], "64 out from 2027-05-01 to 2027-05-03")
    count *= find_accelerator(pool.accelerator).node_size if match["nodes"] else 1
    if count > pool.accelerators:
        raise QuantityError(f"{count:,} are out of {pool.accelerators:,}: more than “{pool.name}” has.")
    first = last = parse_day(match["first"])
    if match["days"]:
        last = first + timedelta(days=_whole(match["days"], "3 days") - 1)
    elif match["last"]:
        last = parse_day(match["last"])
    if last < first:
        raise QuantityError(f"{count:,} are out from {first} to {last}, which is before it.")
    return {"events": (*pool.events, PoolEvent(count, Closed(first, last)))}


def _interrupted(pool: Pool, match: re.Match[str]) -> dict[str, Any]:
    """Interruptions an hour, also as typed by the day."""
    rate = parse_quantity(match["rate"], "number", high=MOST_TAKEN, example="0.05 interruptions/h")
    return {"interruptions": rate / (24 if match["per"].startswith("d") else 1)}


def _spare_nodes(pool: Pool, match: re.Match[str]) -> dict[str, Any]:
    return {"spares": _whole(match["count"], "2") * find_accelerator(pool.accelerator).node_size}


def _prices(_: Pool, match: re.Match[str]) -> dict[str, Any]:
    return {"prices": parse_price(match["prices"].replace("$", ""))}


def _idle(_: Pool, match: re.Match[str]) -> dict[str, Any]:
    return {"idle": parse_price(match["price"])[0]}


def _capital(_: Pool, match: re.Match[str]) -> dict[str, Any]:
    years = parse_quantity(match["years"], "number", low=0.1, high=50, example="4 years")
    return {"capital": _dollars(match["capital"]), "years": years}


def _first(_: Pool, match: re.Match[str]) -> dict[str, Any]:
    return {"first": parse_day(match["first"])}


def _last(_: Pool, match: re.Match[str]) -> dict[str, Any]:
    return {"last": parse_day(match["last"])}


def _place(_: Pool, match: re.Match[str]) -> dict[str, Any]:
    return {"place": cleaned(match["place"].strip(), limit("run_name"))}


_Reader: TypeAlias = Callable[[Pool, re.Match[str]], dict[str, Any]]

_READERS: Mapping[str, _Reader] = {
    rf"(?P<count>[\d.,]*\d)(?:\s*(?P<nodes>nodes?))?\s+out\s+(?:from|on)\s+(?P<first>{_DAY})"
    rf"(?:\s+to\s+(?P<last>{_DAY})|\s+for\s+(?P<days>\d+)\s+days?)?": _out,
    r"(?P<rate>[\d.]+)\s+interruptions?\s*(?:/|per|an?)\s*(?P<per>h(?:our)?|d(?:ay)?)\b": _interrupted,
    r"(?P<count>[\d.,]*\d)\s+spare\s+nodes?": _spare_nodes,
    rf"idle\s+(?P<price>{_AMOUNT})\s*/\s*h(?:our)?\b": _idle,
    rf"(?P<prices>{_AMOUNT}(?:\s*[-–]\s*{_AMOUNT})?)\s*/\s*h(?:our)?\b": _prices,
    rf"(?P<capital>{_AMOUNT})(?:\s+each)?\s+over\s+(?P<years>[\d.]+)\s+years?": _capital,
    rf"from\s+(?P<first>{_DAY})": _first,
    rf"(?:to|until)\s+(?P<last>{_DAY})": _last,
    r"in\s+(?P<place>[^,;]+)": _place,
}
_CLAUSES = {re.compile(pattern, re.IGNORECASE): read for pattern, read in _READERS.items()}
"""What a line may say behind how its pool is held, and what reads it."""


def _with_clauses(pool: Pool, text: str) -> Pool:
    """The pool with all that its line says of it."""
    while text.strip(" ,;"):
        text = text.lstrip(" ,;")
        pairs = ((pattern.match(text), read) for pattern, read in _CLAUSES.items())
        match, read = next(((match, read) for match, read in pairs if match), (None, None))
        if match is None or read is None:
            rest = text.strip(" ,;")[: limit("number_chars")]
            meant = f" Did you mean {rest}/h?" if re.fullmatch(_AMOUNT, rest) else ""
            meant = " Prices here are in dollars." if re.match(r"[€£¥]", rest) else meant
            raise QuantityError(f"“{rest}” cannot be read.{meant} For example: {EXAMPLES[0]}, or {EXAMPLES[1]}.")
        pool, text = replace(pool, **read(pool, match)), text[match.end() :]
    return pool


def _checked(pool: Pool, *, spot: bool) -> Pool:
    """The pool, unless what its line says of it does not go together."""
    if pool.holding == "owned" and pool.prices is not None:
        raise QuantityError(f"“{pool.name}” is owned, and has a price per hour. It takes capital.")
    if pool.holding != "owned" and not math.isnan(pool.capital):
        raise QuantityError(f"“{pool.name}” is {pool.holding}, and has capital. For example: {EXAMPLES[1]}.")
    if spot and not pool.interruptions:
        raise QuantityError(
            f"“{pool.name}” is spot, and nobody knows how often it is taken away: say so, such as 0.05 interruptions/h."
        )
    if pool.usable < 1:
        raise QuantityError(f"{pool.spares:,} spares leave none of the {pool.accelerators:,} of “{pool.name}”.")
    if pool.first and pool.last and pool.last < pool.first:
        raise QuantityError(f"“{pool.name}” ends on {pool.last}, before it begins on {pool.first}.")
    return pool


def pool_line(
    name: str,
    count: str,
    accelerator: str,
    word: str,
    *,
    price: str = "",
    years: str = "",
    interruptions: str = "",
    first: str = "",
    last: str = "",
) -> str:
    """The line of a pool whose parts are typed one by one; none of them is checked. word: one of `HOLDING_WORDS`."""
    paid = f"${price.lstrip('$')} over {years} years" if word == "owned" else f"${price.lstrip('$')}/h"
    parts = [
        f"{name.replace(':', ' ')}: {count} {accelerator} {word}",
        paid if price else "",
        f"{interruptions} interruptions/h" if interruptions and word == "spot" else "",
        f"from {first}" if first else "",
        f"to {last}" if last else "",
    ]
    return ", ".join(part for part in parts if part)


def plan_on(pool: Pool, plan: Plan) -> Plan:
    """A plan on the accelerators of a pool, at its price and with its interruptions; how many it takes stays."""
    same = pool.accelerator == plan.accelerator
    return replace(
        plan,
        accelerator=pool.accelerator,
        network=plan.network if same else None,
        per_node=plan.per_node if same else None,
        prices=(0.0, 0.0) if pool.holding == "owned" else pool.prices,
        reliability=replace(plan.reliability, taken=pool.interruptions),
    )
