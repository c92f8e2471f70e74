"""Loss scaling: gradients too small for a format, multiplied until they fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from core.floats.codec import decode, encode
from core.floats.decimals import raised
from core.floats.formats import FloatFormat
from core.floats.landscape import log2_exact
from core.formula import Explanation, Source, Symbol, formula

SAMPLES = 1 << 13
"""Gradients sampled, at evenly spaced quantiles, so that the shares are the distribution's and not chance's."""

_MIXED = Source("Micikevicius et al. 2018, Mixed Precision Training", "section 3.2", "https://arxiv.org/abs/1710.03740")
_SCALE = Symbol("k", "loss scale as a power of two", "number")


@formula(
    r"\frac{\v{smallest}}{2 \cdot 2^{\v{power}}}",
    result=Symbol(r"g_\mathrm{flush}", "largest gradient that still becomes zero", "number"),
    symbols={"smallest": Symbol(r"x_\mathrm{min}", "smallest positive value of the format", "number"), "power": _SCALE},
    sources=(_MIXED,),
)
def flush_below(smallest: float, power: float) -> float:
    """Where gradients flush to zero.

    Half the smallest positive value is nearer to zero, or tied with it; scaling the loss by 2^k scales every gradient.
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


@lru_cache(maxsize=1)
def _quantiles() -> npt.NDArray[np.float64]:
    normal = NormalDist()
    return np.array([normal.inv_cdf((i + 0.5) / SAMPLES) for i in range(SAMPLES)])


def magnitudes(median: float, spread: float) -> npt.NDArray[np.float64]:
    """log2 of the gradients' magnitudes: log-normal, ``median`` and standard deviation ``spread`` in binades."""
    return median + spread * _quantiles()


@lru_cache(maxsize=256)
def scale_loss(median: float, spread: float, power: int, fmt: FloatFormat) -> Scaled:
    """What becomes of gradients with magnitudes 2^`magnitudes` when the loss is multiplied by 2^power."""
    logs = magnitudes(median, spread) + power
    # float64 reaches from 2^-1074 to 2^1023; gradients beyond are as good as at its ends.
    stored = decode(encode(np.exp2(np.clip(logs, -1074, 1023)), fmt), fmt)
    first_normal = float(fmt.min_normal)
    finite = np.isfinite(stored)
    largest = float(fmt.max_finite)
    # Formats without infinity clamp; what was beyond their largest value has overflowed all the same.
    beyond = ~finite | ((stored >= largest) & (logs > log2_exact(fmt.overflow_threshold)))
    binades = np.floor(logs).astype(np.int64)
    counts = np.bincount(binades - binades.min())
    edges = binades.min() + np.arange(counts.size + 1, dtype=np.float64)
    return Scaled(
        fmt,
        power,
        edges,
        counts / SAMPLES,
        np.count_nonzero(stored == 0) / SAMPLES,
        np.count_nonzero((stored != 0) & (stored < first_normal) & finite) / SAMPLES,
        np.count_nonzero(beyond) / SAMPLES,
    )


@lru_cache(maxsize=64)
def best_power(median: float, spread: float, fmt: FloatFormat, most: int = 40) -> int:
    """The smallest power whose scale loses least: fewest gradients to zero and overflow together, up to 2^most."""
    losses = [
        (round(s.zero + s.overflow, 6), power)
        for power in range(most + 1)
        for s in (scale_loss(median, spread, power, fmt),)
    ]
    return min(losses)[1]


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
    if share == 0:
        return "none"
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.3g} %"


def explain(scaled: Scaled) -> tuple[Explanation, ...]:
    """How the two thresholds are computed."""
    return (
        flush_below.explain(smallest=float(scaled.fmt.min_subnormal), power=scaled.power),
        fits_below.explain(largest=float(scaled.fmt.max_finite), power=scaled.power),
    )
