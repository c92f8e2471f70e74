"""Rounding: which of its two neighbors a value becomes, for exact fractions and for arrays of float64 patterns.

Every mode rounds once, straight from the value: round-to-nearest (ties to even or away from zero), the three directed
modes, and stochastic rounding, which goes up with the probability of the remainder.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.floats.formats import FloatFormat, FormatError, Overflow

Rounding: TypeAlias = Literal["nearest_even", "nearest_away", "toward_zero", "up", "down", "stochastic"]
ROUNDINGS: tuple[Rounding, ...] = ("nearest_even", "nearest_away", "toward_zero", "up", "down", "stochastic")

Seed: TypeAlias = "int | np.random.Generator | None"
"""Where stochastic rounding takes its random bits: a seed, a generator that goes on, or None for fresh ones."""

Words: TypeAlias = npt.NDArray[np.uint64]

_ONE = np.uint64(1)
_MAGNITUDE = np.uint64((1 << 63) - 1)
_HIDDEN = np.uint64(1 << 52)
_FRACTION = np.uint64((1 << 52) - 1)
_INFINITY = np.uint64(0x7FF << 52)
_DEEPEST = 54  # past every significand of 53 bits: all of it is then less than half a step
_RANDOM_BITS = 62


def is_away(rounding: Rounding, negative: bool) -> bool:
    """Return whether a directed mode takes the neighbor further from zero."""
    return rounding == ("down" if negative else "up")


def is_inward(rounding: Rounding, negative: bool) -> bool:
    """Return whether a directed mode takes the neighbor nearer to zero, and so never overflows."""
    return rounding in ("toward_zero", "up" if negative else "down")


def round_fraction(magnitude: Fraction, rounding: Rounding, *, negative: bool = False, seed: Seed = None) -> int:
    """Return ``magnitude`` ≥ 0 rounded to an integer. negative: the sign of the number, which directed modes need."""
    below = magnitude.numerator // magnitude.denominator
    rest = magnitude - below
    if rest == 0 or is_inward(rounding, negative):
        return below
    if is_away(rounding, negative):
        return below + 1
    if rounding == "stochastic":
        draw = int(np.random.default_rng(seed).integers(0, 1 << _RANDOM_BITS))
        return below + (Fraction(draw, 1 << _RANDOM_BITS) < rest)
    if rounding == "nearest_away":
        return below + (2 * rest >= 1)
    return round(magnitude)  # a Fraction's round is to nearest, ties to even


def overflow_code(fmt: FloatFormat, overflow: Overflow) -> int:
    """Return the magnitude code for values beyond the largest finite one; the code of −0 if that is NaN."""
    policy = fmt.own_overflow if overflow == "format" else overflow
    if policy == "saturate":
        return fmt.max_code
    return fmt.nan_code if policy == "nan" else fmt.max_code + 1


def check_policies(fmt: FloatFormat, rounding: Rounding, overflow: Overflow) -> None:
    """Raise `FormatError` for a policy that the format cannot follow, ``ValueError`` for one that does not exist."""
    if rounding not in ROUNDINGS:
        raise ValueError(f"no rounding “{rounding}”: it is one of {', '.join(ROUNDINGS)}")
    if overflow not in fmt.overflows:
        known = ", ".join(fmt.overflows)
        raise FormatError(f"{fmt.title} cannot overflow to “{overflow}”: it is one of {known} for this format.")


def signed_code(magnitude: int, fmt: FloatFormat, *, negative: bool) -> int:
    """Return the code of a magnitude code with its sign. A zero whose −0 is no number stays +0."""
    if not negative:
        return magnitude
    if fmt.twos_complement:
        return -magnitude & (2 * fmt.sign_mask - 1)
    return magnitude | fmt.sign_mask if magnitude or fmt.has_negative_zero else magnitude


def zero_code(fmt: FloatFormat, *, negative: bool = False) -> int:
    """Return what zero becomes: itself, or NaN in a format without one (else its smallest value)."""
    if fmt.zero:
        return signed_code(0, fmt, negative=negative)
    return fmt.nan_code if fmt.has_nan else 0


def below_zero_code(fmt: FloatFormat) -> int:
    """Return the code of a negative value in an unsigned format: NaN, or the smallest value in a format without NaN."""
    return fmt.nan_code if fmt.has_nan else 0


def infinity_code(fmt: FloatFormat, overflow: Overflow = "format", *, negative: bool = False) -> int:
    """Return the code of infinity: itself if the format has it and does not saturate, else the overflow result, or
    NaN."""
    if fmt.lost:
        return fmt.nan_code
    if negative and not fmt.signed:
        return below_zero_code(fmt)
    has_infinity = fmt.infinity and overflow != "saturate"
    return signed_code(fmt.max_code + 1 if has_infinity else overflow_code(fmt, overflow), fmt, negative=negative)


def encode_patterns(
    raw: Words, fmt: FloatFormat, rounding: Rounding, overflow: Overflow, generator: np.random.Generator | None
) -> Words:
    """Return the codes of float64 bit patterns. A NaN in a format without one gives 0: the caller has rejected it."""
    magnitude = raw & _MAGNITUDE
    negative = raw > _MAGNITUDE
    exponent = (magnitude >> np.uint64(52)).astype(np.int64)
    # value = significand · 2^(unbiased − 52); float64's own subnormals have no hidden bit and exponent 1 − 1023.
    significand = np.where(exponent > 0, magnitude & _FRACTION | _HIDDEN, magnitude & _FRACTION)
    unbiased = np.maximum(exponent, 1) - 1023
    step = np.maximum(unbiased, fmt.emin)
    drop = step - unbiased + (52 - fmt.fraction_bits)  # bits below the format's last place
    if rounding == "stochastic":
        rounded = _stochastic(significand, drop, generator or np.random.default_rng())
    else:
        places = np.minimum(drop, _DEEPEST).astype(np.uint64)
        truncated = significand >> places
        # Where the significand is one digit, which is never even, only the code can be.
        odd = (truncated + (step - fmt.emin).astype(np.uint64) if fmt.even_codes else truncated) & _ONE
        rounded = (significand + _bump(places, odd, negative, rounding)) >> places
    code = ((step - fmt.emin).astype(np.uint64) << np.uint64(fmt.fraction_bits)) + rounded
    if not fmt.gradual:
        # Exponent field 0 has a leading 1 like the others, which the sum above counted as a step of the exponent.
        code -= np.minimum(code, np.uint64(1 << fmt.fraction_bits))
        code = _bottom(code, magnitude, negative, fmt, rounding, generator)
    return _finish(code, magnitude, negative, fmt, rounding, overflow)


def _bump(places: Words, odd: Words, negative: npt.NDArray[np.bool_], rounding: Rounding) -> Words:
    """Return what carries into the kept part exactly when rounding goes up. odd: whether a tie leaves where it
    stands."""
    unit = _ONE << places
    half = unit >> _ONE
    if rounding == "nearest_even":
        return np.where(places > 0, half - _ONE + odd, np.uint64(0))
    if rounding == "nearest_away":
        return half
    if rounding == "toward_zero":
        return np.zeros_like(unit)
    return np.where(negative == (rounding == "down"), unit - _ONE, np.uint64(0))


def _stochastic(significand: Words, drop: npt.NDArray[np.int64], generator: np.random.Generator) -> Words:
    """Return up with the probability of the remainder: exactly, down to 2^−62."""
    places = np.minimum(drop, _RANDOM_BITS)
    # Deeper than 62 bits, the bits that would decide between chances below 2^−62 are let go.
    shifted = significand >> np.minimum(drop - places, 63).astype(np.uint64)
    draw = generator.integers(0, 1 << _RANDOM_BITS, size=significand.shape, dtype=np.uint64)
    bump = draw >> (_RANDOM_BITS - places).astype(np.uint64)
    return (shifted + bump) >> places.astype(np.uint64)


def _bottom(
    code: Words,
    magnitude: Words,
    negative: npt.NDArray[np.bool_],
    fmt: FloatFormat,
    rounding: Rounding,
    generator: np.random.Generator | None,
) -> Words:
    """Return the codes once more where a format without subnormals has a gap: below its smallest value."""
    least = float(fmt.min_subnormal)
    value = magnitude.view(np.float64)
    low = (value < least) & (magnitude > 0)
    if not low.any():
        return code
    if not fmt.zero:
        return np.where(low, np.uint64(0), code)
    value = np.where(low, value, 0.0)
    if rounding == "stochastic":
        up = (generator or np.random.default_rng()).random(code.shape) * least < value
    elif rounding == "nearest_even":
        up = 2 * value > least
    elif rounding == "nearest_away":
        up = 2 * value >= least
    else:
        up = (negative == (rounding == "down")) & (rounding != "toward_zero")
    return np.where(low, up.astype(np.uint64), code)


def _finish(
    code: Words,
    magnitude: Words,
    negative: npt.NDArray[np.bool_],
    fmt: FloatFormat,
    rounding: Rounding,
    overflow: Overflow,
) -> Words:
    """Apply overflow, infinity, NaN, zero, and the sign."""
    over = code > fmt.max_code
    if over.any():
        beyond = [
            np.uint64(fmt.max_code if is_inward(rounding, sign) else overflow_code(fmt, overflow))
            for sign in (False, True)
        ]
        code = np.where(over, np.where(negative, beyond[1], beyond[0]), code)
        ends = [
            np.uint64(infinity_code(fmt, overflow, negative=False)),
            np.uint64(infinity_code(fmt, overflow, negative=True)),
        ]
    else:
        ends = None
    if fmt.twos_complement:
        code = np.where(negative, (~code + _ONE) & np.uint64(2 * fmt.sign_mask - 1), code)
    elif fmt.signed:
        sign = np.where(negative, np.uint64(fmt.sign_mask), np.uint64(0))
        code = code | (sign if fmt.has_negative_zero else np.where(code > 0, sign, np.uint64(0)))
    else:
        code = np.where(negative & (magnitude > 0), np.uint64(below_zero_code(fmt)), code)
    if not fmt.zero:
        code = np.where(magnitude == 0, np.uint64(zero_code(fmt)), code)
    if ends is not None:
        code = np.where(magnitude == _INFINITY, np.where(negative, ends[1], ends[0]), code)
        code = np.where(magnitude > _INFINITY, np.uint64(fmt.nan_code if fmt.has_nan else 0), code)
    return code
