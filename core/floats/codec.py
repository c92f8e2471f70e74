"""Values to codes and back, exactly: one rounding, in the mode you name, straight from the value.

Libraries often reach a narrow format through float32 and so round twice; here the only rounding is the one into
the format itself.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.floats.formats import FloatFormat, FormatError, Overflow
from core.floats.rounding import (
    Rounding,
    Seed,
    Words,
    below_zero_code,
    check_policies,
    encode_patterns,
    is_inward,
    overflow_code,
    round_fraction,
    signed_code,
    zero_code,
)
from core.limits import cached
from core.messages import message

NumberClass: TypeAlias = Literal["zero", "subnormal", "normal", "inf", "nan"]

_BLOCK = 1 << 14  # elements worked on at a time, so that the intermediate arrays stay in the cache
_DECODE_BITS = 16  # formats up to this wide are decoded by table
_ENCODE_FRACTION = 7  # and up to this many fraction bits, long arrays are encoded by table

Codes: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]


def encode(
    values: npt.ArrayLike,
    fmt: FloatFormat,
    *,
    rounding: Rounding = "nearest_even",
    overflow: Overflow = "format",
    seed: Seed = None,
    dtype: type[np.unsignedinteger[Any]] | None = None,
) -> Codes:
    """Return the codes of ``values`` in ``fmt``, each rounded once, in the shape of ``values``.

    NaN gives the format's quiet NaN. A negative value gives NaN in an unsigned format, and so does 0 in E8M0.
    Magnitudes below the smallest E8M0 value become that value.

    Args:
        values: float64 of any shape, or what converts to it without loss (float32, float16, integers up to 2⁵³). For
            finer numbers, use `encode_exact`.
        rounding, overflow: `Rounding` and `Overflow`.
        seed: Random bits of stochastic rounding, a number or a generator.
        dtype: Unsigned integer type of the codes; by default the narrowest that is wide enough.

    Raises:
        TypeError: For wider floats and complex numbers.
        FormatError: For NaN in a format without one.
    """
    given = np.asarray(values)
    if given.dtype.kind not in "fiub" or given.dtype.itemsize > 8:
        raise TypeError(f"encode takes float64 values, not {given.dtype}; use encode_exact for exact fractions")
    codes: Codes = np.empty(given.size, dtype=dtype or np.min_scalar_type((1 << fmt.bits) - 1))
    if codes.dtype.kind != "u" or 8 * codes.itemsize < fmt.bits:
        raise TypeError(f"{codes.dtype} has no room for the {fmt.bits} bits of a {fmt.title} code")
    check_policies(fmt, rounding, overflow)
    flat = given.astype(np.float64, copy=False).reshape(-1)
    generator = np.random.default_rng(seed) if rounding == "stochastic" else None
    # A table pays for arrays about as long as itself.
    if rounding != "stochastic" and fmt.fraction_bits <= _ENCODE_FRACTION and flat.size >> (_index_bits(fmt) - 2):
        _encode_by_table(flat, fmt, _encode_table(fmt, rounding, overflow), codes)
        return codes.reshape(given.shape)
    has_nan = fmt.has_nan
    for start in range(0, flat.size, _BLOCK):
        part = flat[start : start + _BLOCK]
        if not has_nan and np.isnan(part.max()):
            raise no_nan(fmt)
        codes[start : start + _BLOCK] = encode_patterns(part.view(np.uint64), fmt, rounding, overflow, generator)
    return codes.reshape(given.shape)


def _index_bits(fmt: FloatFormat) -> int:
    """Return the leading bits of a float64 that decide its code: sign, exponent, the format's fraction, guard and
    sticky bit."""
    return 12 + fmt.fraction_bits + 2


@cached("arrays_kept")
def _encode_table(fmt: FloatFormat, rounding: Rounding, overflow: Overflow) -> npt.NDArray[Any]:
    """Return the code of every pattern of the leading bits.

    Every value and every tie of the format ends before the last of those bits, so all float64 values that share the
    bits before it, and are not exactly there, share their code.
    """
    width = _index_bits(fmt)
    table = np.empty(1 << width, dtype=np.min_scalar_type((1 << fmt.bits) - 1))
    for start in range(0, table.size, _BLOCK):
        raw = np.arange(start, start + _BLOCK, dtype=np.uint64) << np.uint64(64 - width)
        table[start : start + _BLOCK] = encode_patterns(raw, fmt, rounding, overflow, None)
    table.flags.writeable = False
    return table


def _encode_by_table(
    values: npt.NDArray[np.float64], fmt: FloatFormat, table: npt.NDArray[Any], codes: npt.NDArray[Any]
) -> None:
    """Write the codes of ``values`` into ``codes``, by table."""
    block = 2 * _BLOCK
    index = np.empty(min(values.size, block), dtype=np.uint64)
    places = index.view(np.int64)
    cut = np.uint64(64 - _index_bits(fmt))
    rest = (np.uint64(1) << cut) - np.uint64(1)
    has_nan, direct = fmt.has_nan, table.dtype == codes.dtype
    for start in range(0, values.size, block):
        part = values[start : start + block]
        if not has_nan and np.isnan(part.max()):
            raise no_nan(fmt)
        raw, out = part.view(np.uint64), codes[start : start + block]
        here, at = index[: part.size], places[: part.size]
        # The sticky bit: adding all ones to the bits that are cut off carries exactly when any of them is set.
        np.bitwise_and(raw, rest, out=here)
        np.add(here, rest, out=here)
        np.bitwise_or(here, raw, out=here)
        np.right_shift(here, cut, out=here)
        # No index is out of range; "wrap" is the mode numpy is fastest in.
        if direct:
            table.take(at, out=out, mode="wrap")
        else:
            out[...] = table.take(at, mode="wrap")


def no_nan(fmt: FloatFormat) -> FormatError:
    """Return the error for NaN in a format without it."""
    return FormatError(message("floats.error.no_nan", fmt=fmt.title))


def decode(codes: npt.ArrayLike, fmt: FloatFormat) -> npt.NDArray[np.float64]:
    """Return the values of ``codes`` (non-negative integers of any shape) as float64, which holds every format here
    exactly.

    Raises ``ValueError`` if a code has more bits than the format.
    """
    given = np.asarray(codes)
    if given.dtype.kind not in "iu":
        raise TypeError(f"codes are integers, not {given.dtype}")
    flat = given.reshape(-1)
    values = np.empty(flat.shape, dtype=np.float64)
    width, signed = fmt.bits, given.dtype.kind == "i"
    checked = signed or 8 * given.itemsize > width
    table = _decode_table(fmt) if fmt.bits <= _DECODE_BITS else None
    for start in range(0, flat.size, _BLOCK):
        part, out = flat[start : start + _BLOCK], values[start : start + _BLOCK]
        if checked and (int(part.max()) >> width or (signed and int(part.min()) < 0)):
            raise code_error(fmt)
        if table is not None:
            table.take(part.astype(np.intp, copy=False), out=out, mode="wrap")
        else:
            out[...] = _decode_block(part.astype(np.uint64, copy=False), fmt)
    return values.reshape(given.shape)


def code_error(fmt: FloatFormat) -> ValueError:
    """Return the error of a code that has more bits than its format."""
    return ValueError(f"a {fmt.title} code has {fmt.bits} bits: 0 to {(1 << fmt.bits) - 1:#x}")


@cached("arrays_kept")
def _decode_table(fmt: FloatFormat) -> npt.NDArray[np.float64]:
    """Return the values of all codes of a format of at most 16 bits."""
    table = _decode_block(np.arange(1 << fmt.bits, dtype=np.uint64), fmt)
    table.flags.writeable = False
    return table


def _decode_block(codes: Words, fmt: FloatFormat) -> npt.NDArray[np.float64]:
    negative = codes & np.uint64(fmt.sign_mask) > 0
    magnitude = codes & np.uint64(fmt.magnitude_mask)
    if fmt.twos_complement:
        magnitude = np.where(negative, np.uint64(fmt.sign_mask) - magnitude, magnitude)
    exponent = (magnitude >> np.uint64(fmt.fraction_bits)).astype(np.int64)
    fraction = magnitude & np.uint64(fmt.fraction_mask)
    led = (exponent > 0) | (not fmt.gradual)
    significand = np.where(led, fraction + np.uint64(1 << fmt.fraction_bits), fraction)
    power = (np.maximum(exponent, int(fmt.gradual)) - (fmt.bias + fmt.fraction_bits)).astype(np.int32)
    beyond = np.zeros(codes.shape, dtype=np.bool_) if fmt.twos_complement else magnitude > fmt.max_code
    # Codes that are no number would overflow ldexp for nothing.
    value = np.ldexp(significand.astype(np.float64), np.where(beyond, np.int32(0), power))
    if fmt.zero:
        value = np.where(magnitude > 0, value, 0.0)
    value = np.where(beyond, np.where(magnitude > fmt.last_code, np.nan, np.inf), value)
    value = np.where(negative, -value, value)
    if fmt.signed and not fmt.negative_zero and not fmt.twos_complement:
        value = np.where(codes == fmt.sign_mask, np.nan, value)
    return value


def encode_exact(
    value: Fraction,
    fmt: FloatFormat,
    overflow: Overflow = "format",
    *,
    rounding: Rounding = "nearest_even",
    seed: Seed = None,
) -> int:
    """Return the code of an exact ``value``, rounded once. Zero gives +0; unsigned formats as in `encode`."""
    check_policies(fmt, rounding, overflow)
    magnitude, negative = abs(value), value < 0
    if magnitude == 0:
        return zero_code(fmt)
    if negative and not fmt.signed:
        return below_zero_code(fmt)
    code = _round_magnitude(magnitude, fmt, rounding, negative, seed)
    if code > fmt.max_code:
        code = fmt.max_code if is_inward(rounding, negative) else overflow_code(fmt, overflow)
    return signed_code(code, fmt, negative=negative)


def _round_magnitude(magnitude: Fraction, fmt: FloatFormat, rounding: Rounding, negative: bool, seed: Seed) -> int:
    """Return the magnitude code, perhaps beyond the largest finite one."""
    if magnitude >= 4 * fmt.max_finite:
        return fmt.max_code + 1  # no need to divide thousand-digit integers to learn that it is far beyond
    least = fmt.min_subnormal
    if not fmt.gradual and magnitude < least:
        if not fmt.zero:
            return 0
        return round_fraction(magnitude / least, rounding, negative=negative, seed=seed)
    step = max(floor_log2(magnitude), fmt.emin)
    steps = magnitude / Fraction(2) ** (step - fmt.fraction_bits)
    rounded = round_fraction(steps, rounding, negative=negative, seed=seed)
    if fmt.even_codes and rounding == "nearest_even" and steps == Fraction(3, 2):
        rounded = 1 + (step - fmt.emin + 1) % 2
    return ((step - fmt.emin) << fmt.fraction_bits) + rounded - (0 if fmt.gradual else 1 << fmt.fraction_bits)


def decode_exact(code: int, fmt: FloatFormat) -> Fraction | None:
    """Return the exact value of a code, or None if it is infinity or NaN. Raises ``ValueError`` like `decode`."""
    if code < 0 or code >> fmt.bits:
        raise code_error(fmt)
    magnitude, negative = split(code, fmt)
    if classify(code, fmt) in ("inf", "nan"):
        return None
    value = fmt.magnitude(magnitude)
    return -value if negative else value


def split(code: int, fmt: FloatFormat) -> tuple[int, bool]:
    """Return magnitude code and sign of a code."""
    magnitude, negative = code & fmt.magnitude_mask, bool(code & fmt.sign_mask)
    return (fmt.sign_mask - magnitude if fmt.twos_complement and negative else magnitude), negative


def classify(code: int, fmt: FloatFormat) -> NumberClass:
    """Return what kind of number a code is. Fixed point has no subnormals: whatever is not zero counts as normal."""
    if fmt.twos_complement:
        return "normal" if code else "zero"
    magnitude = code & fmt.magnitude_mask
    if magnitude > fmt.max_code:
        return "inf" if magnitude == fmt.inf_code else "nan"
    if magnitude == 0 and fmt.zero:
        return "nan" if code and not fmt.negative_zero else "zero"
    return "normal" if fmt.lead(magnitude >> fmt.fraction_bits) else "subnormal"


def neighbor(code: int, fmt: FloatFormat, *, up: bool) -> int | None:
    """Return the code of the next value up or down, infinity included; None at the end of the line and for NaN.

    Either zero steps straight to the smallest values, and the smallest negative value steps up to +0.
    """
    if classify(code, fmt) == "nan":
        return None
    magnitude, negative = split(code, fmt)
    if magnitude == 0 and fmt.zero:
        return signed_code(1, fmt, negative=not up) if up or fmt.signed else None
    last = fmt.magnitude_mask + 1 if fmt.twos_complement and negative else fmt.last_code
    if negative != up:  # outward
        return None if magnitude >= last else signed_code(magnitude + 1, fmt, negative=negative)
    if magnitude == 0:
        return None
    return 0 if magnitude == 1 and fmt.zero else signed_code(magnitude - 1, fmt, negative=negative)


def floor_log2(value: Fraction) -> int:
    """Return the largest k with 2^k ≤ ``value``, for ``value`` > 0."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if value >= Fraction(2) ** guess else guess - 1
