"""Everything about a format, of the catalog or custom, is derived from its definition."""

from __future__ import annotations

import csv
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given

from core.floats.codec import classify, decode_exact, encode
from core.floats.custom import custom_format, parse_custom
from core.floats.formats import FORMATS, FloatFormat, FormatError
from tests.core.floats_oracle import custom_formats, line
from tests.every import every

DATA = Path(__file__).parents[1] / "data"
with (DATA / "float_formats.csv").open(encoding="utf-8") as _file:
    ROWS = {row["format"]: row for row in csv.DictReader(_file)}


def expression(text: str) -> Fraction:
    """``255/128*2^127`` as a fraction."""
    if "^" not in text:
        return Fraction(text)
    factor, _, power = text.rpartition("*")
    return (Fraction(factor) if factor else Fraction(1)) * Fraction(2) ** int(power.removeprefix("2^"))


def test_every_reference_format_is_there() -> None:
    assert set(ROWS) == set(FORMATS)
    assert all(name == fmt.name for name, fmt in FORMATS.items())
    assert len({fmt.title for fmt in FORMATS.values()}) == len(FORMATS)
    assert all(row["spec"] for row in ROWS.values())


@every("fmt", FORMATS.values(), ids=FORMATS)
def test_derived_properties_equal_the_reference(fmt: FloatFormat) -> None:
    row = ROWS[fmt.name]
    assert fmt.bits == int(row["total_bits"])
    assert fmt.signed == bool(int(row["sign_bits"]))
    assert (fmt.exponent_bits, fmt.fraction_bits) == (int(row["exp_bits"]), int(row["mantissa_bits"]))
    assert fmt.emax == int(row["emax"])
    assert fmt.max_finite == expression(row["max_finite_expr"])
    assert float(fmt.max_finite) == float(row["max_finite"])
    assert fmt.max_code == int(row["max_code_hex"], 16)
    assert float(fmt.eps) == float(row["eps"])
    if fmt.twos_complement:
        assert row["bias"] == ""  # fixed point
        assert fmt.min_subnormal == fmt.min_normal == Fraction(1, 64)
    else:
        assert (fmt.bias, fmt.emin) == (int(row["bias"]), int(row["emin"]))
        assert fmt.min_normal == expression(row["min_normal_expr"])
        assert fmt.decimal_digits == int(row["decimal_digits_guaranteed"])
    assert fmt.has_subnormals == bool(row["min_subnormal_expr"])
    if fmt.has_subnormals:
        assert fmt.min_subnormal == expression(row["min_subnormal_expr"])
    assert (fmt.inf_code is not None) == bool(int(row["has_inf"])) == fmt.infinity
    if fmt.inf_code is not None:
        assert [fmt.inf_code, fmt.inf_code | fmt.sign_mask] == [int(c, 16) for c in row["inf_codes"].split()]
    assert fmt.nan_codes == int(row["nan_code_count"])
    assert fmt.zero == bool(int(row["has_zero"]))
    assert fmt.has_negative_zero == (row["signed_zero"] == "yes")
    assert fmt.finite_values == int(row["distinct_finite_values"])
    own = {"±inf": "infinity", "NaN": "nan", "saturate": "saturate"}
    assert fmt.own_overflow == own[row["overflow_default"]]


STANDARD = {
    "fp64": "e11m52",
    "fp32": "e8m23",
    "tf32": "e8m10",
    "fp16": "e5m10",
    "bf16": "e8m7",
    "fp8_e5m2": "e5m2",
    "fp8_e4m3fn": "e4m3fn",
    "fp8_e4m3fnuz": "e4m3fnuz",
    "fp8_e5m2fnuz": "e5m2fnuz",
    "fp8_e4m3b11fnuz": "e4m3b11fnuz",
    "fp8_e4m3_ieee": "e4m3",
    "fp8_e3m4_ieee": "e3m4",
    "p3109_k8p3se": "e5m2fnuz_inf",
    "p3109_k8p4se": "e4m3fnuz_inf",
    "p3109_k4p2sf": "e2m1fnuz",
    "fp6_e3m2fn": "e3m2f",
    "fp6_e2m3fn": "e2m3f",
    "fp4_e2m1fn": "e2m1f",
}


