"""A range with a middle: what evidence says instead of one number, carried through everything that follows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_NORMAL = statistics.NormalDist()
_TENTH = _NORMAL.inv_cdf(0.9)
"""Standard deviations from the middle of a normal distribution to P90, and to P10."""


def quantile(low: Any, mid: Any, high: Any, level: float) -> Any:
    """The value that a share ``level`` of cases stays below, of which P10, P50 and P90 are known: numbers or arrays.

    Each half is taken as of a lognormal distribution through its end and the middle: of positive quantities.
    """
    deviations = _NORMAL.inv_cdf(level) / _TENTH
    if not deviations:
        return mid
    end = high if deviations > 0 else low
    return mid * (end / (mid + (mid == 0))) ** abs(deviations)


@dataclass(frozen=True, slots=True)
class Interval:
    """P10, P50 and P90 of a quantity, low ≤ mid ≤ high; all NaN when unknown."""

    low: float
    mid: float
    high: float

    def __post_init__(self) -> None:
        if not self.known:
            return
        if not self.low <= self.mid <= self.high:
            raise ValueError(f"an interval runs from low to high: {self.low:g}, {self.mid:g}, {self.high:g}")

    @property
    def known(self) -> bool:
        """Whether there is a range at all."""
        return not math.isnan(self.low + self.mid + self.high)

    def contains(self, value: float) -> bool:
        """Whether ``value`` lies inside, ends included."""
        return self.low <= value <= self.high

    def quantile(self, level: float) -> float:
        """The value that a share ``level`` of cases stays below."""
        return float(quantile(self.low, self.mid, self.high, level))

    def below(self, value: float) -> float:
        """The share of cases that stay below ``value``, by the same distribution; 0 or 1 without spread."""
        end = self.high if value > self.mid else self.low
        if end == self.mid or value <= 0:
            return float(value >= self.mid)
        return _NORMAL.cdf(
            _TENTH * abs(math.log(value / self.mid) / math.log(end / self.mid)) * math.copysign(1, value - self.mid)
        )

    def through(self, function: Callable[[float], float]) -> Interval:
        """The interval of a quantity that rises, or falls, with this one throughout."""
        ends = (function(self.low), function(self.mid), function(self.high))
        return Interval(min(ends), ends[1], max(ends))

    @staticmethod
    def point(value: float) -> Interval:
        """A quantity without spread."""
        return Interval(value, value, value)
