"""Which points of a measurement stand for a device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from core.benchmark.points import Point
from core.benchmark.record import Record

MOST_SPREAD = 1.5
"""Runs whose p90 rate is this many times their p10 rate did not have the device to themselves, or its clock moved."""


SQUARE = 4_096
"""Smaller squares leave a GPU partly idle, or lie in its cache."""

_LOWERED = 0.9
"""A clock below this share of the highest one seen has been lowered by something."""


def is_spread(point: Point) -> bool:
    """Return whether its runs spread too widely to mean much."""
    return point.p90_s >= MOST_SPREAD * point.p10_s


def is_square(point: Point) -> bool:
    """Return whether it is a matmul of square matrices. Older measurements have others as well, which are not
    compared."""
    return point.item.kind == "matmul" and len(point.shape) == 3 and len(set(point.shape)) == 1


def squares(points: Iterable[Point], dtype: str) -> tuple[Point, ...]:
    """Return the squares of a dtype timed as a burst, smallest first."""
    result = [p for p in points if is_square(p) and p.item.name == dtype and p.item.regime == "burst"]
    return tuple(sorted(result, key=lambda point: point.shape))


def sustained(points: Iterable[Point], dtype: str) -> tuple[Point, ...]:
    """Return the squares of a dtype that were timed for long."""
    return tuple(p for p in points if is_square(p) and p.item.name == dtype and p.item.regime == "sustained")


def fastest(points: Iterable[Point]) -> Point | None:
    """Return the point with the highest rate; None without points."""
    return max(points, key=lambda point: point.rate, default=None)


def best_squares(record: Record) -> tuple[Point, ...]:
    """Return the fastest square of each dtype, in the order of measuring."""
    results = (fastest(squares(record.points, dtype)) for dtype in record.programme.dtypes)
    return tuple(point for point in results if point is not None)


def headline_square(record: Record) -> Point | None:
    """Return the square to lead with: of bf16 on a GPU, or fp16, and of fp32 on a CPU; else the fastest."""
    bests = best_squares(record)
    wanted = ("fp32",) if record.programme.device == "cpu" else ("bf16", "fp16")
    return next((p for dtype in wanted for p in bests if p.item.name == dtype), fastest(bests))


def computed_in(point: Point) -> str:
    """Return the dtype that a point computes in; empty if unknown."""
    return point.item.name if point.item.kind == "matmul" else point.dtype


def roof(points: Iterable[Point], dtype: str) -> float:
    """Return the highest rate of any operation in ``dtype``, in FLOP/s; NaN if no square of it was timed."""
    alike = [point for point in points if computed_in(point) == dtype]
    return max(point.rate for point in alike) if squares(alike, dtype) else math.nan


def lowered_clocks(points: Sequence[Point]) -> tuple[float, dict[str, float]]:
    """Return the highest clock in MHz, and by dtype the lowest clock as a share of it, for dtypes whose clock fell.

    A datasheet peak assumes a clock that does not fall.
    """
    seen = [mhz for p in points for state in (p.before, p.after) if (mhz := state.clock_mhz) is not None]
    top, lowered = max(seen, default=0.0), dict[str, float]()
    for p in points:
        if p.after.clock_mhz is not None and p.after.clock_mhz < _LOWERED * top:
            lowered[p.item.name] = min(lowered.get(p.item.name, 1.0), p.after.clock_mhz / top)
    return top, lowered


def largest_copy(points: Iterable[Point]) -> Point | None:
    """Return the copy that moved the most bytes, whose bandwidth counts as that of the memory; None without a copy."""
    return max((p for p in points if p.item.kind == "memory"), key=lambda point: point.bytes, default=None)
