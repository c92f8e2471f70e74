"""Offers of accelerators as rows of a table: read cell by cell, or from a line such as ``256 own H100``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from core.dates import parse_day
from core.hardware.accelerators import Accelerator, accelerators, find, find_accelerator_name, find_in_nodes
from core.hardware.offers import CONTRACTS, Contract, OfferError, OfferTerms, read_offer
from core.limits import limit
from core.messages import message, pick_message
from core.number_text import QuantityError
from core.planning.form.layout import PER_NODE
from core.planning.form.plan_form import ACCELERATOR, COUNT, PRICE, changes_on
from core.planning.form.whole_run import POWER_LIMIT, SPOT_INTERRUPTIONS
from core.planning.plan import Plan, parse_price
from core.quantities import parse_quantity
from core.suggest import suggestions
from core.wording import cleaned

Cells: TypeAlias = Mapping[str, str]
"""A row of a table as typed: column to text. A missing column is empty."""

_COLUMNS = "name accelerator count unit contract price first last power maintenance interruptions"
OFFER_COLUMNS = tuple(_COLUMNS.split())

YEAR_DAYS = 365.25
_USEFUL_YEARS, _TERM_DAYS = 5.0, 365
_MONTH_HOURS = 24 * YEAR_DAYS / 12
_RACK = 32
"""Accelerators of a node from which on it is a rack."""


@dataclass(frozen=True, slots=True)
class CellProblem:
    """A cell that cannot be read: its row, its column, and why."""

    row: int
    column: str
    reason: str


@dataclass(frozen=True, slots=True)
class Offer:
    """Accelerators of one kind on the same terms.

    Attributes:
        row: Index of its row in the table.
        unit: Accelerators that come together: a node, or a rack.
        or_more: Whether more than ``count`` can be had.
        prices: Dollars per accelerator-hour, low and high. None takes the catalog's.
        capital, years: Dollars of an owned accelerator, and its useful life. NaN if unknown.
        first, last: Days on which it is open, both included. None without a bound.
        watts: Power limit of its site. NaN without one.
        maintenance: Hours a month in which nothing runs.
        interruptions: Interruptions an hour, of spot capacity.
        per_node: Accelerators of a node. None for the usual number.
    """

    row: int
    name: str
    accelerator: str
    count: int
    unit: int
    or_more: bool = False
    contract: Contract = "rented"
    prices: tuple[float, float] | None = None
    capital: float = math.nan
    years: float = math.nan
    first: date | None = None
    last: date | None = None
    watts: float = math.nan
    maintenance: float = 0.0
    interruptions: float = 0.0
    per_node: int | None = None

    @property
    def device(self) -> Accelerator:
        """The accelerator of the catalog."""
        return find_in_nodes(self.accelerator, self.per_node) if self.per_node else find(self.accelerator)

    @property
    def uptime(self) -> float:
        """Share of the time that maintenance leaves."""
        return 1 - self.maintenance / _MONTH_HOURS

    def opens(self, start: date) -> float:
        """Days from the midnight of ``start`` until it opens; 0 where it is open already."""
        return max(0.0, float((self.first - start).days)) if self.first else 0.0

    def closes(self, start: date) -> float:
        """Days from the midnight of ``start`` to the end of its last day; infinite without one."""
        return float((self.last - start).days + 1) if self.last else math.inf

    def term(self, start: date) -> float:
        """Days of a reservation from ``start`` on: to its last day, or a year."""
        begin = self.opens(start)
        return max(0.0, (self.closes(start) if self.last else begin + _TERM_DAYS) - begin)

    def parts(self) -> tuple[int, ...]:
        """Three, two and one quarters of it, in whole units, each no fewer than one and fewer than all."""
        units = self.count / self.unit
        sizes = {self.unit * max(1, math.floor(units * quarters / 4 + 1e-9)) for quarters in (3, 2, 1)}
        return tuple(sorted((size for size in sizes if size < self.count), reverse=True))

    def texts(self, count: int, plan: Plan) -> dict[str, str]:
        """Return the texts of a plan's fields that put ``plan`` on so many of it."""
        prices = (0.0, 0.0) if self.contract == "owned" else self.prices or ()
        changes = {ACCELERATOR.id: self.accelerator, COUNT.id: f"{count:,}"}
        changes[PRICE.id] = "-".join(digits(price) for price in dict.fromkeys(prices))
        changes[SPOT_INTERRUPTIONS.id] = digits(self.interruptions) if self.interruptions else ""
        return changes_on(plan.accelerator, changes | ({PER_NODE.id: f"{self.per_node}"} if self.per_node else {}))


