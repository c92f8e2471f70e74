"""A range with a middle: what evidence says instead of one number, carried through everything that follows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from core.formula import Formula


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

    def through(self, function: Callable[[float], float]) -> Interval:
        """The interval of a quantity that rises, or falls, with this one throughout."""
        ends = (function(self.low), function(self.mid), function(self.high))
        return Interval(min(ends), ends[1], max(ends))

    @staticmethod
    def point(value: float) -> Interval:
        """A quantity without spread."""
        return Interval(value, value, value)


def spread(rule: Formula[...], name: str, over: Interval, **others: float) -> Interval:
    """``rule`` with its parameter ``name`` over an interval and the others fixed; it must be monotonic in ``name``."""
    return over.through(lambda value: float(rule(**{name: value}, **others)))


def product(left: Interval, right: Interval) -> Interval:
    """The product of two ranges of positive quantities, ends with ends: the widest it can be, as if both moved
    together. For independent quantities this overstates the spread."""
    return Interval(left.low * right.low, left.mid * right.mid, left.high * right.high)