@every(("name", "text"), STANDARD.items())
def test_a_custom_format_can_be_any_standard_one(name: str, text: str) -> None:
    fmt, ours = parse_custom(text), FORMATS[name]
    assert replace(fmt, name=name, title=ours.title, used=ours.used, sources=ours.sources, lost=ours.lost) == ours
    assert fmt.name == text


@given(custom_formats(20))
def test_names_are_read_back(fmt: object) -> None:
    assert parse_custom(fmt.name) == fmt  # type: ignore[attr-defined]
    assert parse_custom(f" {fmt.name.upper()} ") == fmt  # type: ignore[attr-defined]


@given(custom_formats(10))
def test_derived_properties_equal_a_count(fmt: object) -> None:
    from core.floats.formats import FloatFormat

    assert isinstance(fmt, FloatFormat)
    codes = range(1 << fmt.bits)
    kinds = [classify(code, fmt) for code in codes]
    values = sorted({v for code in codes if (v := decode_exact(code, fmt)) is not None})
    positive = [v for v in values if v > 0]
    assert fmt.nan_codes == kinds.count("nan")
    assert fmt.has_nan == ("nan" in kinds)
    assert kinds.count("inf") == fmt.infinity * (1 + fmt.signed)
    assert fmt.finite_values == len(values)
    assert (fmt.max_finite, fmt.min_subnormal) == (positive[-1], positive[0])
    assert fmt.has_subnormals == ("subnormal" in kinds) or fmt.max_code < 1 << fmt.fraction_bits
    assert fmt.has_negative_zero == (kinds.count("zero") == 2)
    assert Fraction(2) ** fmt.emax <= fmt.max_finite < Fraction(2) ** (fmt.emax + 1)
    normal = [v for code, v in zip(line(fmt)[1], line(fmt)[0], strict=True) if kinds[code] == "normal"]
    if normal:
        assert fmt.min_normal == normal[0]
    if fmt.has_nan:
        assert kinds[fmt.nan_code] == "nan"


@every(
    ("text", "error"),
    [
        ("e0m3", "exponent"),
        ("e12m3", "exponent"),
        ("e5m53", "fraction"),
        ("e1m0fn", "only_zero"),
        ("e1m0", "no_fraction"),
        ("e1m0fnuz_unsigned", "unsigned"),
        ("e3m2f_nonegzero", "no_negative_zero"),
        ("e11m52fn", "bias"),
        ("e11m52b1022", "bias"),
        ("e11m52b1024", "bias"),
        ("e5m10b2000", "bias"),
        ("e4m3_inf_noinf", "flag"),
        ("e4m3_nosub_nosub", "flag"),
        ("e4m3_fast", "flag"),
        ("", "unreadable"),
        ("fp8", "unreadable"),
        ("e" * 10**6, "unreadable"),
        ("e4m99999999999999", "unreadable"),
    ],
)
def test_parse_custom_rejects_what_cannot_exist(text: str, error: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_custom(text)
    assert caught.value.args[0].id == f"floats.custom.{error}"
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["e11m52", "e11m51fnuz", "e5m10b1065", "e5m10b-992"])
def test_formats_at_the_edge_of_float64_exist(text: str) -> None:
    fmt = parse_custom(text)
    assert Fraction(float(fmt.max_finite)) == fmt.max_finite
    assert Fraction(float(fmt.min_subnormal)) == fmt.min_subnormal


def test_custom_format_rejects_two_meanings_of_one_code() -> None:
    with pytest.raises(FormatError):
        custom_format(4, 3, nan="negative_zero", negative_zero=True)


def test_without_subnormals_there_is_a_gap_around_zero() -> None:
    fmt = custom_format(4, 3, subnormals=False)
    least = Fraction(9, 8) / 2**7
    assert (fmt.min_subnormal, fmt.min_normal) == (least, least)
    half = float(least / 2)
    assert encode([half, half * 1.01, -half * 1.01], fmt).tolist() == [0, 1, 0x81]
    assert encode([half], fmt, rounding="nearest_away") == 1
