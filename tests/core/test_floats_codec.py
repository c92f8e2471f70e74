"""The codec against the reference tables, the definition, and itself."""

from __future__ import annotations

import csv
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.codec import classify, decode, decode_exact, encode, encode_exact, neighbor
from core.floats.formats import FORMATS, FloatFormat, FormatError, Overflow
from core.floats.rounding import ROUNDINGS
from tests.core.floats_oracle import SMALL, all_codes, custom_formats, line, value_of

DATA = Path(__file__).parents[1] / "data"
ALL_FORMATS = pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
SMALL_FORMATS = pytest.mark.parametrize("fmt", SMALL.values(), ids=SMALL)
TABLE_LENGTH = 1 << 20
"""Arrays of this length are encoded by table where the format allows it."""


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


ENCODE = rows("float_encode.csv")
DECODE = rows("float_decode.csv")


def test_the_reference_covers_every_format() -> None:
    assert {row["format"] for row in ENCODE} == set(FORMATS)
    codes = Counter(row["format"] for row in DECODE)
    assert codes == {name: 1 << fmt.bits for name, fmt in FORMATS.items() if fmt.bits <= 8}


@pytest.mark.parametrize("long", [False, True], ids=["directly", "by table"])
@pytest.mark.parametrize("column", ["expected_hex", "expected_sat_hex", "expected_via_f32_hex"])
@ALL_FORMATS
def test_encode_equals_the_reference(fmt: FloatFormat, column: str, long: bool) -> None:
    overflow: Overflow = "saturate" if column == "expected_sat_hex" else "format"
    table = [row for row in ENCODE if row["format"] == fmt.name and row["expected_class"] != "undefined"]
    table = [row for row in table if row[column]]
    values = np.array([int(row["input_f64_bits"], 16) for row in table], dtype=np.uint64).view(np.float64)
    if column == "expected_via_f32_hex":
        with np.errstate(over="ignore"):
            values = values.astype(np.float32).astype(np.float64)
    given_values = np.resize(values, TABLE_LENGTH) if long and values.size else values
    codes = encode(given_values, fmt, overflow=overflow)[: values.size]
    for row, value, code in zip(table, values.tolist(), codes.tolist(), strict=True):
        expected = int(row[column], 16)
        if classify(expected, fmt) == "nan":
            assert classify(code, fmt) == "nan", row
        else:
            assert code == expected, row
        if column == "expected_hex":
            assert classify(code, fmt) == row["expected_class"], row
        if math.isfinite(value) and value:
            assert encode_exact(Fraction(value), fmt, overflow) == code, row


def test_the_reference_says_where_nan_is_undefined() -> None:
    undefined = {row["format"] for row in ENCODE if row["expected_class"] == "undefined"}
    assert undefined == {name for name, fmt in FORMATS.items() if not fmt.has_nan}
    for name in undefined:
        fmt = FORMATS[name]
        for length in (1, TABLE_LENGTH):
            values = np.zeros(length)
            values[-1] = math.nan
            with pytest.raises(FormatError):
                encode(values, fmt)
        with pytest.raises(FormatError):
            _ = fmt.nan_code


def test_decode_equals_the_reference() -> None:
    for row in DECODE:
        fmt, code = FORMATS[row["format"]], int(row["code_hex"], 16)
        value = float(decode(code, fmt))
        assert f"{code:0{fmt.bits}b}" == row["bits"]
        assert classify(code, fmt) == row["class"], row
        if row["class"] == "nan":
            assert math.isnan(value), row
            continue
        assert value.hex() == float(row["value"]).hex(), row
        if row["class"] != "inf":
            assert value == float.fromhex(row["value_hexfloat"]), row
            assert decode_exact(code, fmt) == Fraction(value), row


def check_round_trip(fmt: FloatFormat, codes: np.ndarray) -> None:
    values = decode(codes, fmt)
    nan = np.isnan(values)
    assert int(nan.sum()) == fmt.nan_codes
    unused = codes == fmt.sign_mask if fmt.twos_complement else np.zeros(codes.shape, dtype=bool)
    kept = ~nan & ~unused
    np.testing.assert_array_equal(encode(values[kept], fmt), codes[kept])
    if nan.any():
        assert set(encode(values[nan], fmt).tolist()) == {fmt.nan_code}


@SMALL_FORMATS
def test_decode_then_encode_is_identity(fmt: FloatFormat) -> None:
    check_round_trip(fmt, all_codes(fmt))


@given(fmt=custom_formats(16))
def test_decode_then_encode_is_identity_in_custom_formats(fmt: FloatFormat) -> None:
    check_round_trip(fmt, all_codes(fmt))


def test_the_unused_code_of_mxint8_is_clamped() -> None:
    fmt = FORMATS["mxint8"]
    assert decode(0x80, fmt) == -2
    assert encode(-2.0, fmt) == encode_exact(Fraction(-2), fmt) == 0x81


