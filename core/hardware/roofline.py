"""Where a datasheet's rate comes from, and how much work per byte it takes to reach it."""

from __future__ import annotations

import math

from core.formula import Explanation, Source, Symbol, formula
from core.hardware.accelerators import Accelerator
from core.sources import ML_ENGINEERING

_ML_ENGINEERING = ML_ENGINEERING.at("how theoretical peaks are calculated")
_ROOFLINE = Source(
    "Williams, Waterman and Patterson 2009, Roofline",
    "Communications of the ACM 52(4)",
    "https://doi.org/10.1145/1498765.1498785",
)


@formula(
    r"2 \cdot \v{clock} \cdot \v{fma_per_clock} \cdot \v{units}",
    result=Symbol("P", "dense peak rate", "flop_per_s"),
    symbols={
        "clock": Symbol("f", "boost clock in hertz", "number"),
        "fma_per_clock": Symbol("w", "multiply-adds per clock and unit", "count"),
        "units": Symbol("u", "matrix units on the chip", "count"),
    },
    sources=(_ML_ENGINEERING,),
)
def peak_from_clock(clock: float, fma_per_clock: float, units: float) -> float:
    """Dense peak rate from the clock.

    A multiply-add counts as two FLOPs. A sparse figure, where a datasheet prints one, skips multiplications
    by zero and is never a peak of dense training.
    """
    return 2 * clock * fma_per_clock * units


@formula(
    r"\frac{\v{peak}}{\v{bandwidth}}",
    result=Symbol("I", "ridge point", "flop_per_byte"),
    symbols={
        "peak": Symbol("P", "dense peak rate", "flop_per_s"),
        "bandwidth": Symbol(r"\beta", "memory bandwidth", "bytes_per_s"),
    },
    sources=(_ROOFLINE,),
)
def ridge_point(peak: float, bandwidth: float) -> float:
    """Ridge point.

    The FLOPs per byte of memory traffic above which compute, not memory, is the limit.
    """
    return peak / bandwidth


def explain_device(device: Accelerator, dtype: str) -> list[Explanation]:
    """The ridge point of ``device`` in ``dtype``, and its peak from the clock where that is known."""
    peak = device.peak(dtype)
    explanations: list[Explanation] = []
    if (clock := device.clock) and clock.dtype == dtype:
        explanations.append(
            peak_from_clock.explain(clock=clock.hertz, fma_per_clock=clock.fma_per_clock, units=clock.units)
        )
    if not math.isnan(peak / device.bandwidth):
        explanations.append(ridge_point.explain(peak=peak, bandwidth=device.bandwidth))
    return explanations
