"""Series added in several orders, against loops of one addition at a time, and what can be typed for a series."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.arithmetic.rounded_sums import RoundedSums
from core.floats.arithmetic.series import (
    ACCUMULATOR_BITS,
    DTYPES,
    cut_off,
    in_blocks,
    in_pairs,
    kept,
    one_by_one,
    orders,
    terms,
)
from core.floats.codec import decode, decode_exact, encode, encode_exact
from core.floats.custom import parse_custom
from core.floats.formats import FORMATS, FloatFormat, FormatError
from core.units import QuantityError
from tests.every import every


def plus(a: float, b: float, fmt: FloatFormat) -> float:
    """The exact sum, rounded once by the exact codec."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return a + b
    code = encode_exact(Fraction(a) + Fraction(b), fmt)
    value = decode_exact(code, fmt)
    if value is not None:
        return float(value)
    return math.nan if not fmt.infinity else math.copysign(math.inf, a + b)


def chain(numbers: list[float], fmt: FloatFormat) -> float:
    total = numbers[0]
    for value in numbers[1:]:
        total = plus(total, value, fmt)
    return total


def tree(numbers: list[float], fmt: FloatFormat) -> float:
    while len(numbers) > 1:
        pairs = [plus(a, b, fmt) for a, b in zip(numbers[::2], numbers[1::2], strict=False)]
        numbers = pairs + numbers[len(numbers) // 2 * 2 :]
    return numbers[0]


def same(found: float, wanted: float) -> bool:
    return found == wanted or (math.isnan(found) and math.isnan(wanted))


OWN = ("e8m7", "e5m7", "e4m3fn", "e2m1f", "e3m2fnuz", "e6m20")


@every("name", [*DTYPES, "tf32", *OWN])
def test_orders_are_exact_additions_rounded_once(name: str) -> None:
    fmt = FORMATS.get(name) or parse_custom(name)
    rounding = None if name in DTYPES else RoundedSums(fmt)
    for text in ("1/k", "(-1)^k/k", "normal", "uniform", "0.1", "100, 3, -100", "1e8, 1, -1e8, 1", "k^2"):
        numbers = kept(text, 150, fmt)
        plain = [float(value) for value in numbers]
        assert same(one_by_one(numbers, rounding), chain(plain, fmt)), text
        assert same(in_pairs(numbers, rounding), tree(plain, fmt)), text
        padded = plain + [0.0] * (-len(plain) % 16)
        blocks = [chain(padded[start : start + 16], fmt) for start in range(0, len(padded), 16)]
        assert same(in_blocks(numbers, 16, rounding), chain(blocks, fmt)), text


@every("name", ["tf32", "fp6_e3m2fn", "e4m3fn", "e8m7"])
def test_sums_that_cross_binades_are_rounded_by_the_steps_of_each(name: str) -> None:
    """A sum just below a power of two has finer steps than those above it."""
    fmt, draw = FORMATS.get(name) or parse_custom(name), np.random.default_rng(0)
    for power in range(-4, 4):
        drawn = np.ldexp(draw.integers(-64, 65, 600), draw.integers(power - 8, power + 1, 600))
        numbers = decode(encode(drawn, fmt), fmt)
        assert same(one_by_one(numbers, RoundedSums(fmt)), chain(numbers.tolist(), fmt))


def test_sums_near_the_end_of_float64_are_rounded_too() -> None:
    fmt = parse_custom("e11m10")
    numbers = kept("1e306", 400, fmt)
    assert same(one_by_one(numbers, RoundedSums(fmt)), chain(numbers.tolist(), fmt))


def cut(value: float) -> float:
    """Towards zero, to as many significant bits as the accumulator keeps."""
    mantissa, power = math.frexp(value)
    return math.ldexp(math.trunc(math.ldexp(mantissa, ACCUMULATOR_BITS)), power - ACCUMULATOR_BITS)


@given(st.lists(st.floats(-400, 400), min_size=1, max_size=60))
def test_an_accumulator_cuts_every_sum(values: list[float]) -> None:
    numbers = np.array(values).astype(np.float32)
    total = np.float32(0)
    for start in range(0, len(values), 16):
        part = 0.0
        for value in numbers[start : start + 16]:
            part = cut(part + float(value))
        total = np.float32(total + np.float32(part))
    assert cut_off(numbers, 16) == float(total)


def test_what_deepseek_measured_is_seen() -> None:
    """Section 3.3.2: at 4,096 terms the largest error of the narrow accumulator nears 2 %; blocks of 128 mend it."""
    exact, coarse = orders("uniform", 4096, FORMATS["fp8_e4m3fn"], 4096)
    _, fine = orders("uniform", 4096, FORMATS["fp8_e4m3fn"], 128)
    assert exact == pytest.approx(2048, rel=0.05)
    errors = [abs(next(row for row in rows if "14 bits" in row.name).error) for rows in (coarse, fine)]
    assert errors[0] > 0.02 > 4 * errors[1]


def test_sums_are_kept_where_they_can_be() -> None:
    for name in ("e8m0f_unsigned", "e4m3_nosub", "e9m30"):
        with pytest.raises(FormatError, match="keeps no sums here"):
            orders("1/k", 10, parse_custom(name), 4)
    assert orders("1/k", 1000, parse_custom("e8m7"), 16)[1][:3] == tuple(
        replace(row, how=row.how.replace("bf16", "E8M7")) for row in orders("1/k", 1000, FORMATS["bf16"], 16)[1][:3]
    )


@every(
    ("text", "first"),
    [
        ("1/k", [1, 1 / 2, 1 / 3, 1 / 4]),
        ("(-1)^k/k", [-1, 1 / 2, -1 / 3, 1 / 4]),
        ("(−1)**k · 2", [-2, 2, -2, 2]),
        ("0.01", [0.01] * 4),
        ("1e8, 1, -1e8", [1e8, 1, -1e8, 1e8]),
        ("k, -k", [1, -2, 3, -4]),
        ("sqrt(k) + exp(0)", [2, 1 + 2**0.5, 1 + 3**0.5, 3]),
        ("K", [1, 2, 3, 4]),
    ],
)
def test_series_are_read(text: str, first: list[float]) -> None:
    assert terms(text, 4).tolist() == pytest.approx(first)


@every(
    ("text", "said"),
    [
        ("", "is no series"),
        ("x", "is no series"),
        ("1 +", "is no series"),
        ("k if k else 1", "is no series"),
        ("__import__('os')", "is no series"),
        ("k.real", "is no series"),
        ("()", "is no series"),
        ("True", "is no series"),
        ("1j", "is no series"),
        ("'a'", "is no series"),
        ("sum(k)", "is no series"),
        ("log(k - 1)", "Term 1 of"),
        ("1/(k - 2)", "Term 2 of"),
        ("9^9^9^9", "Term 1 of"),
        ("-" * 150 + "k" * 60, "more than the 200"),
        ("(" * 199, "is no series"),
    ],
)
def test_what_is_no_series_says_so(text: str, said: str) -> None:
    with pytest.raises(QuantityError, match=said):
        terms(text, 3)
