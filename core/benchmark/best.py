"""Which points of a measurement stand for a device: those whose runs agree, and of these the fastest."""

from __future__ import annotations

from collections.abc import Iterable

from core.benchmark.points import Point

MOST_SPREAD = 1.5
"""Runs whose p90 rate is this many times their p10 rate did not have the device to themselves, or its clock moved."""


def is_spread(point: Point) -> bool:
    """Whether its runs spread too widely to mean much."""
    return point.p90_s >= MOST_SPREAD * point.p10_s


def is_square(point: Point) -> bool:
    """Whether it is a matmul of square matrices, by which dtypes are compared."""
    return point.item.kind == "matmul" and len(point.shape) == 3 and len(set(point.shape)) == 1


def squares(points: Iterable[Point], dtype: str) -> tuple[Point, ...]:
    """The squares of a dtype timed as a burst, smallest first."""
    result = [p for p in points if is_square(p) and p.item.name == dtype and p.item.regime == "burst"]
    return tuple(sorted(result, key=lambda point: point.shape))


def sustained(points: Iterable[Point], dtype: str) -> tuple[Point, ...]:
    """The squares of a dtype that were timed for long."""
    return tuple(p for p in points if is_square(p) and p.item.name == dtype and p.item.regime == "sustained")


def fastest(points: Iterable[Point]) -> Point | None:
    """The fastest of those whose runs agree, or of all where none do; None for none."""
    result = tuple(points)
    return max([p for p in result if not is_spread(p)] or result, key=lambda point: point.rate, default=None)


def largest_copy(points: Iterable[Point]) -> Point | None:
    """The copy that moved the most bytes, which stands for a memory's bandwidth; None without one."""
    return max((p for p in points if p.item.kind == "memory"), key=lambda point: point.bytes, default=None)
