"""What a measurement says of its device in four rates, by one rule, so that a plan can be counted with them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.hardware.rates import RateName, Rates
from core.measure.points import Point
from core.measure.record import Record
from core.units import format_bytes

SQUARE = 4_096
"""Smaller squares leave a GPU partly idle, or lie in its cache."""

COPY_BYTES = 256 * 2**20
"""A copy that moves less may stay in a GPU's cache, the largest of which has half of this."""

SPREAD = 1.5
"""Fastest over slowest tenth of the runs from which a median says little: clocks moved, or something else ran."""

_PRODUCTS: Mapping[RateName, tuple[str, ...]] = {
    "matmul16": ("bf16", "fp16"),
    "matmul8": ("fp8",),
    "matmul4": ("nvfp4",),
}
"""The dtypes that a rate is of, the first that was measured."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Which points one rate is the median of; none, and why, where it is not known."""

    rate: RateName
    points: tuple[Point, ...]
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """The rates that a measurement gives, NaN where it gives none.

    device: as it calls itself. started: seconds since 1970, UTC. method: version of the method. record: the
    measurement's id. taken: where each rate is from.
    """

    rates: Rates
    device: str
    started: float
    method: str
    record: str
    taken: tuple[Taken, ...]

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why rates are missing."""
        return tuple(one.why_not for one in self.taken if one.why_not)


def measured_rates(record: Record) -> MeasuredRates:
    """The rates of ``record``.

    Of products the median over large squares of bf16 (else fp16), fp8 with one scale per tensor, and nvfp4, or the
    sustained one where there is one; of memory the largest copy. Large is `SQUARE` on a GPU, the largest there is on
    a CPU. Points that spread widely are left aside.
    """
    gpu = record.programme.device != "cpu"
    taken = [_products(record.points, name, dtypes, gpu) for name, dtypes in _PRODUCTS.items()]
    taken.append(_memory(record.points, gpu))
    found = {
        one.rate: statistics.median(point.bandwidth if one.rate == "memory" else point.rate for point in one.points)
        for one in taken
        if one.points
    }
    return MeasuredRates(
        rates=Rates(**found),
        device=record.facts.name if record.facts else "",
        started=record.started,
        method=record.method,
        record=record.id,
        taken=tuple(taken),
    )


def steady(point: Point) -> bool:
    """Whether the runs of a point took about as long as each other."""
    return point.p90_s < SPREAD * point.p10_s


def _products(points: Sequence[Point], name: RateName, dtypes: Sequence[str], gpu: bool) -> Taken:
    """The points of the first of ``dtypes`` that has any to be used, or why none has."""
    why: list[str] = []
    for dtype in dtypes:
        squares = [one for one in points if one.item.kind == "matmul" and one.item.name == dtype and _square(one)]
        least = SQUARE if gpu else max((one.shape[0] for one in squares), default=0)
        large = [one for one in squares if one.shape[0] >= least]
        used = [one for one in large if steady(one)]
        if used:
            sustained = [one for one in used if one.item.regime == "sustained"]
            return Taken(name, tuple(sustained or used))
        if large:
            why.append(f"{dtype}: runs of its large squares differ by more than {SPREAD:g} times.")
        else:
            why.append(f"{dtype}: no square {f'of {SQUARE:,} or more ' if gpu else ''}was measured.")
    return Taken(name, (), " ".join(why))


def _square(point: Point) -> bool:
    return len(point.shape) == 3 and len(set(point.shape)) == 1


def _memory(points: Sequence[Point], gpu: bool) -> Taken:
    """The largest copy, or why it is not used."""
    least = COPY_BYTES if gpu else 0
    copies = [one for one in points if one.item.kind == "memory" and one.bytes >= max(least, 1)]
    copies = [one for one in copies if "copy" in one.item.name] or copies
    if not copies:
        large = f" that moves {format_bytes(COPY_BYTES, system='binary')} or more" if gpu else ""
        return Taken("memory", (), f"memory: no copy{large} was measured.")
    largest = max(copies, key=lambda one: one.bytes)
    if not steady(largest):
        return Taken("memory", (), f"memory: runs of its largest copy differ by more than {SPREAD:g} times.")
    return Taken("memory", (largest,))