@given(fmt=st.sampled_from(list(SMALL.values())) | custom_formats())
def test_decode_follows_the_definition(fmt: FloatFormat) -> None:
    codes = all_codes(fmt)[:: max(1, (1 << fmt.bits) >> 10)]
    for code, value in zip(codes.tolist(), decode(codes, fmt).tolist(), strict=True):
        expected = value_of(code, fmt)
        assert decode_exact(code, fmt) == expected
        if expected is not None:
            assert Fraction(value) == expected
            if not fmt.twos_complement:
                assert math.copysign(1, value) == (-1 if code & fmt.sign_mask else 1)
        else:
            assert not math.isfinite(value)


@given(fmt=st.sampled_from(list(SMALL.values())) | custom_formats(8))
def test_walking_up_visits_every_value_once(fmt: FloatFormat) -> None:
    if fmt.bits > 8:
        return
    codes = all_codes(fmt).tolist()
    values = {value for code in codes if (value := decode_exact(code, fmt)) is not None}
    infinities = [code for code in codes if classify(code, fmt) == "inf"]
    lowest = min(values)
    here = next(c for c in codes if decode_exact(c, fmt) == lowest and (c or not fmt.signed or lowest == 0))
    if fmt.signed and infinities:
        assert neighbor(here, fmt, up=False) == fmt.sign_mask | (fmt.inf_code or 0)
    else:
        assert neighbor(here, fmt, up=False) is None
    seen = [lowest]
    while (above := neighbor(here, fmt, up=True)) is not None and classify(above, fmt) != "inf":
        assert decode_exact(neighbor(above, fmt, up=False) or 0, fmt) == seen[-1]
        here = above
        seen.append(decode_exact(here, fmt) or Fraction(0))
    assert seen == sorted(values)
    assert (above is not None) == fmt.infinity


@ALL_FORMATS
@given(code=st.integers(0, (1 << 64) - 1))
def test_codes_of_every_width_survive_the_round_trip(fmt: FloatFormat, code: int) -> None:
    code >>= 64 - fmt.bits
    value = float(decode(np.uint64(code), fmt))
    if fmt.twos_complement and code == fmt.sign_mask:
        return
    back = int(encode(value, fmt))
    assert back == (fmt.nan_code if math.isnan(value) else code)
    if math.isfinite(value):
        assert Fraction(value) == decode_exact(code, fmt) == value_of(code, fmt)
        if value:
            assert encode_exact(Fraction(value), fmt) == code


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
        for codes in ([0, 1 << fmt.bits], np.array([0, (1 << 64) - 1], dtype=np.uint64)):
            with pytest.raises(ValueError, match=f"{fmt.bits} bits"):
                decode(codes, fmt)


def test_wrong_types_are_refused() -> None:
    with pytest.raises(TypeError, match="encode_exact"):
        encode(np.longdouble(1), FORMATS["fp16"])
    with pytest.raises(TypeError, match="encode_exact"):
        encode(1j, FORMATS["fp16"])
    with pytest.raises(TypeError, match="integers"):
        decode(1.0, FORMATS["fp16"])
    with pytest.raises(TypeError, match="no room for the 16 bits of a fp16"):
        encode(1.0, FORMATS["fp16"], dtype=np.uint8)
    with pytest.raises(TypeError, match="no room"):
        encode(1.0, FORMATS["fp16"], dtype=np.int32)  # type: ignore[arg-type]


@pytest.mark.sweep(10)
@pytest.mark.parametrize("rounding", [r for r in ROUNDINGS if r != "stochastic"])
@pytest.mark.parametrize("name", ["bf16", "fp8_e4m3fn", "fp8_e3m4_ieee", "fp4_e2m1fn", "e8m0fnu", "mxint8"])
def test_the_table_gives_what_the_arithmetic_gives(name: str, rounding: str) -> None:
    fmt = FORMATS[name]
    generator = np.random.default_rng(8)
    raw = generator.integers(0, 1 << 64, size=TABLE_LENGTH // 4, dtype=np.uint64)
    # Half of the patterns end in zeros: exact values and ties, where the sticky bit decides.
    raw[::2] &= np.uint64(-(1 << 40) & (1 << 64) - 1)
    values = raw.view(np.float64)
    values = values[np.isfinite(values)]
    line_values = np.array([float(v) for v in line(fmt)[0]]) if fmt.bits <= 8 else decode(all_codes(fmt), fmt)[:0x7F80]
    for start, length in ((0, values.size), (0, line_values.size)):
        part = (values if length == values.size else line_values)[start : start + length]
        part = np.concatenate([part, np.nextafter(part, np.inf), -part, [np.inf, -np.inf]])
        pieces = np.concatenate(
            [encode(p, fmt, rounding=rounding) for p in np.array_split(part, part.size // 4000 + 1)]
        )
        whole = encode(np.resize(part, max(part.size, TABLE_LENGTH)), fmt, rounding=rounding)[: part.size]
        np.testing.assert_array_equal(whole, pieces)