@dataclass(frozen=True, slots=True)
class OfferTable:
    """Offers as read.

    Attributes:
        rows: The rows as given, a line such as ``256 own H100`` spread over the cells of its row.
        offers: Those of the rows without a problem.
        problems: One for each cell that cannot be read.
    """

    rows: tuple[Cells, ...]
    offers: tuple[Offer, ...]
    problems: tuple[CellProblem, ...]


def digits(value: float) -> str:
    """Return a number in digits alone, without an exponent."""
    return f"{Decimal(repr(value)):f}".removesuffix(".0")


def read_table(text: str, columns: Sequence[str]) -> tuple[Cells, ...]:
    """Return the rows of a text with a line a row, whose cells are separated by tabs."""
    lines = text.split("\n") if text else []
    return tuple(dict(zip(columns, line.split("\t"), strict=False)) for line in lines)


def write_table(rows: Sequence[Cells], columns: Sequence[str]) -> str:
    """Return rows as a text that `read_table` reads back: tabs and line breaks in cells become spaces."""
    cells = [[" ".join(row.get(column, "").split()) for column in columns] for row in rows]
    return "\n".join("\t".join(row).rstrip("\t") for row in cells).rstrip("\n")


def read_offers(rows: Sequence[Cells], plan: Plan, start: date) -> OfferTable:
    """Return the offers of a table.

    Args:
        rows: Empty rows are skipped.
        plan: Whose interruptions spot capacity without any has.
        start: First day of a term that is given in days.
    """
    spread = tuple(_spread(row, start) for row in rows)
    offers: list[Offer] = []
    problems: list[CellProblem] = []
    for i, row in enumerate(spread):
        if not any(text.strip() for text in row.values()):
            continue
        reader = CellReader(i, row)
        if len(offers) == limit("pools"):
            reader.fail("accelerator", message("decision.most_offers", most=float(limit("pools"))))
        offer = None if reader.problems else _offer(reader, plan)
        problems += reader.problems
        if offer and not reader.problems:
            offers.append(offer)
    names = numbered([offer.name for offer in offers])
    named = (replace(offer, name=name) for offer, name in zip(offers, names, strict=True))
    return OfferTable(spread, tuple(named), tuple(problems))


def numbered(names: Sequence[str]) -> list[str]:
    """Return names, each that stands a second time with its number behind it."""
    taken: list[str] = []
    for name in names:
        others = (name if k == 1 else f"{name} {k}" for k in range(1, len(names) + 1))
        taken.append(next(one for one in others if one.casefold() not in {other.casefold() for other in taken}))
    return taken


class CellReader:
    """Reads the cells of one row, and collects what is wrong with them."""

    def __init__(self, row: int, cells: Cells) -> None:
        self.row, self.cells = row, cells
        self.problems: list[CellProblem] = []

    def text(self, column: str) -> str:
        """The text of a cell without blanks around it."""
        return self.cells.get(column, "").strip()

    def fail(self, column: str, reason: str) -> None:
        """Mark a cell."""
        self.problems.append(CellProblem(self.row, column, reason))

    def read(self, column: str, parse: Callable[[str], Any], empty: Any = None) -> Any:
        """Return the value of a cell; ``empty`` where it is empty, or cannot be read."""
        if not (text := self.text(column)):
            return empty
        try:
            return parse(text)
        except QuantityError as problem:
            self.fail(column, str(problem))
            return empty


_MORE = re.compile(r"\s*(?:or more|and more|\+|at least|≥|>=)\s*", re.IGNORECASE)
_WORDS: Mapping[Contract, str] = {"owned": "own our bou", "rented": "ren on-", "reserved": "res com", "spot": "spo pre"}
"""Contract to how words begin that say it."""


def _spread(row: Cells, start: date) -> Cells:
    """A row whose accelerator, name or count is a whole line, with what that says in the cells that are empty."""
    for column in ("accelerator", "name", "count"):
        text = row.get(column, "")
        others = [name for name in ("accelerator", "count") if name != column and row.get(name, "").strip()]
        if not re.search(r"\d", text) or others:
            continue
        try:
            read = read_offer(text)
        except OfferError:
            continue
        if read.count is not None:
            line = offer_cells(read, start)
            return {**line, **{name: cell for name, cell in row.items() if cell.strip() and name != column}}
    return row


