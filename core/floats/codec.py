"""Values to codes and back, exactly: one rounding to nearest, ties to even, straight from the value.

Libraries often reach a narrow format through float32 and so round twice; here the only rounding is the one into
the format itself.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.floats.formats import FloatFormat

Overflow: TypeAlias = Literal["format", "saturate"]
"""What a value beyond the largest finite one becomes.

``format``: what the format itself says, infinity where it has one, else NaN. ``saturate``: the largest finite value,
also for infinity itself; NaN stays NaN.
"""

OVERFLOWS: tuple[Overflow, ...] = ("format", "saturate")

NumberClass: TypeAlias = Literal["zero", "subnormal", "normal", "inf", "nan"]

_MAGNITUDE = np.uint64((1 << 63) - 1)
_HIDDEN = np.uint64(1 << 52)
_FRACTION = np.uint64((1 << 52) - 1)
_INFINITY = np.uint64(0x7FF << 52)
_TABLE_BITS = 16
_BLOCK = 1 << 14  # elements worked on at a time, so that the dozen intermediate arrays stay in the cache


def encode(values: npt.ArrayLike, fmt: FloatFormat, overflow: Overflow = "format") -> npt.NDArray[np.uint64]:
    """Codes of ``values`` in ``fmt``, each rounded once to nearest, ties to even.

    values: float64 of any shape, or what converts to it without loss (float32, float16, integers up to 2⁵³);
        for anything finer there is `encode_exact`. Raises ``TypeError`` for wider floats and complex numbers.
    Returns uint64 of the same shape. NaN gives the format's quiet NaN.
    """
    given = np.asarray(values)
    if given.dtype.kind not in "fiub" or given.dtype.itemsize > 8:
        raise TypeError(f"encode takes float64 values, not {given.dtype}; use encode_exact for exact fractions")
    raw = given.astype(np.float64, copy=False).reshape(-1).view(np.uint64)
    codes = np.empty(raw.shape, dtype=np.uint64)
    for start in range(0, raw.size, _BLOCK):
        codes[start : start + _BLOCK] = _encode_block(raw[start : start + _BLOCK], fmt, overflow)
    return codes.reshape(given.shape)


def _encode_block(raw: npt.NDArray[np.uint64], fmt: FloatFormat, overflow: Overflow) -> npt.NDArray[np.uint64]:
    """The codes of float64 bit patterns, one dimension."""
    magnitude = raw & _MAGNITUDE
    exponent = (magnitude >> np.uint64(52)).astype(np.int64)
    # value = significand · 2^(unbiased − 52); float64's own subnormals have no hidden bit and exponent 1 − 1023.
    significand = np.where(exponent > 0, magnitude & _FRACTION | _HIDDEN, magnitude & _FRACTION)
    unbiased = np.maximum(exponent, 1) - 1023
    step = np.maximum(unbiased, fmt.emin)
    # Bits below the format's last place. 54 is past every significand: all of it is then less than half a step.
    drop = np.minimum(step - unbiased + (52 - fmt.fraction_bits), 54).astype(np.uint64)
    kept = significand >> drop
    # Adding just under half, or half when the kept part is odd, carries into it exactly when rounding goes up.
    half = (np.uint64(1) << drop) >> np.uint64(1)
    bump = np.where(drop > 0, half - np.uint64(1) + (kept & np.uint64(1)), np.uint64(0))
    rounded = (significand + bump) >> drop
    code = ((step - fmt.emin).astype(np.uint64) << np.uint64(fmt.fraction_bits)) + rounded
    code = np.where(code > fmt.max_code, np.uint64(_overflow_code(fmt, overflow)), code)
    sign = (raw >> np.uint64(63)) << np.uint64(fmt.bits - 1)
    return np.where(magnitude > _INFINITY, np.uint64(fmt.nan_code), code | sign)


def decode(codes: npt.ArrayLike, fmt: FloatFormat) -> npt.NDArray[np.float64]:
    """Values of ``codes`` (non-negative integers of any shape) as float64, which holds every format here exactly.

    Raises ``ValueError`` when a code has more bits than the format.
    """
    given = np.asarray(codes)
    if given.dtype.kind not in "iu":
        raise TypeError(f"codes are integers, not {given.dtype}")
    if given.size and (int(given.min()) < 0 or int(given.max()) >> fmt.bits):
        raise ValueError(f"a {fmt.title} code has {fmt.bits} bits: 0 to {(1 << fmt.bits) - 1:#x}")
    if fmt.bits <= _TABLE_BITS:
        return np.take(_table(fmt), given)
    flat = given.astype(np.uint64, copy=False).reshape(-1)
    values = np.empty(flat.shape, dtype=np.float64)
    for start in range(0, flat.size, _BLOCK):
        values[start : start + _BLOCK] = _decode_block(flat[start : start + _BLOCK], fmt)
    return values.reshape(given.shape)


@lru_cache(maxsize=32)
def _table(fmt: FloatFormat) -> npt.NDArray[np.float64]:
    """The values of all codes of a format of at most 16 bits."""
    table = _decode_block(np.arange(1 << fmt.bits, dtype=np.uint64), fmt)
    table.flags.writeable = False
    return table


def _decode_block(codes: npt.NDArray[np.uint64], fmt: FloatFormat) -> npt.NDArray[np.float64]:
    magnitude = codes & np.uint64(fmt.sign_mask - 1)
    exponent = (magnitude >> np.uint64(fmt.fraction_bits)).astype(np.int64)
    fraction = magnitude & np.uint64(fmt.fraction_mask)
    significand = np.where(exponent > 0, fraction + np.uint64(1 << fmt.fraction_bits), fraction)
    power = (np.maximum(exponent, 1) - (fmt.bias + fmt.fraction_bits)).astype(np.int32)
    beyond = magnitude > fmt.max_code
    # Codes that are no number would overflow ldexp for nothing.
    value = np.ldexp(significand.astype(np.float64), np.where(beyond, np.int32(0), power))
    value = np.where(beyond, np.inf if fmt.inf_code is not None else np.nan, value)
    if fmt.inf_code is not None:
        value = np.where(magnitude > fmt.inf_code, np.nan, value)
    return np.where(codes >> np.uint64(fmt.bits - 1) > 0, -value, value)


def encode_exact(value: Fraction, fmt: FloatFormat, overflow: Overflow = "format") -> int:
    """The code of an exact ``value``, rounded once to nearest, ties to even. Zero gives +0."""
    magnitude = abs(value)
    sign = fmt.sign_mask if value < 0 else 0
    if magnitude == 0:
        return 0
    if magnitude >= 4 * fmt.max_finite:
        # Far beyond: no need to divide thousand-digit integers to learn that.
        return sign | _overflow_code(fmt, overflow)
    step = max(floor_log2(magnitude), fmt.emin)
    # Python rounds a Fraction to the nearest integer, ties to even.
    rounded = round(magnitude / Fraction(2) ** (step - fmt.fraction_bits))
    code = ((step - fmt.emin) << fmt.fraction_bits) + rounded
    return sign | (code if code <= fmt.max_code else _overflow_code(fmt, overflow))


def decode_exact(code: int, fmt: FloatFormat) -> Fraction | None:
    """The exact value of a code, or None where it is infinity or NaN. Raises ``ValueError`` like `decode`."""
    if code < 0 or code >> fmt.bits:
        raise ValueError(f"a {fmt.title} code has {fmt.bits} bits: 0 to {(1 << fmt.bits) - 1:#x}")
    magnitude = code & (fmt.sign_mask - 1)
    if magnitude > fmt.max_code:
        return None
    exponent, fraction = magnitude >> fmt.fraction_bits, magnitude & fmt.fraction_mask
    significand = fraction + (1 << fmt.fraction_bits) if exponent else fraction
    value = significand * Fraction(2) ** (max(exponent, 1) - fmt.bias - fmt.fraction_bits)
    return -value if code & fmt.sign_mask else value


def classify(code: int, fmt: FloatFormat) -> NumberClass:
    """What kind of number a code is."""
    magnitude = code & (fmt.sign_mask - 1)
    if magnitude > fmt.max_code:
        return "inf" if magnitude == fmt.inf_code else "nan"
    if magnitude >> fmt.fraction_bits:
        return "normal"
    return "subnormal" if magnitude else "zero"


def floor_log2(value: Fraction) -> int:
    """The largest k with 2^k ≤ ``value``, for ``value`` > 0."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if value >= Fraction(2) ** guess else guess - 1


def _overflow_code(fmt: FloatFormat, overflow: Overflow) -> int:
    if overflow == "saturate":
        return fmt.max_code
    return fmt.nan_code if fmt.inf_code is None else fmt.inf_code
