"""Loss scaling: gradients too small for a format, multiplied until they fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from core.floats.decimals import raised
from core.floats.formats import FloatFormat
from core.floats.landscape import log2_exact
from core.formula import Explanation, Source, Symbol, formula

NOTHING = 1e-12
"""Shares below this are none: no model has that many gradients."""

_EQUAL = 1e-9
_REACH = 7
"""Standard deviations that the histogram covers on either side."""

_MIXED = Source("Micikevicius et al. 2018, Mixed Precision Training", "section 3.2", "https://arxiv.org/abs/1710.03740")
_SCALE = Symbol("k", "exponent of the loss scale, a power of two", "number")


@formula(
    r"\frac{\v{smallest}}{2 \cdot 2^{\v{power}}}",
    result=Symbol(r"g_\mathrm{flush}", "largest gradient that still becomes zero", "number"),
    symbols={"smallest": Symbol(r"x_\mathrm{min}", "smallest positive value of the format", "number"), "power": _SCALE},
    sources=(_MIXED,),
)
def flush_below(smallest: float, power: float) -> float:
    """Where gradients flush to zero.

    Half the smallest positive value is nearer to zero, or tied with it; a scaled loss scales every gradient alike.
    """
    return smallest / (2 * 2.0**power)


@formula(
    r"\frac{\v{largest}}{2^{\v{power}}}",
    result=Symbol(r"g_\mathrm{max}", "largest gradient that still fits", "number"),
    symbols={"largest": Symbol(r"x_\mathrm{max}", "largest finite value of the format", "number"), "power": _SCALE},
    sources=(_MIXED,),
)
def fits_below(largest: float, power: float) -> float:
    """The largest gradient that fits under a loss scale."""
    return largest / 2.0**power


@dataclass(frozen=True, slots=True)
class Scaled:
    """Gradients under a loss scale 2^power in a format.

    edges: log2 of the bins' edges, one bin a binade. shares: share of all gradients in each bin, after scaling.
    zero, subnormal, overflow: shares of all gradients that flush to zero, land among the subnormals, and overflow.
    """

    fmt: FloatFormat
    power: int
    edges: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float64]
    zero: float
    subnormal: float
    overflow: float

    @property
    def kept(self) -> float:
        """Share of the gradients that stay normal numbers, with full precision."""
        return 1 - self.zero - self.subnormal - self.overflow


def _below(log: float, mean: float, spread: float) -> float:
    """Share of a normal distribution below ``log``; keeps its digits far out in the lower tail."""
    return math.erfc((mean - log) / (spread * math.sqrt(2))) / 2


def _between(low: float, high: float, mean: float, spread: float) -> float:
    """Share of a normal distribution between two places, by the tail in which they are small."""
    if low > mean:
        low, high = 2 * mean - high, 2 * mean - low
    return _below(high, mean, spread) - _below(low, mean, spread)


@lru_cache(maxsize=256)
def scale_loss(median: float, spread: float, power: int, fmt: FloatFormat) -> Scaled:
    """What becomes of gradients when the loss is multiplied by 2^power, rounded to nearest.

    Their magnitudes are log-normal: log2 has the mean ``median`` and the standard deviation ``spread``, in binades.
    Every share is exact. Formats that clamp overflow all the same beyond the largest value.
    """
    mean = median + power
    least = fmt.min_subnormal
    flush = log2_exact(least / 2) if fmt.zero else -math.inf
    normal = log2_exact(fmt.min_normal - least / 2) if fmt.has_subnormals else flush
    largest = log2_exact(fmt.overflow_threshold)
    first, last = math.floor(mean - _REACH * spread), math.ceil(mean + _REACH * spread)
    return Scaled(
        fmt,
        power,
        np.arange(first, last + 1, dtype=np.float64),
        np.array([_between(edge, edge + 1, mean, spread) for edge in range(first, last)]),
        _below(flush, mean, spread),
        _between(flush, normal, mean, spread),
        _below(2 * mean - largest, mean, spread),
    )


@lru_cache(maxsize=64)
def best_power(median: float, spread: float, fmt: FloatFormat, most: int = 40) -> int:
    """The smallest power up to ``most`` that loses least to zero and overflow, up to one gradient in a billion."""
    lost = [s.zero + s.overflow for s in (scale_loss(median, spread, power, fmt) for power in range(most + 1))]
    least = min(lost)
    return next(power for power, share in enumerate(lost) if share <= least + _EQUAL)


def takeaway(scaled: Scaled) -> str:
    """One sentence: what is lost below and above at this scale."""
    title = scaled.fmt.title
    lost = (
        f"At a loss scale of 2^{scaled.power}, **{percent(scaled.zero)}** of these gradients become zero in {title} "
        f"and **{percent(scaled.overflow)}** overflow"
    )
    return f"{raised(lost)}; {percent(scaled.subnormal)} are subnormal and lose precision."


def percent(share: float) -> str:
    """A share in percent, short, with what is small but not nothing said so."""
    if share < NOTHING:
        return "none"
    if share < 1e-5:
        return "< 0.001 %"
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.3g} %"


def explain(scaled: Scaled) -> tuple[Explanation, ...]:
    """How the two thresholds are computed."""
    return (
        flush_below.explain(smallest=float(scaled.fmt.min_subnormal), power=scaled.power),
        fits_below.explain(largest=float(scaled.fmt.max_finite), power=scaled.power),
    )
