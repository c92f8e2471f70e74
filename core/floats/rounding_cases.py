"""One rounding looked at closely: the two neighbors, the tie between them, and what every mode makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from core.floats.codec import decode_exact, encode_exact, floor_log2, neighbor
from core.floats.decimals import rounded
from core.floats.formats import FORMATS, FloatFormat, Overflow
from core.floats.rounding import ROUNDINGS, Rounding
from core.formula import Explanation, Source, Symbol, formula

_LONGEST_KEPT = 12
"""Significant bits shown before the guard bit; wider formats show their last ones."""

_HIGHAM = Source(
    "Connolly, Higham and Mary 2021, Stochastic Rounding and its Probabilistic Backward Error Analysis",
    "definition 1.1",
    "https://doi.org/10.1137/20M1334796",
)

_LOW = Symbol(r"x_\downarrow", "the neighbor below", "number")
_HIGH = Symbol(r"x_\uparrow", "the neighbor above", "number")


@formula(
    r"\frac{\v{low} + \v{high}}{2}",
    result=Symbol("t", "tie point", "number"),
    symbols={"low": _LOW, "high": _HIGH},
    sources=(Source("IEEE 754-2019", "4.3.1 Rounding-direction attributes to nearest"),),
)
def tie_point(low: float, high: float) -> float:
    """Tie point between two neighbors.

    Round-to-nearest goes down below it and up above it. At the tie point the rule for ties decides.
    """
    return (low + high) / 2


@formula(
    r"\frac{\v{asked} - \v{low}}{\v{gap}}",
    result=Symbol("p", "probability of rounding up", "ratio"),
    symbols={
        "asked": Symbol("x", "the number you entered", "number"),
        "low": _LOW,
        "gap": Symbol(r"\Delta", "distance between the neighbors", "number"),
    },
    sources=(_HIGHAM,),
)
def chance_up(asked: float, low: float, gap: float) -> float:
    """Probability that stochastic rounding goes up.

    The nearer neighbor is more likely, and the mean of many roundings is the number itself.
    """
    return (asked - low) / gap


@dataclass(frozen=True, slots=True)
class ModeResult:
    """What one rounding mode takes: its code, and its value (None if it overflows into infinity or NaN).

    upper: whether that is the neighbor above. chance: probability of the one above, for stochastic rounding only.
    """

    rounding: Rounding
    code: int | None
    value: Fraction | None
    upper: bool
    chance: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Detour:
    """Rounding to fp32 first and then to the format: the value in between, and the code and value it ends at."""

    between: Fraction | None
    code: int
    value: Fraction | None
    direct: int

    @property
    def differs(self) -> bool:
        """Whether the detour ends elsewhere than the direct way."""
        return self.code != self.direct


@dataclass(frozen=True, slots=True)
class Microscope:
    """A number between its two neighbors in a format. Made by `magnify`.

    low, high: the neighbors; equal to ``asked`` both where it is exact. high_code is None, or low_code for a
    negative number, where the neighbor is the step past the largest finite value, which is no number of the format.
    overflow: what happens beyond the largest finite value, never ``format``.
    position: where between them, 0 to 1. kept: the last significant bits of the one nearer to zero, the point after
    the first of them all where it is shown. guard, round_, sticky: the bits that decide.
    """

    fmt: FloatFormat
    overflow: Overflow
    asked: Fraction
    low: Fraction
    high: Fraction
    low_code: int | None
    high_code: int | None
    position: Fraction
    kept: str
    guard: int
    round_: int
    sticky: int
    choices: tuple[ModeResult, ...]

    @property
    def exact(self) -> bool:
        """Whether there is nothing to round."""
        return self.low == self.high

    @property
    def tie(self) -> Fraction:
        """Halfway between the neighbors, exact."""
        return (self.low + self.high) / 2


def magnify(fraction: Fraction, fmt: FloatFormat, overflow: Overflow = "format") -> Microscope | None:
    """Look at the rounding of ``fraction`` into ``fmt``; None if the format has no neighbor on one side.

    That is so from one step past the largest finite value on, and for a format without zero or sign also near and below
    zero. Raises `FormatError` for an overflow policy that the format cannot follow.
    """
    around = _neighbors(fraction, fmt)
    if around is None:
        return None
    low_code, low, high_code, high = around
    gap = high - low
    position = (fraction - low) / gap if gap else Fraction(0)
    inner, step = (low, gap) if fraction >= 0 else (high, gap)
    text, guard, round_, sticky = _deciding_bits(abs(fraction), abs(inner), step, fmt)
    return Microscope(
        fmt,
        fmt.outcome(overflow),
        fraction,
        low,
        high,
        low_code,
        high_code,
        position,
        text,
        guard,
        round_,
        sticky,
        tuple(_choice(mode, fraction, high, position, fmt, overflow) for mode in ROUNDINGS),
    )


def _neighbors(fraction: Fraction, fmt: FloatFormat) -> tuple[int | None, Fraction, int | None, Fraction] | None:
    code = encode_exact(fraction, fmt, "saturate")
    value = decode_exact(code, fmt)
    if value is None:
        return None
    if value == fraction:
        return code, value, code, value
    outer = neighbor(code, fmt, up=value < fraction)
    other = decode_exact(outer, fmt) if outer is not None else None
    if other is None:
        if abs(value) != fmt.max_finite:
            return None
        # The step past the largest finite value: no code, but round-to-nearest measures its tie against it.
        outer, other = None, value + (fmt.quantum_max if value < fraction else -fmt.quantum_max)
    if not min(value, other) < fraction < max(value, other):
        return None
    return (code, value, outer, other) if value < fraction else (outer, other, code, value)


def _deciding_bits(magnitude: Fraction, inner: Fraction, step: Fraction, fmt: FloatFormat) -> tuple[str, int, int, int]:
    """Return the last kept bits, then guard, round and sticky, of a ``magnitude`` at or beyond ``inner``."""
    ulp = step or spacing(magnitude, fmt)
    units = inner / ulp
    remainder = magnitude / ulp - units
    digits = f"{int(units):b}".rjust(fmt.fraction_bits + 1, "0")
    whole, fraction = digits[: -fmt.fraction_bits or None], digits[-fmt.fraction_bits :] if fmt.fraction_bits else ""
    text = f"{whole}.{fraction}" if fraction else whole
    if len(digits) > _LONGEST_KEPT:
        text = f"…{digits[-_LONGEST_KEPT:]}"
    quarters = remainder * 4
    floor = int(quarters)
    return text, floor >> 1, floor & 1, int(quarters != floor)


def spacing(magnitude: Fraction, fmt: FloatFormat) -> Fraction:
    """Return distance between the values of ``fmt`` around ``magnitude`` ≥ 0, going up."""
    if fmt.twos_complement or not magnitude:
        return fmt.min_subnormal
    return Fraction(2) ** (max(floor_log2(magnitude), fmt.emin) - fmt.fraction_bits)


def _choice(
    mode: Rounding, fraction: Fraction, high: Fraction, position: Fraction, fmt: FloatFormat, overflow: Overflow
) -> ModeResult:
    if mode == "stochastic":
        return ModeResult(mode, None, None, position > Fraction(1, 2), position)
    code = encode_exact(fraction, fmt, overflow, rounding=mode)
    value = decode_exact(code, fmt)
    if value is None:
        return ModeResult(mode, code, None, fraction > 0)
    return ModeResult(mode, code, value, value == high)


def through_fp32(fraction: Fraction, fmt: FloatFormat, overflow: Overflow) -> Detour | None:
    """Return the way through fp32, for formats narrower than that."""
    wide = FORMATS["fp32"]
    if fmt.fraction_bits >= wide.fraction_bits:
        return None
    between = encode_exact(fraction, wide)
    value = decode_exact(between, wide)
    direct = encode_exact(fraction, fmt, overflow)
    code = direct if value is None else encode_exact(value, fmt, overflow)
    return Detour(value, code, decode_exact(code, fmt), direct)


def explainable(scope: Microscope) -> bool:
    """Return whether there is anything to round, and float64 can show it."""
    if scope.exact or max(abs(scope.low), abs(scope.high)) > FORMATS["fp64"].max_finite:
        return False
    return float(scope.low) != float(scope.high)


def explain(scope: Microscope) -> tuple[Explanation, ...]:
    """Return how tie point and chance are computed; nothing if there is nothing `explainable`."""
    if not explainable(scope):
        return ()
    low, high, value = float(scope.low), float(scope.high), float(scope.asked)
    return tie_point.explain(low=low, high=high), chance_up.explain(asked=value, low=low, gap=high - low)


def shares(chance: Fraction) -> tuple[str, str]:
    """Return ``chance`` and its complement in percent, to three digits of the smaller, so that they add up to 100.

    A share too small to write out beside 100 stands as a power of ten, and its complement as "almost 100".
    """
    small = 100 * min(chance, 1 - chance)
    if Fraction(49_999, 1000) < small < 50:
        texts = ("just under 50", "just over 50")
    elif not small:
        texts = ("0", "100")
    elif small < Fraction(1, 10**6):
        texts = (rounded(small, 3), "almost 100")
    else:
        places = next(n for n in range(1, 9) if small * 10**n >= 100 or n == 8)
        texts = tuple(
            f"{float(round(share, places)):.{places}f}".rstrip("0").rstrip(".") for share in (small, 100 - small)
        )
    return (texts[0], texts[1]) if 2 * chance <= 1 else (texts[1], texts[0])
