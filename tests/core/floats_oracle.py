"""What the codec must do, worked out slowly from the definition: shares nothing with the code it judges."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache

import numpy as np
from hypothesis import strategies as st

from core.floats.codec import classify, decode_exact
from core.floats.custom import custom_format
from core.floats.formats import FORMATS, FloatFormat, FormatError

SMALL = {name: fmt for name, fmt in FORMATS.items() if fmt.bits <= 16}


def all_codes(fmt: FloatFormat) -> np.ndarray:
    """Every code of a small format."""
    return np.arange(1 << fmt.bits, dtype=np.uint64)


def value_of(code: int, fmt: FloatFormat) -> Fraction | None:
    """The definition, read off the bits as text; None for infinity and NaN. Shares nothing with the codec."""
    bits = f"{code:0{fmt.signed + fmt.exponent_bits + fmt.fraction_bits}b}"
    if fmt.twos_complement:
        return Fraction(code - (256 if bits[0] == "1" else 0), 64)
    sign, bits = (bits[0], bits[1:]) if fmt.signed else ("0", bits)
    exponent, fraction = bits[: fmt.exponent_bits], bits[fmt.exponent_bits :]
    if fmt.nan == "ieee" and "0" not in exponent:
        return None
    tops = ["1" * len(bits), f"{'1' * (len(bits) - 1)}0"]
    if bits in tops[: (fmt.nan == "all_ones") + (fmt.infinity and fmt.nan != "ieee")]:
        return None
    if "1" not in bits and fmt.zero:
        return None if sign == "1" and not fmt.negative_zero else Fraction(0)
    graded = fmt.zero and (fmt.subnormals or not fraction)
    lead = 0 if "1" not in exponent and graded else 1
    power = max(int(exponent, 2), int(graded)) - fmt.bias
    magnitude = Fraction(int(f"{lead}{fraction}", 2)) / 2**fmt.fraction_bits * Fraction(2) ** power
    return -magnitude if sign == "1" else magnitude


@lru_cache(maxsize=512)
def line(fmt: FloatFormat) -> tuple[list[Fraction], list[int]]:
    """All non-negative finite values of a small format in order, and their codes."""
    pairs = [(value_of(code, fmt), code) for code in range(fmt.magnitude_mask + 1)]
    kept = [(value, code) for value, code in pairs if value is not None]
    assert kept == sorted(kept)
    return [value for value, _ in kept], [code for _, code in kept]


def rounded_value(value: Fraction, fmt: FloatFormat, rounding: str, overflow: str) -> Fraction | str:
    """What ``value`` becomes, found by searching the line of values; "inf" or "nan" beyond it."""
    values, codes = line(fmt)
    magnitude, sign = abs(value), -1 if value < 0 else 1
    if not fmt.signed and value < 0:
        return "nan" if fmt.has_nan else values[0]
    if value == 0 and not fmt.zero:
        return "nan"
    above = bisect_left(values, magnitude)
    if above < len(values) and (values[above] == magnitude or above == 0):
        return sign * values[above]
    low, high = values[above - 1], values[above] if above < len(values) else None
    # One more step past the end stands for everything beyond.
    beyond = values[-1] + fmt.quantum_max
    top = high if high is not None else beyond
    inward = rounding == "toward_zero" or rounding == ("up" if sign < 0 else "down")
    outward = rounding == ("down" if sign < 0 else "up")
    middle = (low + top) / 2
    if outward or (not inward and magnitude > middle):
        chosen = high
    elif inward or magnitude < middle:
        chosen = low
    elif rounding == "nearest_away" or (fmt.fraction_bits == 0 and low):
        chosen = high  # with one digit of precision no neighbor is even: IEEE takes the larger
    else:
        chosen = low if codes[above - 1] % 2 == 0 else high
    if chosen is not None:
        return sign * chosen
    policy = fmt.own_overflow if overflow == "format" else overflow
    return {"saturate": sign * values[-1], "infinity": "inf", "nan": "nan"}[policy]


def described(code: int, fmt: FloatFormat) -> Fraction | str:
    """A code as its value, "inf" or "nan"."""
    kind = classify(code, fmt)
    value = decode_exact(code, fmt)
    return kind if value is None else value


@st.composite
def custom_formats(draw: st.DrawFn, most_bits: int = 10) -> FloatFormat:
    """A custom format of few bits; those that cannot exist are drawn again."""
    exponent_bits = draw(st.integers(1, min(8, most_bits - 2)))
    fraction_bits = draw(st.integers(0, most_bits - 1 - exponent_bits))
    for _ in range(20):
        try:
            return custom_format(
                exponent_bits,
                fraction_bits,
                bias=draw(st.none() | st.integers(-20, 200)),
                signed=draw(st.booleans()),
                infinity=draw(st.booleans()),
                nan=draw(st.sampled_from(["ieee", "all_ones", "negative_zero", "none"])),
                negative_zero=draw(st.sampled_from([None, None, False])),
                subnormals=draw(st.booleans()),
            )
        except FormatError:
            continue
    return custom_format(4, 3)


small_format = st.sampled_from(list(SMALL.values())) | custom_formats()


@st.composite
def format_and_value(draw: st.DrawFn) -> tuple[FloatFormat, Fraction]:
    """A small format and a number where rounding goes wrong if it does: values, ties, and points just beside them."""
    fmt = draw(small_format)
    values, _ = line(fmt)
    at = draw(st.integers(0, len(values) - 1))
    step = values[at + 1] - values[at] if at + 1 < len(values) else fmt.quantum_max
    nudge = draw(st.sampled_from([Fraction(0), Fraction(1, 10**40), Fraction(-1, 10**40), Fraction(1, 3)]))
    place = draw(st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2)]))
    near = values[at] + step * (place + nudge)
    return fmt, draw(st.sampled_from([1, -1])) * near
