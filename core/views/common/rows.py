"""Quantities as rows, which pages, tables, and files print alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from core.messages import Message, message
from core.units import UNIT, Kind, format_quantity
from core.wording import format_value, span


@dataclass(frozen=True, slots=True)
class Row:
    """Quantity that a page, a table, or a file shows.

    key: a name that does not change. value: median in the base unit of ``kind``, or a text. pessimistic, optimistic:
    values of its scenarios, NaN without a range. note: its basis. formula: name of the formula that computed it; empty
    if entered.
    """

    key: str
    label: Message
    value: float | str
    kind: Kind = "number"
    pessimistic: float = math.nan
    optimistic: float = math.nan
    note: str = ""
    formula: str = ""

    @property
    def has_range(self) -> bool:
        """Whether its scenarios differ."""
        return not math.isnan(self.pessimistic) and not math.isclose(self.pessimistic, self.optimistic, rel_tol=1e-9)

    def cells(self) -> tuple[str, ...]:
        """Return the row for a reader: label, pessimistic, median, optimistic, note; three digits where it has a
        range."""
        return (self.label, *self._three(self._written), self.note)

    def range_cells(self, digits: int = 4) -> tuple[str, str]:
        """Return the median and the range for a reader, the range empty if there is none. digits: of a single value;
        three where it has a range."""
        worst, middle, best = self._three(self._written, digits)
        low, high = (best, worst) if self.pessimistic > self.optimistic else (worst, best)
        return middle, span(low, high) if self.has_range else ""

    def _written(self, value: float, digits: int) -> str:
        return format_value(value, "dollars") if self.kind == "usd" else format_quantity(value, self.kind, digits)

    @property
    def unit(self) -> str:
        """The base unit of its value; empty if it has none."""
        return "" if isinstance(self.value, str) else UNIT[self.kind].replace("%", "share")

    def raw(self) -> tuple[str, ...]:
        """Return the row for a program: every number in full, in the unit named; empty if unknown or never."""
        three = self._three(lambda value, _: repr(value) if math.isfinite(value) else "")
        return (self.label, *three, self.unit, self.note)

    def _three(self, write: Callable[[float, int], str], single: int = 4) -> tuple[str, str, str]:
        if isinstance(self.value, str):
            return "", self.value, ""
        # Things that come whole are counted whole; a share has one digit fewer than asked for.
        whole = self.kind == "count" and float(self.value).is_integer() and self.value < 1e6
        if not self.has_range:
            return "", write(self.value, 15 if whole else single), ""
        digits = 15 if whole else 4 if self.kind == "ratio" else 3
        return write(self.pessimistic, digits), write(self.value, digits), write(self.optimistic, digits)


def row_label(key: str) -> Message:
    """Return the label of a row by its key, of those that plans are compared by."""
    return message(f"row.{'steps_time' if key == 'steps_days' else key}")


def known(confidence: str) -> Message:
    """Return how a figure of the catalogs is known."""
    return message(f"common.known.{confidence}")


def cited(source: str, confidence: str) -> Message:
    """Return the source of a figure, and how it is known."""
    return message("common.cited", source=source, known=known(confidence))
