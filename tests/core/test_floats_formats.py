"""Everything about a format is derived from its definition; the reference table says what must come out."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

from core.floats.formats import FORMATS, FloatFormat
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
