"""The codec against the reference tables, an oracle in exact fractions, and the libraries."""

from __future__ import annotations

import csv
import math
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.floats import FORMATS, OVERFLOWS, FloatFormat, Overflow, classify, decode, decode_exact, encode, encode_exact

FIXED = settings(deadline=None, derandomize=True)
DATA = Path(__file__).parents[1] / "data"
SMALL = {name: fmt for name, fmt in FORMATS.items() if fmt.bits <= 16}
DTYPES = {
    "fp32": np.float32,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
}
ALL_FORMATS = pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
SMALL_FORMATS = pytest.mark.parametrize("fmt", SMALL.values(), ids=SMALL)
any_format = st.sampled_from(list(FORMATS.values()))


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["format"] in FORMATS]


def all_codes(fmt: FloatFormat) -> np.ndarray:
    return np.arange(1 << fmt.bits, dtype=np.uint64)


def value_of(code: int, fmt: FloatFormat) -> Fraction | None:
    """The definition, read off the bits as text; None for infinity and NaN. Shares nothing with the codec."""
    bits = f"{code:0{1 + fmt.exponent_bits + fmt.fraction_bits}b}"
    sign, exponent, fraction = bits[0], bits[1 : 1 + fmt.exponent_bits], bits[1 + fmt.exponent_bits :]
    if "0" not in exponent and (fmt.specials == "ieee" or "0" not in fraction):
        return None
    lead = 0 if "1" not in exponent else 1
    power = max(int(exponent, 2), 1) - fmt.bias
    magnitude = Fraction(int(f"{lead}{fraction}", 2)) / 2**fmt.fraction_bits * Fraction(2) ** power
    return -magnitude if sign == "1" else magnitude


@lru_cache(maxsize=8)
def line(fmt: FloatFormat) -> tuple[list[Fraction], list[int]]:
    """All non-negative finite values of a small format in order, and their codes."""
    pairs = [(value_of(code, fmt), code) for code in range(1 << (fmt.bits - 1))]
    kept = [(value, code) for value, code in pairs if value is not None]
    assert kept == sorted(kept)
    return [value for value, _ in kept], [code for _, code in kept]


def nearest(value: Fraction, fmt: FloatFormat, overflow: Overflow) -> int | None:
    """The code of the nearest value of the format, ties to the even code, found by search; None for a NaN result."""
    values, codes = line(fmt)
    magnitude, sign = abs(value), fmt.sign_mask if value < 0 else 0
    # One more step past the end stands for everything beyond.
    step = values[-1] - values[-2]
    at = bisect_left(values, magnitude)
    if at == len(values):
        to_end, to_beyond = magnitude - values[-1], values[-1] + step - magnitude
        if overflow == "saturate" or to_end < to_beyond or (to_end == to_beyond and codes[-1] % 2 == 0):
            return sign | codes[-1]
        return sign | (codes[-1] + 1) if fmt.specials == "ieee" else None
    if at == 0 or values[at] == magnitude:
        return sign | codes[at]
    below, above = magnitude - values[at - 1], values[at] - magnitude
    if below == above:
        return sign | (codes[at] if codes[at] % 2 == 0 else codes[at - 1])
    return sign | codes[at if above < below else at - 1]


ENCODE = rows("float_encode.csv")
DECODE = rows("float_decode.csv")


def test_the_reference_covers_every_format() -> None:
    assert len(ENCODE) == 1154
    assert {row["format"] for row in ENCODE} == set(FORMATS)
    assert len(DECODE) == 512


@pytest.mark.parametrize(("column", "overflow"), [("expected_hex", "format"), ("expected_sat_hex", "saturate")])
@ALL_FORMATS
def test_encode_equals_the_reference(fmt: FloatFormat, column: str, overflow: Overflow) -> None:
    table = [row for row in ENCODE if row["format"] == fmt.name]
    values = np.array([int(row["input_f64_bits"], 16) for row in table], dtype=np.uint64).view(np.float64)
    codes = encode(values, fmt, overflow=overflow)
    for row, value, code in zip(table, values.tolist(), codes.tolist(), strict=True):
        expected = int(row[column], 16)
        if classify(expected, fmt) == "nan":
            assert classify(code, fmt) == "nan", row
        else:
            assert code == expected, row
        if overflow == "format":
            assert classify(code, fmt) == row["expected_class"], row
        if math.isfinite(value):
            exact = encode_exact(abs(Fraction(value)), fmt, overflow) | (fmt.sign_mask * (math.copysign(1, value) < 0))
            assert exact == code, row


@pytest.mark.parametrize("name", ["fp8_e4m3fn", "fp8_e5m2"])
def test_decode_equals_the_reference(name: str) -> None:
    fmt = FORMATS[name]
    for row in (row for row in DECODE if row["format"] == name):
        code = int(row["code_hex"], 16)
        value = float(decode(code, fmt))
        assert classify(code, fmt) == row["class"]
        if row["class"] == "nan":
            assert math.isnan(value), row
            continue
        assert value.hex() == float(row["value"]).hex(), row
        if row["class"] != "inf":
            assert value == float.fromhex(row["value_hexfloat"]), row
            assert decode_exact(code, fmt) == Fraction(value), row


