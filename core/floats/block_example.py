"""A block to play with: values to start from, values typed, and what every block format makes of the same values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from core.floats.blocks import BLOCK_FORMATS, QuantizedBlock, Rule, noise_of, quantize_block
from core.floats.formats import FormatError
from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached, limit
from core.messages import message

Distribution: TypeAlias = Literal["normal", "heavy-tailed", "one outlier", "uniform"]
DISTRIBUTIONS: tuple[Distribution, ...] = ("normal", "heavy-tailed", "one outlier", "uniform")

BLOCK_VALUES = 32
"""Values of the workbench: one block of MX, two of NVFP4, a short one of NF4."""

OUTLIER = 21.3
"""The outlier to begin with, in σ. No element format holds it exactly, so that every format errs on it about as much as
on outliers of this size on average; 24, which nearly all hold, would flatter the few significant bits of most."""

_SEED, _OUTLIER_AT = 32, 11
_LARGEST = 3e38

_MX = Source(
    "OCP Microscaling Formats (MX) Specification 1.0",
    "section 5",
    "https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf",
)
_GRAY = Source("Gray and Neuhoff 1998, Quantization", "section I", "https://doi.org/10.1109/18.720541")


@formula(
    r"\v{element_bits} + \frac{\v{scale_bits}}{\v{size}}",
    result=Symbol("b", "bits per element, including the scale", "number"),
    symbols={
        "element_bits": Symbol("b_e", "bits of an element", "number"),
        "scale_bits": Symbol("b_s", "bits of the block's scale", "number"),
        "size": Symbol("n", "elements in a block", "count"),
    },
    sources=(_MX,),
)
def bits_per_element(element_bits: float, scale_bits: float, size: float) -> float:
    """Bits per element of a block format.

    A scale for the whole tensor adds almost nothing.
    """
    return element_bits + scale_bits / size


@formula(
    r"10 \cdot \log_{10}{\frac{\v{signal}}{\v{noise}}}",
    result=Symbol(r"\mathrm{SQNR}", "signal to quantization noise, in decibels", "number"),
    symbols={
        "signal": Symbol(r"\overline{x^2}", "mean square of the values", "number"),
        "noise": Symbol(r"\mathrm{MSE}", "mean squared error", "number"),
    },
    sources=(_GRAY,),
)
def sqnr(signal: float, noise: float) -> float:
    """Signal to quantization noise ratio.

    6 dB correspond to one bit of precision.
    """
    return 10 * np.log10(signal / noise)


@dataclass(frozen=True, slots=True)
class OutlierEffect:
    """Effect of the largest value of a block on the SQNR of the others, in decibels.

    with_db: SQNR under the scale that it sets. without_db: SQNR with 0 in its place.
    """

    largest: float
    with_db: float
    without_db: float

    @property
    def lowers(self) -> bool:
        """Whether the outlier costs the other values half a bit or more."""
        return self.with_db < self.without_db - 3


@cached("results_kept")
def example(distribution: Distribution, outlier: float) -> tuple[float, ...]:
    """Return `BLOCK_VALUES` seeded values to three digits. ``outlier``: the size of the one in "one outlier", in σ."""
    draw = np.random.default_rng(_SEED)
    if distribution == "uniform":
        values = draw.uniform(-1, 1, BLOCK_VALUES)
    elif distribution == "heavy-tailed":
        values = draw.standard_t(2, BLOCK_VALUES)
    else:
        values = draw.standard_normal(BLOCK_VALUES)
    if distribution == "one outlier":
        values[_OUTLIER_AT] = outlier
    return tuple(float(f"{value:.3g}") for value in values)


def read_block(text: str) -> tuple[float, ...]:
    """Return entered values, separated by commas or spaces; fewer than `BLOCK_VALUES` are filled up with zeros.

    Raises `FormatError` with the reason and an example.
    """
    cap = limit("block_chars")
    if len(text) > cap:
        raise FormatError(message("blocks.error.long", length=float(len(text)), most=float(cap)))
    parts = text.replace("−", "-").replace(",", " ").replace(";", " ").split()
    if not parts or len(parts) > BLOCK_VALUES:
        raise FormatError(message("blocks.error.count", count=float(len(parts)), most=float(BLOCK_VALUES)))
    values: list[float] = []
    for part in parts:
        try:
            value = float(part) if part.isascii() and "_" not in part else math.nan
        except ValueError:
            value = math.nan
        if not abs(value) <= _LARGEST:
            clipped = part if len(part) <= 20 else f"{part[:16]}…"
            raise FormatError(message("blocks.error.number", text=clipped))
        values.append(value)
    return tuple(values + [0.0] * (BLOCK_VALUES - len(values)))


def write_block(values: tuple[float, ...]) -> str:
    """Return the text that `read_block` reads as ``values``, with fewer digits only if it would exceed its cap."""
    whole = [repr(value).removesuffix(".0") for value in values]
    for digits in range(17, 3, -1):
        text = ", ".join(w if len(w) <= digits else f"{v:.{digits}g}" for v, w in zip(values, whole, strict=True))
        if len(text) <= limit("block_chars"):
            return text
    return ", ".join(f"{value:.4g}" for value in values)


@cached("results_kept")
def quantize(values: tuple[float, ...], name: str, rule: Rule) -> QuantizedBlock:
    """Return the values in one block format."""
    return quantize_block(np.array(values), BLOCK_FORMATS[name], rule)


@cached("results_kept")
def outlier_effect(values: tuple[float, ...], name: str, rule: Rule) -> OutlierEffect:
    """Return what the value of the largest magnitude does to the others, which share its scale."""
    at = int(np.argmax(np.abs(values)))
    alone = (*values[:at], 0.0, *values[at + 1 :])
    others = np.delete(np.array(values), at)
    with_db, without_db = (noise_of(others, np.delete(quantize(v, name, rule).values, at))[1] for v in (values, alone))
    return OutlierEffect(values[at], with_db, without_db)


def explain(values: tuple[float, ...], done: QuantizedBlock) -> tuple[Explanation, ...]:
    """Return how bits per element and SQNR are computed."""
    fmt = done.block_format
    explanations = [
        bits_per_element.explain(
            element_bits=float(fmt.element.bits), scale_bits=float(fmt.scale_bits), size=float(fmt.size)
        )
    ]
    if math.isfinite(done.sqnr_db):
        explanations.append(sqnr.explain(signal=float(np.mean(np.square(values))), noise=done.mse))
    return tuple(explanations)
