"""The axes of a drawn figure: where a value stands, and the marks along it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.units import significant
from core.views.common.chart import Figure

_LINES = 8
"""About so many grid lines an axis has where its figure names none."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of the plot. start, end: pixels of its two ends of the range low to high."""

    given: Mapping[str, Any]
    names: Sequence[str]
    low: float
    high: float
    start: float
    end: float

    @property
    def log(self) -> bool:
        return self.given.get("type") == "log"

    def at(self, value: Any) -> float:
        """The pixel of a value, of a name, or of a place that is numbered as names are."""
        if isinstance(value, str):
            value = self.names.index(value)
        number = float(value)
        if self.log:
            number = math.log10(number) if number > 0 else math.nan
        return self.start + (number - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)

    def paper(self, share: float) -> float:
        """The pixel of a share of the plot, from left or from the bottom."""
        low, high = sorted((self.start, self.end))
        return low + share * (high - low) if self.given["side"] == "x" else high - share * (high - low)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Pixels and texts."""
        values = self.given.get("tickvals")
        if values is not None:
            for value, text in zip(values, self.given.get("ticktext", values), strict=False):
                yield self.at(value), str(text)
            return
        step = _step((self.high - self.low) / _LINES)
        first = math.ceil(self.low / step - 1e-9)
        for i in range(first, math.floor(self.high / step + 1e-9) + 1):
            yield self.at(10.0 ** (i * step) if self.log else i * step), _number(i * step, self.log)


def _step(wide: float) -> float:
    """The round number next above ``wide``."""
    base = 10.0 ** math.floor(math.log10(wide)) if wide > 0 else 1.0
    return next(m * base for m in (1, 2, 5, 10) if m * base >= wide * (1 - 1e-9))


def _number(value: float, log: bool) -> str:
    return significant(10.0**value if log else value, 6)


def names_along(axis: Mapping[str, Any], data: Sequence[Figure]) -> list[str]:
    """The names along an axis of names, in their order; none where it has numbers."""
    given = axis.get("categoryarray", ())
    parts = [str(value) for trace in data for value in trace[axis["side"]] if isinstance(value, str)]
    return list(dict.fromkeys([*given, *parts]))


def range_along(axis: Mapping[str, Any], data: Sequence[Figure], side: str) -> tuple[float, float]:
    """The range that an axis is given, or that of its data with 0 and some room."""
    given = axis.get("range")
    if given is not None:
        return float(given[0]), float(given[1])
    values = np.concatenate([np.asarray(trace[side], dtype=np.float64) for trace in data] or [np.zeros(1)])
    values = values[np.isfinite(values)]
    high = float(values.max(initial=0.0))
    return min(0.0, float(values.min(initial=0.0))), 1.06 * high or 1.0