@SMALL_FORMATS
def test_decode_then_encode_is_identity(fmt: FloatFormat) -> None:
    codes = all_codes(fmt)
    values = decode(codes, fmt)
    back = encode(values, fmt)
    nan = np.isnan(values)
    assert int(nan.sum()) == fmt.nan_codes
    np.testing.assert_array_equal(back[~nan], codes[~nan])
    assert set(back[nan].tolist()) == {fmt.nan_code}


@SMALL_FORMATS
def test_decode_follows_the_definition(fmt: FloatFormat) -> None:
    values = decode(all_codes(fmt), fmt).tolist()
    for code, value in enumerate(values):
        expected = value_of(code, fmt)
        assert decode_exact(code, fmt) == expected
        if expected is not None:
            assert Fraction(value) == expected
            assert math.copysign(1, value) == (-1 if code & fmt.sign_mask else 1)
        else:
            assert not math.isfinite(value)


@SMALL_FORMATS
def test_values_grow_with_their_codes(fmt: FloatFormat) -> None:
    positive = decode(np.arange(fmt.max_code + 1, dtype=np.uint64), fmt)
    assert np.all(np.diff(positive) > 0)
    assert positive[-1] == float(fmt.max_finite)


@ALL_FORMATS
@FIXED
@given(code=st.integers(0, (1 << 64) - 1))
def test_codes_of_every_width_survive_the_round_trip(fmt: FloatFormat, code: int) -> None:
    code >>= 64 - fmt.bits
    value = float(decode(np.uint64(code), fmt))
    back = int(encode(value, fmt))
    assert back == (fmt.nan_code if math.isnan(value) else code)
    if math.isfinite(value):
        assert Fraction(value) == decode_exact(code, fmt) == value_of(code, fmt)
        assert encode_exact(abs(Fraction(value)), fmt) == code & (fmt.sign_mask - 1)


def near_the_line(fmt: FloatFormat) -> st.SearchStrategy[Fraction]:
    """Values, ties and points just beside ties: where rounding goes wrong if it does."""
    values, _ = line(fmt)
    nudges = st.sampled_from([Fraction(0), Fraction(1, 10**40), Fraction(-1, 10**40), Fraction(1, 3), Fraction(-1, 7)])

    def place(at: int, half: bool, nudge: Fraction) -> Fraction:
        step = values[min(at + 1, len(values) - 1)] - values[min(at, len(values) - 2)]
        return values[at] + step * (Fraction(1, 2) * half) + nudge * step

    return st.builds(place, st.integers(0, len(values) - 1), st.booleans(), nudges)


@pytest.mark.parametrize("overflow", OVERFLOWS)
@SMALL_FORMATS
@FIXED
@given(data=st.data())
def test_exact_rounding_equals_a_search_of_the_line(fmt: FloatFormat, overflow: Overflow, data: st.DataObject) -> None:
    value = data.draw(near_the_line(fmt) | st.fractions(-(10**6), 10**6)) * data.draw(st.sampled_from([1, -1]))
    expected = nearest(value, fmt, overflow)
    code = encode_exact(value, fmt, overflow)
    if expected is None:
        assert classify(code, fmt) == "nan"
    elif value:
        assert code == expected


@pytest.mark.parametrize("overflow", OVERFLOWS)
@ALL_FORMATS
@FIXED
@given(values=st.lists(st.floats(), min_size=1, max_size=20))
def test_array_and_exact_rounding_are_the_same(fmt: FloatFormat, overflow: Overflow, values: list[float]) -> None:
    codes = encode(values, fmt, overflow).tolist()
    for value, code in zip(values, codes, strict=True):
        if math.isnan(value):
            assert code == fmt.nan_code
        elif math.isinf(value):
            finite = overflow == "saturate"
            assert classify(code, fmt) == ("normal" if finite else "inf" if fmt.inf_code is not None else "nan")
            assert bool(code & fmt.sign_mask) == (value < 0)
        else:
            sign = fmt.sign_mask if math.copysign(1, value) < 0 else 0
            assert code == encode_exact(abs(Fraction(value)), fmt, overflow) | sign


@FIXED
@given(fmt=any_format, first=st.floats(allow_nan=False), second=st.floats(allow_nan=False))
def test_rounding_is_monotone(fmt: FloatFormat, first: float, second: float) -> None:
    low, high = decode(encode(sorted([first, second]), fmt, "saturate"), fmt).tolist()
    assert low <= high


@FIXED
@given(fmt=any_format, value=st.fractions(-(10**300), 10**300))
def test_rounding_stays_within_half_a_step(fmt: FloatFormat, value: Fraction) -> None:
    stored = decode_exact(encode_exact(value, fmt), fmt)
    if stored is None:
        assert abs(value) >= fmt.overflow_threshold
        return
    exponent = max(math.frexp(float(abs(value)))[1] - 1, fmt.emin) if value else fmt.emin
    assert abs(stored - value) <= Fraction(2) ** (exponent + 1 - fmt.fraction_bits) / 2


