"""What is expected of a CUDA device: each figure beside a band and where the band is from, in one line that passes or
fails."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from core.benchmark.best import fastest, is_square, largest_copy
from core.benchmark.datasheet import datasheet_of
from core.benchmark.points import Point
from core.benchmark.record import Record
from core.benchmark.timing.kinds import expected_s
from core.units import format_quantity

N = 8192
"""The square by which devices are compared."""

ERRORS: Mapping[str, tuple[float, float]] = {
    "fp32": (1e-8, 5e-6),
    "tf32": (1e-4, 1e-3),
    "bf16": (1e-3, 6e-3),
    "fp16": (1e-4, 1e-3),
    "fp8": (2e-2, 6e-2),
    "fp8 fast": (2e-2, 8e-2),
    "int8": (5e-3, 5e-2),
    "nvfp4": (5e-2, 0.2),
}
"""Relative errors of a product of normal numbers: √2 times what rounding one of them costs, and a little for sums."""

_BY_OTHERS = "best published rate of the device, catalog"
_MEMORY = "datasheet bandwidth, of which copies reach 80 to 95%"

H200: Mapping[str, tuple[float, float, str]] = {
    "bf16": (769e12, 798e12, "best published 794.5 TFLOP/s of H100 and H200, ml-engineering, −3.2% to +0.5%"),
    "fp8": (1.1e15, math.inf, "three quarters of the best published 1,453.4 TFLOP/s, ml-engineering"),
    "copy": (4.2e12, 4.4e12, "87.5 to 91.7% of the datasheet’s 4.8 TB/s"),
}


@dataclass(frozen=True)
class Check:
    """A figure, the band that it should lie in, and where the band is from. value: NaN where nothing was measured."""

    name: str
    value: float
    low: float
    high: float
    source: str
    unit: str = "ratio"

    @property
    def passed(self) -> bool:
        """Whether it lies in its band; what was not measured does not."""
        return self.low <= self.value <= self.high

    @property
    def line(self) -> str:
        """The verdict in a line."""
        value, low, high = (format_quantity(each, self.unit, 3) for each in (self.value, self.low, self.high))
        band = f"at least {low}" if math.isinf(self.high) else f"{low} to {high}"
        return f"{'PASS' if self.passed else 'FAIL'}  {self.name}: {value}, expected {band} [{self.source}]"

    @property
    def json(self) -> str:
        """A line of JSON, without what is unknown or unbounded."""
        known = {key: each for key, each in asdict(self).items() if not isinstance(each, float) or math.isfinite(each)}
        return json.dumps({"passed": self.passed, **known})


def of_record(record: Record) -> Iterator[Check]:
    """What a measurement of everything should have found."""
    sheet = datasheet_of(record)
    h200 = sheet.name == "H200 SXM"

    def square(dtype: str, regime: str = "burst") -> Point | None:
        """The one of `N`, of a sustained rate the one that there is."""
        alike = [p for p in record.points if is_square(p) and (p.item.name, p.item.regime) == (dtype, regime)]
        return fastest(p for p in alike if regime == "sustained" or p.shape[0] == N)

    def rate(dtype: str, regime: str = "burst") -> float:
        return found.rate if (found := square(dtype, regime)) else math.nan

    best = sheet.rows[0].best_measured("bf16") if len(sheet.rows) == 1 else math.nan
    low, high, source = H200["bf16"] if h200 else (0.8 * best, 1.05 * best, _BY_OTHERS)
    yield Check(f"bf16 at n = {N:,}", rate("bf16"), low, high, source, "flop_per_s")
    yield Check(f"fp16 / bf16 at n = {N:,}", rate("fp16") / rate("bf16"), 0.95, 1.05, "one datasheet peak for both")
    if h200:
        yield Check(f"fp8 at n = {N:,}", rate("fp8"), *H200["fp8"], "flop_per_s")
    copied = largest_copy(record.points)
    sheet_bandwidth = sheet.rows[0].bandwidth if len(sheet.rows) == 1 else math.nan
    low, high, source = H200["copy"] if h200 else (0.8 * sheet_bandwidth, 0.95 * sheet_bandwidth, _MEMORY)
    name = f"copy of {copied.item.label}" if copied else "copy"
    yield Check(name, copied.bandwidth if copied else math.nan, low, high, source, "bytes_per_s")
    for dtype, (low, high) in ERRORS.items():
        if (point := square(dtype)) and point.relative_error is not None:
            yield Check(f"error of {dtype}", point.relative_error, low, high, "√2 × rounding of the inputs", "number")
    exact, fast = square("fp8"), square("fp8 fast")
    if exact and fast:
        yield Check("fp8 fast / exact, rate", fast.rate / exact.rate, 1.0, 1.6, "fewer steps of a sum on Hopper")
        more = (fast.relative_error or math.nan) / (exact.relative_error or math.nan)
        yield Check("fp8 fast / exact, error", more, 0.99, 2.0, "fewer bits of a sum on Hopper")
    for dtype in ("bf16", "fp8", "nvfp4"):
        if square(dtype, "sustained"):
            share = rate(dtype, "sustained") / rate(dtype)
            yield Check(f"{dtype} sustained / burst", share, 0.7, 1.05, "a power limit lowers the clock")
    steps = {p.item.label: p.median_s for p in record.points if p.item.kind == "layer"}
    if len(steps) == 2:
        share = steps["compiled"] / steps["eager"]
        yield Check("one layer, compiled / eager", share, 0.5, 1.05, "fused operations write less")
    flash = [p for p in record.points if p.item.kind == "attention" and p.item.name in ("flash", "cudnn")]
    math_only = [p for p in record.points if p.item.kind == "attention" and p.item.name == "math"]
    if flash and math_only:
        times = max(p.rate for p in flash) / max(p.rate for p in math_only)
        yield Check("fused attention / math", times, 2.0, math.inf, "math writes out the square")
    took = record.elapsed_s / expected_s(record.programme)
    yield Check("time of the measurement / promised", took, 0.5, 1.25, "the page’s own promise")


def of_probe(name: str, found: Mapping[str, float]) -> Iterator[Check]:
    """What a probe of `tests.gpu.probe` should have found."""
    for key, value in found.items():
        if name == "timers":
            yield Check(f"timers, {key}", value, 0.97, 1.03, "CUDA events with an emptied cache")
        elif name == "launch":
            yield Check(f"launch, {key}", value, 1e-6, 3e-5, "plausible for a host, from no source", "seconds")
        else:
            yield Check(f"{name}, {key}", value, 1.0, 1.0, "what Measure relies on")
