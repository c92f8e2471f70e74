"""Formulas of a measurement: achieved rate and bandwidth, and share of the datasheet peak."""

from __future__ import annotations

from core.formula import Symbol, formula
from core.sources import CS336, ML_ENGINEERING

_LECTURE = CS336.at("FLOP/s of a timed matmul and model FLOPs utilisation")
_ML_ENGINEERING = ML_ENGINEERING.at("maximum achievable matmul FLOPS")


@formula(
    r"\frac{\v{flop}}{\v{seconds}}",
    result=Symbol("R", "achieved rate", "flop_per_s"),
    symbols={
        "flop": Symbol("W", "work of one matmul", "flop"),
        "seconds": Symbol("t", "time of one matmul", "seconds"),
    },
    sources=(_LECTURE, _ML_ENGINEERING),
)
def achieved_rate(flop: float, seconds: float) -> float:
    """Achieved rate of a timed matmul."""
    return flop / seconds


@formula(
    r"\frac{\v{size}}{\v{seconds}}",
    result=Symbol("B", "achieved bandwidth", "bytes_per_s"),
    symbols={
        "size": Symbol("Q", "bytes read and written", "bytes"),
        "seconds": Symbol("t", "time of one run", "seconds"),
    },
    sources=(_LECTURE,),
)
def achieved_bandwidth(size: float, seconds: float) -> float:
    """Achieved bandwidth of a timed operation: each operand read once, each result written once."""
    return size / seconds


@formula(
    r"\frac{\v{rate}}{\v{peak}}",
    result=Symbol("u", "share of the datasheet peak", "ratio"),
    symbols={
        "rate": Symbol("R", "achieved rate", "flop_per_s"),
        "peak": Symbol("P", "dense datasheet peak", "flop_per_s"),
    },
    sources=(_LECTURE, _ML_ENGINEERING),
)
def share_of_peak(rate: float, peak: float) -> float:
    """Share of the datasheet peak that arrives.

    The peak is the dense one. Good matmuls reach 75 to 90 % of it on recent accelerators.
    """
    return rate / peak
