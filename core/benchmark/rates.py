"""What a measurement says of its device in four rates, by one rule, so that a plan can be counted with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.benchmark.best import MOST_SPREAD, SQUARE, fastest, is_spread, largest_copy, squares, sustained
from core.benchmark.points import Point, Regime
from core.benchmark.record import Record
from core.hardware.cluster import RateName, Rates
from core.units import format_bytes, format_duration

COPY_BYTES = 256 * 2**20
"""A copy that moves less may stay in a GPU's cache, the largest of which has half of this."""

_PRODUCTS: Mapping[RateName, tuple[str, ...]] = {
    "matmul16": ("bf16", "fp16"),
    "matmul8": ("fp8",),
    "matmul4": ("nvfp4",),
}
"""The dtypes that a rate is of, the first that was measured."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Which point one rate is of; none, and why, where it is not known."""

    rate: RateName
    point: Point | None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """The rates that a measurement gives, NaN where it gives none. taken: where each rate is from."""

    rates: Rates
    taken: tuple[Taken, ...]

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why rates are missing."""
        return tuple(taken.why_not for taken in self.taken if taken.why_not)

    @property
    def remarks(self) -> tuple[str, ...]:
        """How long each matmul rate was sustained, and why others are missing."""
        sentences = [
            f"The {p.item.name} rate is {p.item.regime} ({format_duration(p.duration_s, 2)})."
            for p in (taken.point for taken in self.taken)
            if p is not None and p.item.kind == "matmul"
        ]
        return (*sentences, *self.refusals)


def measured_rates(record: Record, regime: Regime = "sustained") -> MeasuredRates:
    """The rates of ``record``, sustained or of bursts only.

    Of products the fastest square of bf16 (else fp16), fp8 with one scale per tensor, and nvfp4, or the sustained one
    where there is one; of memory the largest copy. On a GPU squares smaller than `SQUARE` and copies smaller than
    `COPY_BYTES` are left aside, everywhere points whose runs spread widely.
    """
    gpu = record.programme.device != "cpu"
    points = tuple(p for p in record.points if regime == "sustained" or p.item.regime == regime)
    refused = {r.item.name for r in record.refusals if r.item.kind == "matmul" and r.why == "refused"}
    taken = [_products(points, name, dtypes, refused, gpu) for name, dtypes in _PRODUCTS.items()]
    taken.append(_memory(record.points, gpu))
    rates = {
        item.rate: item.point.bandwidth if item.rate == "memory" else item.point.rate
        for item in taken
        if item.point is not None
    }
    return MeasuredRates(Rates(**rates), tuple(taken))


def _products(
    points: Sequence[Point], name: RateName, dtypes: Sequence[str], refused: Collection[str], gpu: bool
) -> Taken:
    """The point of the first of ``dtypes`` that was measured at all, or why it cannot be used."""
    why: list[str] = []
    for dtype in dtypes:
        least = SQUARE if gpu else 0
        large = [p for p in (*squares(points, dtype), *sustained(points, dtype)) if p.shape[0] >= least]
        used = [p for p in large if not is_spread(p)]
        if point := fastest(p for p in used if p.item.regime == "sustained") or fastest(used):
            return Taken(name, point)
        if large:
            return Taken(name, None, f"{dtype}: runs of its large squares differ by more than {MOST_SPREAD:g} times.")
        size = f"of n = {SQUARE:,} or more " if gpu else ""
        why.append(f"This device refuses {dtype}." if dtype in refused else f"No {dtype} square {size}was measured.")
    return Taken(name, None, " ".join(why))


def _memory(points: Sequence[Point], gpu: bool) -> Taken:
    """The largest copy, or why it is not used."""
    point = largest_copy(points)
    if point is None or (gpu and point.bytes < COPY_BYTES):
        large = f" that moves {format_bytes(COPY_BYTES, system='binary')} or more" if gpu else ""
        return Taken("memory", None, f"memory: no copy{large} was measured.")
    if is_spread(point):
        return Taken("memory", None, f"memory: runs of its largest copy differ by more than {MOST_SPREAD:g} times.")
    return Taken("memory", point)
