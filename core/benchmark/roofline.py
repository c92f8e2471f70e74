"""The roofline of a device as it was measured, and what stands on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from core.benchmark.best import computed_in, is_square, roof
from core.benchmark.points import Point
from core.benchmark.record import Record
from core.hardware.operations import Placed, Work, place, ridge_point


@dataclass(frozen=True, slots=True)
class Roof:
    """A roofline: peaks by dtype in FLOP/s and a bandwidth in bytes per second, NaN if unknown."""

    peaks: Mapping[str, float]
    bandwidth: float

    @property
    def top(self) -> float:
        """The highest peak; NaN if none is known."""
        return max((peak for peak in self.peaks.values() if not math.isnan(peak)), default=math.nan)

    @property
    def ridge(self) -> float:
        """FLOP/B from which the highest peak can be reached; NaN if the roofline is not known."""
        return ridge_point(self.top, self.bandwidth)

    def place(self, point: Point) -> Placed:
        """Return a point under the peak of its own dtype if that is known, else under the highest."""
        peak = self.peaks.get(computed_in(point), math.nan)
        return place(Work(point.flop, point.bytes), self.top if math.isnan(peak) else peak, self.bandwidth)


def measured_roof(record: Record, bandwidth: float) -> Roof:
    """Return the roofline of the highest rates in 16 and 32 bits, and a bandwidth in bytes per second."""
    rates = {dtype: roof(record.points, dtype) for dtype in ("bf16", "fp16", "fp32")}
    peaks = {dtype: rate for dtype, rate in rates.items() if not math.isnan(rate)}
    if "bf16" in peaks:
        peaks.pop("fp16", None)
    return Roof(peaks, bandwidth)


def placed_points(record: Record, on: Roof) -> tuple[Point, ...]:
    """Return the points of a roofline: items that compute and move bytes. Of matmuls, these are squares with a known
    peak."""
    return tuple(
        p
        for p in record.points
        if p.flop
        and p.bytes
        and (p.item.kind != "matmul" or (is_square(p) and p.item.name in on.peaks and p.item.regime == "burst"))
    )
