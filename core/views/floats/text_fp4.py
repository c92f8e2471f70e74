"""What fp4 recipes do about one outlier, in sentences and in a table."""

from __future__ import annotations

from functools import lru_cache

from core.floats.block_example import decibel
from core.floats.fp4_outlier import SHARINGS, Treated, errors_of_means, rotated_outlier, treat
from core.units import format_quantity

_FLOAT32 = 1e-4
"""A matrix holds float32 values, so what errs by less than this was rounded there."""


def sigmas(value: float) -> str:
    """A size in standard deviations of the other values, to three digits."""
    return f"{format_quantity(value, 'number', 3)}σ"


def takeaway(outlier: float, sharing: str, width: int, steps: int) -> str:
    """What the outlier costs under one way to share a scale, and what rotation and stochastic rounding make of that."""
    plain, turned = treat(outlier, sharing, 0), treat(outlier, sharing, width)
    mean = float(errors_of_means(outlier, sharing, 0, steps)[-1])
    part = sigmas(rotated_outlier(outlier, width))
    gain = plain.rms / turned.rms
    verdict = "hardly changes that" if 0.9 < gain < 1.1 else "helps" if gain > 1 else "makes it worse"
    return (
        f"Under {SHARINGS[sharing].title}, an outlier of {sigmas(outlier)} leaves errors of **{sigmas(plain.rms)}**, "
        f"and **{sigmas(plain.neighbours)}** where it sets the scale. A rotation first, which puts {part} of it into "
        f"each of {width} values, {verdict}: **{sigmas(turned.rms)}**. The mean of {steps:,} stochastic roundings errs "
        f"by **{sigmas(mean)}**, that of as many to nearest as one."
    )


@lru_cache(maxsize=64)
def table(outlier: float, width: int, steps: int) -> tuple[tuple[tuple[str, str], ...], ...]:
    """A row for each way to share a scale: errors to nearest, plain and rotated, and of stochastic rounding."""
    return tuple(
        (
            (how.title, how.who),
            _cell(treat(outlier, name, 0)),
            _cell(treat(outlier, name, width)),
            *_stochastic(outlier, name, 0, steps),
            _stochastic(outlier, name, width, steps)[1],
        )
        for name, how in SHARINGS.items()
    )


def _cell(done: Treated) -> tuple[str, str]:
    own = f"{sigmas(abs(done.own))} off" if abs(done.own) > _FLOAT32 else "kept"
    return sigmas(done.rms), f"{decibel(done.sqnr_db)}, outlier {own}"


def _stochastic(outlier: float, sharing: str, width: int, steps: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """The error of one stochastic rounding, and of the mean of all."""
    found = errors_of_means(outlier, sharing, width, steps)
    return (sigmas(float(found[0])), ""), (sigmas(float(found[-1])), "")


NOTES = (
    "**What is drawn:** 16 × 64 normal values of standard deviation σ with one outlier, rounded to fp4 E2M1 under the "
    "scales of each row; what was rotated is rotated back before it is compared. In a matrix product nothing is "
    "rotated back: both sides are rotated along the axis that is summed over, and the product stays as it was.",
    "**Scales:** 16 × 16 blocks serve weights, which forward and backward read along different axes, so that both see "
    "the same rounding; in hardware their one scale is repeated for each 1 × 16. Under 1 × 16 the outlier is confined "
    "to 15 neighbours and kept, so a rotation has little to gain; the more values share a scale, the more it saves.",
    "**Stochastic rounding** errs more in each step and is right on average, which is what gradients need: a small one "
    "moves a sum now and then instead of never. What is clipped stays wrong on average too: little under NVFP4, whose "
    "scales are rounded to fp8, more under MXFP4’s powers of two.",
)
"""What stands behind the pictures."""
