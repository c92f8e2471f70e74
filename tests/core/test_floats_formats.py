"""Everything about a format is derived from its definition; the reference table says what must come out."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from core.floats import FORMATS, FloatFormat

DATA = Path(__file__).parents[1] / "data"
with (DATA / "float_formats.csv").open(encoding="utf-8") as _file:
    ROWS = {row["format"]: row for row in csv.DictReader(_file) if row["format"] in FORMATS}


def expression(text: str) -> Fraction:
    """``255/128*2^127`` as a fraction."""
    factor, _, power = text.rpartition("*")
    return (Fraction(factor) if factor else Fraction(1)) * Fraction(2) ** int(power.removeprefix("2^"))


def test_the_formats_are_those_of_the_first_room() -> None:
    assert list(FORMATS) == ["fp64", "fp32", "tf32", "fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2"]
    assert set(ROWS) == set(FORMATS)
    assert all(name == fmt.name for name, fmt in FORMATS.items())


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_derived_properties_equal_the_reference(fmt: FloatFormat) -> None:
    row = ROWS[fmt.name]
    assert fmt.bits == int(row["total_bits"])
    assert (fmt.exponent_bits, fmt.fraction_bits) == (int(row["exp_bits"]), int(row["mantissa_bits"]))
    assert (fmt.bias, fmt.emax, fmt.emin) == (int(row["bias"]), int(row["emax"]), int(row["emin"]))
    assert fmt.max_finite == expression(row["max_finite_expr"])
    assert float(fmt.max_finite) == float(row["max_finite"])
    assert fmt.min_normal == expression(row["min_normal_expr"])
    assert fmt.min_subnormal == expression(row["min_subnormal_expr"])
    assert float(fmt.eps) == float(row["eps"])
    assert fmt.max_code == int(row["max_code_hex"], 16)
    assert (fmt.inf_code is not None) == bool(int(row["has_inf"]))
    if fmt.inf_code is not None:
        assert [fmt.inf_code, fmt.inf_code | fmt.sign_mask] == [int(c, 16) for c in row["inf_codes"].split()]
    assert fmt.nan_codes == int(row["nan_code_count"])
    assert fmt.finite_values == int(row["distinct_finite_values"])
    assert fmt.decimal_digits == int(row["decimal_digits_guaranteed"])
    assert row["overflow_default"] == ("±inf" if fmt.inf_code is not None else "NaN")


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_every_format_names_source_and_use(fmt: FloatFormat) -> None:
    assert fmt.sources
    assert all(source.url.startswith("https://") and source.locator for source in fmt.sources)
    assert fmt.used
    assert fmt.hex_digits == len(f"{fmt.sign_mask:x}") or fmt.bits % 4


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("fp64", np.float64),
        ("fp32", np.float32),
        ("fp16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("fp8_e4m3fn", ml_dtypes.float8_e4m3fn),
        ("fp8_e5m2", ml_dtypes.float8_e5m2),
    ],
)
def test_libraries_agree_on_the_extremes(name: str, dtype: type) -> None:
    fmt, info = FORMATS[name], ml_dtypes.finfo(dtype)
    assert float(fmt.max_finite) == float(info.max)
    assert float(fmt.min_normal) == float(info.smallest_normal)
    assert float(fmt.min_subnormal) == float(info.smallest_subnormal)
    assert float(fmt.eps) == float(info.eps)


def test_overflow_thresholds_of_the_lecture() -> None:
    assert FORMATS["fp16"].overflow_threshold == 65520
    assert FORMATS["fp8_e4m3fn"].overflow_threshold == 464
    assert FORMATS["fp8_e5m2"].overflow_threshold == 61440
