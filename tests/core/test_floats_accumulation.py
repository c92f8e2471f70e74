"""Sums in several orders against additions made one by one, by numpy, ml_dtypes and exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.arithmetic.accumulation import DETERMINISTIC, SHOWN, add_up, spread, sum_to_odd
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
from core.floats.rounding import Rounding
from core.limits import limit
from core.units import QuantityError
from core.views.floats.charts import summation_lines
from core.views.floats.text_training import sum_texts
from tests.every import every


def additions(start: float, addend: float, steps: int, name: str, rounding: str) -> list[float]:
    fmt = FORMATS[name]
    code = encode_exact(Fraction(start), fmt)
    small = decode_exact(encode_exact(Fraction(addend), fmt), fmt)
    assert small is not None
    sums = [float(decode([code], fmt)[0])]
    for _ in range(steps):
        total = decode_exact(code, fmt)
        if total is not None:  # what has overflowed stays
            code = encode_exact(total + small, fmt, rounding=rounding)  # type: ignore[arg-type]
        sums.append(float(decode([code], fmt)[0]))
    return sums


@every(("name", "rounding"), list(itertools.product((*SHOWN, "fp64"), DETERMINISTIC)))
def test_sums_are_exact_additions_rounded_once(name: str, rounding: str) -> None:
    for start, addend in ((0, 0.01), (1, 0.001), (0.3, 7.7), (100, 2**-20)):
        run = add_up(start, addend, 150, FORMATS[name], rounding)  # type: ignore[arg-type]
        assert run.at.tolist() == list(range(151))
        np.testing.assert_array_equal(run.sums, additions(start, addend, 150, name, rounding))


@pytest.mark.parametrize(("name", "dtype"), [("bf16", ml_dtypes.bfloat16), ("fp16", np.float16), ("fp32", np.float32)])
def test_sums_are_those_of_the_libraries(name: str, dtype: type) -> None:
    run = add_up(0, 0.01, 2000, FORMATS[name])
    total, small = dtype(0), dtype(0.01)
    for _ in range(2000):
        total = dtype(total + small)
    assert run.final == float(total)


LIBRARY_TYPES = {
    "fp64": np.float64,
    "fp32": np.float32,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
    "fp8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
}


@every(
    ("name", "start", "addend"),
    [
        ("fp16", 60000, 1000),
        ("fp16", 65000, 15),
        ("fp16", 65520, 1),
        ("fp16", -60000, -1000),
        ("fp8_e4m3fn", 384, 32),
        ("fp8_e4m3fn", 400, 20),
        ("fp8_e4m3fn", 0, 1e6),
        ("fp8_e4m3fn", 465, 1),
        ("fp8_e4m3fnuz", 200, 16),
        ("fp8_e5m2", 40960, 8192),
        ("fp8_e5m2", 0, 1e6),
        ("bf16", 3e38, 1e36),
        ("fp32", 3.4e38, 1e35),
        ("fp64", 1.7e308, 1e306),
    ],
)
def test_sums_overflow_as_the_libraries_do(name: str, start: float, addend: float) -> None:
    run = add_up(start, addend, 100, FORMATS[name])
    dtype = LIBRARY_TYPES[name]
    with np.errstate(over="ignore", invalid="ignore"):
        total, small = dtype(start), dtype(addend)
        sums = [float(total)]
        for _ in range(100):
            total = dtype(total + small)
            sums.append(float(total))
    np.testing.assert_array_equal(run.sums, sums)
    lost = np.flatnonzero(~np.isfinite(sums))
    assert run.overflowed == (int(lost[0]) if lost.size else None)
    if lost.size:
        assert run.stalled is None
        assert not np.isfinite(run.final)


def test_stochastic_sums_overflow_beyond_the_next_value() -> None:
    fmt = FORMATS["fp8_e4m3fn"]
    lots = spread(448, 8, 1, fmt)  # 456 is a quarter of the way to 480, which would be next
    assert abs(lots.overflowed / 256 - 0.25) < 5 * (0.25 * 0.75 / 256) ** 0.5
    assert spread(448, 32, 1, fmt).overflowed == 256
    assert spread(-448, -32, 1, fmt).overflowed == 256
    assert spread(400, 1, 1, fmt).overflowed == 0
    assert spread(0, 100, 100, FORMATS["mxint8"]).overflowed == 0  # a format that saturates
    lots, run = spread(60000, 1000, 20, FORMATS["fp16"]), add_up(60000, 1000, 20, FORMATS["fp16"])
    assert (run.overflowed, lots.overflowed) == (6, 256)
    assert np.isfinite(lots.mean).tolist() == [True] * 6 + [False] * 15


def test_the_stalls_everybody_quotes() -> None:
    assert add_up(0, 0.01, 1000, FORMATS["bf16"]).final == 4
    counting = add_up(0, 1, 4000, FORMATS["fp16"])
    assert (counting.final, counting.stalled) == (2048, 2048)
    said = sum_texts(0, 1, 4000, FORMATS["fp16"])[1]
    assert (said.id, said.values["sum"]) == ("sums.stalls", "2048")
    assert add_up(0, 1, 300, FORMATS["bf16"]).stalled == 256


def test_stochastic_sums_are_right_on_average() -> None:
    lots = spread(1, 1e-3, 1000, FORMATS["bf16"])
    stored = float(decode(encode([1e-3], FORMATS["bf16"]), FORMATS["bf16"])[0])
    expected = 1 + lots.at * stored
    # The mean of 256 sums lies within five standard errors, everywhere along the way.
    assert np.all(np.abs(lots.mean - expected) <= 5 * lots.deviation / 16 + 1e-12)
    assert lots.deviation[0] == 0
    assert lots.deviation[-1] > 0
    with pytest.raises(ValueError, match="too wide"):
        spread(0, 1, 10, FORMATS["fp32"])


@given(a=st.floats(-1e300, 1e300), b=st.floats(-1e300, 1e300))
def test_sums_to_odd_keep_which_side_the_exact_sum_is_on(a: float, b: float) -> None:
    got = float(sum_to_odd(np.array([a]), b)[0])
    exact = Fraction(a) + Fraction(b)
    if Fraction(a + b) == exact:
        assert got == a + b
    else:
        assert np.float64(got).view(np.int64) & 1
        assert abs(Fraction(got) - exact) < Fraction(float(np.spacing(abs(got)))) * 2


@pytest.mark.parametrize("steps", [0, -1, limit("additions") + 1])
def test_steps_have_a_cap(steps: int) -> None:
    with pytest.raises(ValueError, match="additions"):
        add_up(0, 1, steps, FORMATS["bf16"])


def test_stochastic_has_a_function_of_its_own() -> None:
    with pytest.raises(ValueError, match="spread"):
        add_up(0, 1, 10, FORMATS["bf16"], "stochastic")


MIRRORED: dict[Rounding, Rounding] = {"up": "down", "down": "up"}


@given(
    st.floats(-100, 100), st.floats(-2, 2), st.integers(1, 60), st.sampled_from(SHOWN), st.sampled_from(DETERMINISTIC)
)
def test_a_sum_with_other_signs_is_the_mirror_image(
    start: float, addend: float, steps: int, name: str, rounding: Rounding
) -> None:
    fmt = FORMATS[name]
    there, back = (
        add_up(start, addend, steps, fmt, rounding),
        add_up(-start, -addend, steps, fmt, MIRRORED.get(rounding, rounding)),
    )
    np.testing.assert_array_equal(there.sums, -back.sums)
    assert (there.stalled, there.overflowed) == (back.stalled, back.overflowed)
    for (_, role, run), (_, same, mirror) in zip(
        *(summation_lines(sign * start, sign * addend, steps, fmt)[0] for sign in (1, -1)), strict=True
    ):
        assert role == same
        if addend:
            np.testing.assert_array_equal(run.sums, -mirror.sums)


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
    errors = [abs(next(row for row in rows if row.order == "truncated").error) for rows in (coarse, fine)]
    assert errors[0] > 0.02 > 4 * errors[1]


def test_sums_are_kept_where_they_can_be() -> None:
    for name in ("e8m0f_unsigned", "e4m3_nosub", "e9m30"):
        with pytest.raises(FormatError):
            orders("1/k", 10, parse_custom(name), 4)
    custom, known = (orders("1/k", 1000, fmt, 16)[1] for fmt in (parse_custom("e8m7"), FORMATS["bf16"]))
    assert custom == known


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
    ("text", "error"),
    [
        ("", "series"),
        ("x", "series"),
        ("1 +", "series"),
        ("k if k else 1", "series"),
        ("__import__('os')", "series"),
        ("k.real", "series"),
        ("()", "series"),
        ("True", "series"),
        ("1j", "series"),
        ("'a'", "series"),
        ("sum(k)", "series"),
        ("log(k - 1)", "term"),
        ("1/(k - 2)", "term"),
        ("9^9^9^9", "term"),
        ("-" * 150 + "k" * 60, "long"),
        ("(" * 199, "series"),
    ],
)
def test_terms_rejects_what_is_no_series(text: str, error: str) -> None:
    with pytest.raises(QuantityError) as caught:
        terms(text, 3)
    assert caught.value.args[0].id == f"sums.error.{error}"
