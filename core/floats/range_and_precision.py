"""All formats on one axis: how far each reaches, how finely it divides, and every code of the small ones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from core.floats.codec import NumberClass, classify, decode_exact, floor_log2
from core.floats.decimals import power_form, raised, rounded
from core.floats.formats import FORMATS, FloatFormat
from core.formula import Explanation, Source, Symbol, formula
from core.limits import cached

GRID_BITS = 8
"""Formats up to this many bits have a grid of all their codes."""

_SHORT = 6
"""Characters of a value in the grid, besides its sign."""

_GOLDBERG = Source(
    "Goldberg 1991, What every computer scientist should know about floating-point arithmetic",
    "Relative error and ulps",
    "https://docs.oracle.com/cd/E19957-01/806-3568/ncg_goldberg.html",
)


@formula(
    r"\log_2{\frac{\v{largest}}{\v{smallest}}}",
    result=Symbol("r", "binades between the smallest and the largest positive value", "number"),
    symbols={
        "largest": Symbol(r"x_\mathrm{max}", "largest finite value", "number"),
        "smallest": Symbol(r"x_\mathrm{min}", "smallest positive value", "number"),
    },
    sources=(
        Source(
            "Micikevicius et al. 2022, FP8 Formats for Deep Learning", "section 3", "https://arxiv.org/abs/2209.05433"
        ),
    ),
)
def binades(largest: float, smallest: float) -> float:
    """Dynamic range in binades (factors of two)."""
    # Two logarithms: the quotient of fp64's extremes is beyond float64.
    return np.log2(largest) - np.log2(smallest)


@formula(
    r"\frac{\v{ulp}}{\v{magnitude}}",
    result=Symbol(r"\rho", "relative spacing", "ratio"),
    symbols={
        "ulp": Symbol(r"\mathrm{ulp}", "distance to the next larger value", "number"),
        "magnitude": Symbol("x", "magnitude", "number"),
    },
    sources=(_GOLDBERG,),
)
def relative_spacing(ulp: float, magnitude: float) -> float:
    """Relative spacing of a format's values.

    The error of round-to-nearest is at most half of it.
    """
    return ulp / magnitude


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a format reaches, in log2: smallest positive value, smallest normal one, largest finite one.

    normal equals smallest where a format has no subnormals, and largest where it has nothing else.
    """

    fmt: FloatFormat
    smallest: float
    normal: float
    largest: float


@cached("results_kept")
def reach(fmt: FloatFormat) -> Reach:
    """Return the reach of ``fmt`` above zero."""
    largest = fmt.max_finite
    return Reach(fmt, log2_exact(fmt.min_subnormal), log2_exact(min(fmt.min_normal, largest)), log2_exact(largest))


def reaches(formats: Iterable[FloatFormat] = tuple(FORMATS.values())) -> tuple[Reach, ...]:
    """Return the reach of each of ``formats``, widest first; among equals the one with more bits first."""
    return tuple(sorted((reach(f) for f in formats), key=lambda r: (r.smallest - r.largest, -r.fmt.bits)))


@cached("results_kept")
def staircase(fmt: FloatFormat, low: int, high: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the powers of two from 2^low to 2^high (log2) inside the format's reach, and log2 of the relative spacing
    there.

    The spacing at a power of two is the widest of its binade; across the binade it falls to half of that.
    """
    here = reach(fmt)
    powers = np.arange(max(low, math.ceil(here.smallest)), min(high, math.floor(here.largest)) + 1, dtype=np.float64)
    if fmt.twos_complement:
        quantum = np.full_like(powers, here.smallest)
    else:
        quantum = np.maximum(powers, here.normal) - fmt.fraction_bits
    spacing = quantum - powers
    powers.flags.writeable = spacing.flags.writeable = False
    return powers, spacing


@dataclass(frozen=True, slots=True)
class CodeCell:
    """One code of a small format.

    text, short: its value for reading, and in at most six characters besides the sign where it is no power of two.
    heat: position of log2 of its magnitude between the smallest and the largest, 0 to 1; 0 if it has none.
    """

    code: int
    kind: NumberClass
    text: str
    short: str
    heat: float


@cached("arrays_kept")
def grid(fmt: FloatFormat) -> tuple[CodeCell, ...]:
    """Return every code of ``fmt`` in order. Raises ``ValueError`` for formats of more than 8 bits."""
    if fmt.bits > GRID_BITS:
        raise ValueError(f"{fmt.title} has 2^{fmt.bits} codes; grids are drawn up to {GRID_BITS} bits")
    here = reach(fmt)
    span = here.largest - here.smallest or 1.0
    cells: list[CodeCell] = []
    for code in range(1 << fmt.bits):
        value, kind = decode_exact(code, fmt), classify(code, fmt)
        if value is None:
            word = "NaN" if kind == "nan" else "−∞" if code & fmt.sign_mask else "∞"
            cells.append(CodeCell(code, kind, word, word, 0.0))
            continue
        if not value:
            zero = "−0" if code else "0"
            cells.append(CodeCell(code, kind, zero, zero, 0.0))
            continue
        heat = min((log2_exact(abs(value)) - here.smallest) / span, 1.0)  # MXINT8's −2 lies beyond its own largest
        cells.append(CodeCell(code, kind, f"{exact_text(value)}", _short(value, fmt), heat))
    return tuple(cells)


def explain(fmt: FloatFormat) -> tuple[Explanation, ...]:
    """Return how range and spacing are computed."""
    largest, smallest = float(fmt.max_finite), float(fmt.min_subnormal)
    ulp = float(fmt.eps)
    return binades.explain(largest=largest, smallest=smallest), relative_spacing.explain(ulp=ulp, magnitude=1.0)


def exact_text(value: Fraction) -> str:
    """Return ``value`` as decimal and as a power of two times its significand."""
    return f"{rounded(value, 8)} = {raised(power_form(value)).replace('*', ' × ').replace('-', '−')}"


def _short(value: Fraction, fmt: FloatFormat) -> str:
    """Return the powers of two where there is nothing else, else as many digits as six characters and a sign hold."""
    if fmt.fraction_bits == 0:
        return raised(power_form(value)).replace("-", "−")
    number, short = float(abs(value)), ""
    sign = "−" if value < 0 else ""
    for digits in (4, 3, 2, 1):
        whole = f"{number:.0f}" if value.denominator == 1 else f"{number:.{digits}g}"
        for text in (whole, f"{number:.{digits}g}", f"{number:.{digits - 1}e}"):
            short = text.replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
            if len(short) <= _SHORT:
                return sign + short.replace("-", "−")
    return sign + short.replace("-", "−")


def log2_exact(value: Fraction) -> float:
    """Return the log2 of any positive fraction, beyond float64's range too."""
    whole = floor_log2(value)
    return whole + math.log2(float(value / Fraction(2) ** whole))