@pytest.mark.parametrize("name", DTYPES)
@FIXED
@given(values=st.lists(st.floats(width=32), min_size=1, max_size=50))
def test_libraries_agree_where_float32_holds_the_input(name: str, values: list[float]) -> None:
    fmt, dtype = FORMATS[name], DTYPES[name]
    with np.errstate(over="ignore"):
        given_codes = np.array(values, dtype=np.float32).astype(dtype)
    theirs = given_codes.view(f"u{given_codes.itemsize}").astype(np.uint64)
    for value, ours, library in zip(values, encode(values, fmt).tolist(), theirs.tolist(), strict=True):
        if math.isnan(value) or classify(library, fmt) == "nan":
            assert classify(ours, fmt) == classify(library, fmt) == "nan"
        else:
            assert ours == library, value


@pytest.mark.parametrize("name", [n for n in DTYPES if FORMATS[n].bits <= 16])
def test_libraries_decode_the_same(name: str) -> None:
    fmt = FORMATS[name]
    with np.errstate(invalid="ignore"):  # signalling NaNs among the codes
        theirs = all_codes(fmt).astype(f"u{fmt.bits // 8}").view(DTYPES[name]).astype(np.float64)
    np.testing.assert_array_equal(decode(all_codes(fmt), fmt), theirs)


@pytest.mark.parametrize("name", ["tf32", "bf16"])
def test_tf32_and_bf16_are_the_top_of_fp32(name: str) -> None:
    fmt = FORMATS[name]
    codes = np.random.default_rng(19).integers(0, 1 << fmt.bits, size=20_000).astype(np.uint32)
    with np.errstate(invalid="ignore"):
        theirs = (codes << (32 - fmt.bits)).view(np.float32).astype(np.float64)
    np.testing.assert_array_equal(decode(codes, fmt), theirs)


@pytest.mark.parametrize(
    ("value", "name", "code"),
    [
        (0.1, "fp32", 0x3DCCCCCD),
        (0.15625, "fp32", 0x3E200000),
        (1e-8, "fp16", 0x0000),
        (65504.0, "fp16", 0x7BFF),
        (65519.99, "fp16", 0x7BFF),
        (65520.0, "fp16", 0x7C00),
        (448.0, "fp8_e4m3fn", 0x7E),
        (464.0, "fp8_e4m3fn", 0x7E),
        (465.0, "fp8_e4m3fn", 0x7F),
        (57344.0, "fp8_e5m2", 0x7B),
        (2.0**-133, "bf16", 0x0001),
        (-0.0, "bf16", 0x8000),
        (1 + 2**-8 + 2**-40, "bf16", 0x3F81),  # through float32 it would round twice, to 0x3f80
    ],
)
def test_anchors(value: float, name: str, code: int) -> None:
    assert int(encode(value, FORMATS[name])) == code


def test_a_decimal_is_rounded_once() -> None:
    # A hair above a bf16 tie: float64 (and float32) would drop the hair and then round the tie down to even.
    value = 1 + Fraction(1, 2**8) + Fraction(1, 10**30)
    assert encode_exact(value, FORMATS["bf16"]) == 0x3F81
    assert int(encode(float(value), FORMATS["bf16"])) == 0x3F80


def test_shapes_and_types() -> None:
    fmt = FORMATS["fp16"]
    assert encode(np.zeros((2, 3)), fmt).shape == (2, 3)
    assert encode(1.0, fmt).shape == ()
    assert encode([], fmt).shape == (0,)
    assert encode(np.float32(0.5), fmt) == 0x3800
    assert encode([1, 2], fmt).tolist() == [0x3C00, 0x4000]
    strided = np.arange(8.0).reshape(2, 4).T[::2]
    np.testing.assert_array_equal(decode(encode(strided, fmt), fmt), strided)
    assert decode(np.full((2, 2), 0x3FF0000000000000), FORMATS["fp64"]).shape == (2, 2)
    large = np.linspace(-1e5, 1e5, 40_000)
    np.testing.assert_array_equal(decode(encode(large, FORMATS["fp64"]), FORMATS["fp64"]), large)


@ALL_FORMATS
def test_codes_outside_the_format_are_refused(fmt: FloatFormat) -> None:
    for code in (-1, 1 << fmt.bits):
        with pytest.raises(ValueError, match=f"{fmt.bits} bits"):
            decode_exact(code, fmt)
    with pytest.raises(ValueError, match=f"{fmt.bits} bits"):
        decode(-1, fmt)
    if fmt.bits < 64:
        with pytest.raises(ValueError, match=f"{fmt.bits} bits"):
            decode([0, 1 << fmt.bits], fmt)


def test_wrong_types_are_refused() -> None:
    with pytest.raises(TypeError, match="encode_exact"):
        encode(np.longdouble(1), FORMATS["fp16"])
    with pytest.raises(TypeError, match="encode_exact"):
        encode(1j, FORMATS["fp16"])
    with pytest.raises(TypeError, match="integers"):
        decode(1.0, FORMATS["fp16"])