def offer_cells(read: OfferTerms, start: date, count: int = 1) -> dict[str, str]:
    """Return the cells of an offer that was read from a line.

    Args:
        start: First day of a term without one.
        count: Accelerators where the line says no number.
    """
    usable = count if read.count is None else read.count - read.spare_nodes * read.node_size
    last = read.last
    if read.days and not last:
        last = (read.first or start) + timedelta(days=read.days - 1)
    price = "-".join(
        f"${end:.2f}" if round(end, 2) == end else f"${digits(end)}" for end in dict.fromkeys(read.hourly or ())
    )
    if read.capital is not None:
        price = f"${digits(read.capital)}" + (f" over {digits(read.years)} years" if read.years else "")
    unit, more = read.per_node or "", "" if read.is_ceiling else " or more"
    days = (str(read.first or ""), str(last or ""))
    texts = (read.name, read.accelerator, f"{usable:,}{more}", f"{unit}", read.contract or "", price, *days)
    interruptions = digits(read.interruptions) if read.interruptions else ""
    cells = zip(OFFER_COLUMNS, (*texts, "", "", interruptions), strict=True)
    return {column: cell for column, cell in cells if cell}


def _offer(reader: CellReader, plan: Plan) -> Offer | None:
    if not reader.text("accelerator") + reader.text("count") and re.search(r"\d", reader.text("name")):
        reader.read("name", read_offer)  # a whole line, which says itself what is wrong with it
    for column, missing in (("accelerator", "decision.no_accelerator"), ("count", "decision.no_count")):
        if not reader.text(column) and not reader.problems:
            reader.fail(column, pick_message(missing))
    name, (count, or_more) = reader.read("accelerator", _accelerator), reader.read("count", _count, (1, False))
    if reader.problems:
        return None
    contract: Contract = reader.read("contract", _contract, "owned" if "over" in reader.text("price") else "rented")
    owned, none = contract == "owned", (math.nan, math.nan)
    capital, years = reader.read("price", _capital, none) if owned else none
    per_node, unit = reader.read("unit", lambda text: _unit(text, find(name)), (None, find(name).node_size))
    first, last = reader.read("first", parse_day), reader.read("last", parse_day)
    if first and last and last < first:
        reader.fail("last", message("decision.ends_before", first=str(first), last=str(last)))
    interruptions = reader.read("interruptions", _number(limit("interruptions")), plan.reliability.taken)
    if contract == "spot" and not interruptions:
        reader.fail("interruptions", message("decision.no_interruptions"))
    return Offer(
        reader.row,
        cleaned(reader.text("name"), limit("run_name")) or name,
        name,
        count,
        unit,
        or_more,
        contract,
        prices=None if owned else reader.read("price", parse_price),
        capital=capital,
        years=years,
        first=first,
        last=last,
        watts=reader.read("power", POWER_LIMIT.parse, math.nan),
        maintenance=reader.read("maintenance", _number(limit("maintenance_hours")), 0.0),
        interruptions=interruptions if contract == "spot" else 0.0,
        per_node=per_node,
    )


def _number(most: float) -> Callable[[str], float]:
    return lambda text: parse_quantity(text, "number", high=float(most))


def _accelerator(text: str) -> str:
    found = find_accelerator_name(text)
    if found and found.name:
        return found.name
    near = suggestions(text, [device.name for device in accelerators()])
    raise QuantityError(
        message("decision.accelerator", entered=text[: limit("number_chars")], near=near or ["H100 SXM"])
    )


def _count(text: str) -> tuple[int, bool]:
    number = _MORE.sub("", text)
    return int(COUNT.parse(number)), number != text


def _contract(text: str) -> Contract:
    for contract, words in _WORDS.items():
        if text[:3].lower() in words.split():
            return contract
    raise QuantityError(message("decision.contract", entered=text[: limit("number_chars")], options=CONTRACTS))


def _capital(text: str) -> tuple[float, float]:
    amount, _, years = text.partition(" over ")
    capital = parse_quantity(amount, "usd", high=float(limit("dollars")), example="$30,000 over 4 years")
    number = years.strip().removesuffix("s").removesuffix("year")
    return capital, parse_quantity(number, "number", low=0.1, high=50) if years else _USEFUL_YEARS


def _unit(text: str, device: Accelerator) -> tuple[int | None, int]:
    """Accelerators of a node where that is another number, and those that come together."""
    word = text.lower().removesuffix("s")
    if word == "node" or (word == "rack" and device.node_size >= _RACK):
        return None, device.node_size
    unit = int(parse_quantity(text, "count", low=1, high=limit("node"), whole=True, example="node, or 72"))
    return None if unit % device.node_size == 0 else unit, unit
