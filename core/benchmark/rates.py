"""The four rates of a device that a plan can use, from one measurement and by one rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.benchmark.best import SQUARE, fastest, is_spread, largest_copy, squares, sustained
from core.benchmark.points import Point, Regime
from core.benchmark.record import Record
from core.hardware.cluster import RateName, Rates
from core.messages import Message, message

COPY_BYTES = 256 * 2**20
"""A copy that moves less may stay in a GPU's cache, the largest of which has half of this."""

_MATMULS: Mapping[RateName, tuple[str, ...]] = {
    "matmul16": ("bf16", "fp16"),
    "matmul8": ("fp8",),
    "matmul4": ("nvfp4",),
}
"""The dtypes that a rate can be of, in order of preference."""


@dataclass(frozen=True, slots=True)
class SelectedRate:
    """The point that one rate is of, or None and why it is unknown."""

    name: RateName
    point: Point | None
    reasons: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """Rates of a measurement with the point that each is from; NaN for a rate without one."""

    rates: Rates
    selected: tuple[SelectedRate, ...]


def measured_rates(record: Record, regime: Regime = "sustained") -> MeasuredRates:
    """Return the rates of ``record``, sustained where they were timed, or of bursts only.

    For matmuls, these are the fastest squares of bf16 (else fp16), fp8 with one scale per tensor, and nvfp4; for
    memory, the largest copy. On a GPU, squares smaller than `SQUARE` and copies smaller than `COPY_BYTES` do not count,
    and on no device points whose runs vary widely.
    """
    is_gpu = record.programme.device != "cpu"
    points = tuple(p for p in record.points if regime == "sustained" or p.item.regime == regime)
    refused = {r.item.name for r in record.refusals if r.item.kind == "matmul" and r.why == "refused"}
    selected = [_select_matmul(points, name, dtypes, refused, is_gpu) for name, dtypes in _MATMULS.items()]
    selected.append(_select_copy(record.points, is_gpu))
    rates = {
        one.name: one.point.bandwidth if one.name == "memory" else one.point.rate
        for one in selected
        if one.point is not None
    }
    return MeasuredRates(Rates(**rates), tuple(selected))


def _select_matmul(
    points: Sequence[Point], name: RateName, dtypes: Sequence[str], refused: Collection[str], is_gpu: bool
) -> SelectedRate:
    """Return the point of the first of ``dtypes`` that was measured at all, or why it cannot be used."""
    reasons: list[Message] = []
    for dtype in dtypes:
        large = [p for p in (*squares(points, dtype), *sustained(points, dtype)) if not is_gpu or p.shape[0] >= SQUARE]
        used = [p for p in large if not is_spread(p)]
        if point := fastest(p for p in used if p.item.regime == "sustained") or fastest(used):
            return SelectedRate(name, point)
        if large:
            return SelectedRate(name, None, (message("measure.rate.spread", dtype=dtype),))
        if dtype in refused:
            reasons.append(message("measure.rate.refused", dtype=dtype))
        else:
            reasons.append(message("measure.rate.no_matmul", dtype=dtype, n=float(SQUARE if is_gpu else 1)))
    return SelectedRate(name, None, tuple(reasons))


def _select_copy(points: Sequence[Point], is_gpu: bool) -> SelectedRate:
    """Return the largest copy, or why it is not used."""
    point = largest_copy(points)
    if point is None or (is_gpu and point.bytes < COPY_BYTES):
        return SelectedRate("memory", None, (message("measure.rate.no_copy", size=float(COPY_BYTES)),))
    if is_spread(point):
        return SelectedRate("memory", None, (message("measure.rate.spread_copy"),))
    return SelectedRate("memory", point)
