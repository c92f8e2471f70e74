"""What is said about a code: exact digits, neighbours, bits, formula, rounding error, and the sentence on top."""

from __future__ import annotations

import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.parsing.latex import parse_latex

from core.floats.code_description import bits, describe, explain
from core.floats.codec import classify, decode, decode_exact, encode_exact, split
from core.floats.comparison import Stored, explain_error, store, store_everywhere
from core.floats.custom import custom_format
from core.floats.decimals import brief, exact_decimal, hexfloat, power_form, raised, rounded, shortest_decimal
from core.floats.formats import FORMATS, FloatFormat, FormatError
from core.floats.typed_numbers import parse
from core.views.common.palette import LIGHT
from core.views.floats.latex import value_latex
from core.views.floats.text import describe_outcome
from tests.core.floats_oracle import custom_formats
from tests.every import every

ALL_FORMATS = pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
any_code = st.sampled_from(list(FORMATS.values())).flatmap(
    lambda fmt: st.tuples(st.just(fmt), st.integers(0, (1 << fmt.bits) - 1))
)


def stored(text: str, name: str, overflow: str = "format") -> Stored:
    return store(parse(text, FORMATS[name]), FORMATS[name], overflow)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------ digits


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_exact_decimals_have_every_digit(value: float) -> None:
    text = exact_decimal(Fraction(value))
    assert Fraction(text) == Fraction(value)
    with localcontext() as context:
        context.prec = 800
        assert Decimal(text) == Decimal(value)


def test_exact_decimals_read_well() -> None:
    assert exact_decimal(Fraction(5, 32)) == "0.15625"
    assert exact_decimal(Fraction(-65504)) == "-65504"
    assert exact_decimal(Fraction(0)) == "0"
    assert exact_decimal(Fraction(1, 2**24)) == "5.9604644775390625e-8"
    assert exact_decimal(Fraction(10) ** 25) == "1e25"
    assert exact_decimal(Fraction(0.1)) == "0.1000000000000000055511151231257827021181583404541015625"
    with pytest.raises(ValueError, match="no finite decimal"):
        exact_decimal(Fraction(1, 3))


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_hexfloats_are_pythons(value: float) -> None:
    assert float.fromhex(hexfloat(Fraction(value))) == value
    if value and abs(value) >= 2.0**-1022:
        ours, theirs = hexfloat(Fraction(value)), value.hex()
        assert ours == re.sub(r"\.?0*p", "p", theirs)


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_power_forms_are_exact(value: float) -> None:
    typed = parse(power_form(Fraction(value)), FORMATS["fp64"]) if len(power_form(Fraction(value))) < 1200 else None
    assert typed is None or typed.value == Fraction(value)


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_shortest_decimals_are_as_short_as_pythons(value: float) -> None:
    code = int(np.float64(value).view(np.uint64))
    ours = shortest_decimal(code, FORMATS["fp64"])
    assert float(ours) == value
    assert digits(ours) == digits(repr(value))


@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_shortest_decimals_are_as_short_as_numpys(value: float) -> None:
    single = np.float32(value)
    ours = shortest_decimal(int(single.view(np.uint32)), FORMATS["fp32"])
    assert np.float32(ours) == single
    assert len(digits(ours)) <= len(digits(str(single)))


def digits(text: str) -> str:
    return text.lower().partition("e")[0].replace(".", "").lstrip("-0").rstrip("0")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (Fraction(1, 3), 4, "0.3333"),
        (Fraction(-1, 3), 4, "−0.3333"),
        (Fraction(2, 3) / 10**8, 3, "6.67 × 10⁻⁹"),
        (Fraction(999_999), 3, "1000000"),
        (Fraction(10) ** 21, 3, "1 × 10²¹"),
        (Fraction(0), 3, "0"),
        (Fraction(1, 10**5), 3, "1 × 10⁻⁵"),
        (Fraction(1, 10**4), 3, "0.0001"),
    ],
)
def test_rounding_for_reading(value: Fraction, digits: int, text: str) -> None:
    assert rounded(value, digits) == text


def test_brief_keeps_few_digits_exact() -> None:
    assert brief(Fraction("0.099609375"), 3) == "0.099609375"
    assert brief(Fraction(0.1), 3) == "0.1"
    assert raised("1.25 × 2^-3") == "1.25 × 2⁻³"


# ------------------------------------------------------------------------------------------ one code


@ALL_FORMATS
def test_one_is_one(fmt: FloatFormat) -> None:
    view = describe(encode_exact(Fraction(1), fmt), fmt)
    assert (view.value, view.kind, view.decimal, view.hexfloat) == (1, "normal", "1", "0x1p+0")
    assert view.ulp == fmt.eps
    assert view.above is not None
    assert decode_exact(view.above, fmt) == 1 + fmt.eps
    assert view.below is not None
    evenly_spaced = fmt.emin == 0 or fmt.twos_complement
    assert decode_exact(view.below, fmt) == 1 - fmt.eps / (1 if evenly_spaced else 2)
    if not fmt.twos_complement:
        assert (view.sign, view.exponent, view.fraction) == (0, fmt.bias, 0)
    assert view.binary.replace(" ", "") == f"{view.code:0{fmt.bits}b}"
    assert int(view.hex_code, 16) == view.code


@given(any_code)
def test_neighbours_leave_no_gap(drawn: tuple[FloatFormat, int]) -> None:
    fmt, code = drawn
    view = describe(code, fmt)
    if view.kind == "nan":
        assert view.below is view.above is None
        return
    here = float(decode(code, fmt))
    for other, direction in ((view.above, math.inf), (view.below, -math.inf)):
        if other is None:
            ends = {math.inf if fmt.infinity else float(fmt.max_finite), float(fmt.min_normal) if not fmt.zero else 0}
            assert abs(here) in ends or (fmt.twos_complement and here == -2)
            continue
        there = float(decode(other, fmt))
        assert (there > here) == (direction > 0)
        if fmt.name == "fp64":
            assert there == math.nextafter(here, direction)
        if fmt.name == "fp32":
            assert there == float(np.nextafter(np.float32(here), np.float32(direction)))
        back = describe(other, fmt)
        returned = back.below if direction > 0 else back.above
        assert returned is not None
        assert float(decode(returned, fmt)) == here


@given(any_code)
def test_ulp_is_the_step_outwards(drawn: tuple[FloatFormat, int]) -> None:
    fmt, code = drawn
    view = describe(code, fmt)
    magnitude = split(code, fmt)[0]
    if view.value is None or magnitude >= fmt.max_code:
        return
    outward = decode_exact(magnitude + 1, fmt)
    assert outward is not None
    assert view.ulp == outward - abs(view.value)
    if fmt.name == "fp64":
        assert float(view.ulp) == math.ulp(float(view.value))


@given(any_code)
def test_the_step_towards_zero_is_named_where_it_is_no_ulp(drawn: tuple[FloatFormat, int]) -> None:
    fmt, code = drawn
    view = describe(code, fmt)
    if not view.value:
        assert view.inward is None
        return
    beside = [decode_exact(other, fmt) for other in (view.below, view.above) if other is not None]
    inner = [other for other in beside if other is not None and abs(other) < abs(view.value)]
    step = view.inward or view.ulp
    assert all(abs(view.value - other) == step for other in inner)
    if view.inward is not None:
        assert view.inward != view.ulp
        assert abs(view.value).numerator == 1 or abs(view.value).denominator == 1
        assert view.fraction == 0


@given(any_code)
def test_every_bit_is_described(drawn: tuple[FloatFormat, int]) -> None:
    fmt, code = drawn
    strip = bits(code, fmt)
    assert "".join(str(bit.value) for bit in strip) == f"{code:0{fmt.bits}b}"
    fields = [bit.field for bit in strip]
    assert fields == ["sign"] * fmt.signed + ["exponent"] * fmt.exponent_bits + ["fraction"] * fmt.fraction_bits
    exponent = [bit for bit in strip if bit.field == "exponent"]
    assert [bit.index for bit in exponent] == list(reversed(range(fmt.exponent_bits)))
    assert [bit.weight for bit in exponent] == [f"2^{n}" for n in reversed(range(fmt.exponent_bits))]
    fraction = [bit.weight for bit in strip if bit.field == "fraction"]
    places = range(fmt.fraction_bits)
    assert fraction == [f"2^{-n}" if fmt.twos_complement else f"2^{-n - 1}" for n in places]
    if fmt.twos_complement:
        assert strip[0].weight == "-2^1"
    for place, bit in enumerate(reversed(strip)):
        other = code ^ 1 << place
        kind = classify(other, fmt)
        assert (bit.flipped == "NaN") == (kind == "nan")
        if kind in {"normal", "subnormal"}:
            spelled = (
                bit.flipped.replace("−", "-")
                .replace(" × 10", "e")
                .translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
            )
            assert Fraction(spelled) == pytest.approx(decode_exact(other, fmt), rel=1e-5)


# ------------------------------------------------------------------------------------------ the formula


@settings(max_examples=40)  # sympy's parser takes its time
@given(any_code)
def test_the_filled_in_formula_is_true(drawn: tuple[FloatFormat, int]) -> None:
    fmt, code = drawn
    view = describe(code, fmt)
    latex = re.sub(r"\\textcolor\{#[0-9a-f]{6}\}\{([^{}]*)\}", r"\1", value_latex(view, LIGHT)[-1])
    if view.value is None:
        assert ("infty" in latex) == (view.kind == "inf")
        assert ("not a number" in latex) == (view.kind == "nan")
        return
    sides = re.split(r" = | \\approx ", latex.removeprefix(r"\phantom{x} = "))
    assert len(sides) == (3 if view.value and not fmt.twos_complement else 2)
    for side in sides:
        value = Fraction(str(parse_latex(side).evalf(40)))
        assert float(value) == pytest.approx(float(view.value), rel=10.0 ** -(fmt.decimal_digits + 2))


def test_the_fields_in_the_formula_are_whole_numbers() -> None:
    for text, name, fraction in (("0.1", "fp32", "5033165"), ("0.1", "fp64", "2702159776422298")):
        latex = " ".join(value_latex(stored(text, name).view, LIGHT))
        assert f"{{{fraction}}}" in latex
        assert "e+" not in latex


@pytest.mark.parametrize("code", [0x0000, 0x0001, 0x03FF, 0x3C00, 0xFBFF])
def test_explanations_give_the_value(code: int) -> None:
    fmt = FORMATS["fp16"]
    value, ulp = explain(describe(code, fmt))
    assert value.value == float(decode(code, fmt))
    assert ulp.value == float(describe(code, fmt).ulp or 0)


def test_what_is_no_number_is_not_explained() -> None:
    assert explain(describe(0x7C00, FORMATS["fp16"])) == ()
    assert explain(describe(0, custom_format(4, 3, subnormals=False))) == ()


def test_explanations_of_scales_and_integers() -> None:
    assert [e.value for e in explain(describe(0x80, FORMATS["e8m0fnu"]))] == [2, 2]
    assert [e.value for e in explain(describe(0x80, FORMATS["mxint8"]))] == [-2]
    assert [e.value for e in explain(describe(0xC1, FORMATS["mxint8"]))] == [-63 / 64]


@given(custom_formats(10).flatmap(lambda fmt: st.tuples(st.just(fmt), st.integers(0, (1 << fmt.bits) - 1))))
def test_custom_codes_are_described(drawn: tuple[FloatFormat, int]) -> None:
    fmt, code = drawn
    view = describe(code, fmt)
    assert view.binary.replace(" ", "") == f"{code:0{fmt.bits}b}"
    assert len(bits(code, fmt)) == fmt.bits
    assert value_latex(view, LIGHT)
    explained = explain(view)
    if explained:
        assert Fraction(explained[0].value) == view.value
        assert Fraction(explained[1].value) == view.ulp


def test_tf32_is_also_a_32_bit_word() -> None:
    for text in ("1", "-0.1", "3e38", "nan"):
        view = stored(text, "tf32").view
        word = np.array([int(view.word, 16)], dtype=np.uint32).view(np.float32)[0]
        assert len(view.word) == 10
        assert np.isnan(word) if text == "nan" else Fraction(float(word)) == view.value
    assert all(describe(1, fmt).word == "" for name, fmt in FORMATS.items() if name != "tf32")


# ------------------------------------------------------------------------------------------ one number everywhere


def test_one_hundred_millionth_everywhere() -> None:
    found = {s.fmt.name: s for s in store_everywhere(parse("1e-8", FORMATS["fp16"]))}
    assert list(found) == list(FORMATS)
    kept = {name for name, s in found.items() if s.view.value != 0}
    smallest = {name: fmt.min_subnormal if fmt.zero else Fraction(0) for name, fmt in FORMATS.items()}
    assert kept == {name for name, value in smallest.items() if value / 2 < Fraction(1, 10**8)}
    assert "bf16" in kept
    assert "fp16" not in kept
    assert found["bf16"].text == "≈ 1.00117 × 10⁻⁸"
    assert found["fp16"].relative == -1
    assert found["fp16"].ulps == Fraction(-1, 10**8) * 2**24


@every("name", FORMATS)
def test_errors_are_exact(name: str) -> None:
    s = stored("0.1", name)
    assert s.view.value is not None
    assert s.error == s.view.value - Fraction(1, 10)
    assert s.relative == s.error * 10
    assert s.ulps is not None
    assert abs(s.ulps) <= Fraction(1, 2)
    assert not s.exact


def test_nan_has_no_place_where_no_code_stands_for_it() -> None:
    nan = parse("nan", FORMATS["fp16"])
    found = {s.fmt.name for s in store_everywhere(nan)}
    assert found == {name for name, fmt in FORMATS.items() if fmt.has_nan}
    with pytest.raises(FormatError, match="NaN is undefined in fp4 E2M1"):
        store(nan, FORMATS["fp4_e2m1fn"])


def test_storing_with_another_rounding() -> None:
    typed, fmt = parse("0.1", FORMATS["bf16"]), FORMATS["bf16"]
    down, up = (store(typed, fmt, rounding=mode).view.value for mode in ("down", "up"))
    assert down is not None
    assert up is not None
    assert down < Fraction(1, 10) < up
    assert {s.fmt.name: s.view.kind for s in store_everywhere(parse("1e39", fmt), overflow="infinity")}["bf16"] == "inf"


def test_exactness() -> None:
    assert stored("0.15625", "fp8_e4m3fn").exact
    assert stored("nan", "fp8_e4m3fn").exact
    assert stored("inf", "fp16").exact
    assert not stored("inf", "fp8_e4m3fn").exact
    assert stored("65520", "fp16").overflowed
    assert stored("65520", "fp16", "saturate").fate == "clipped"
    assert stored("464", "fp6_e3m2fn").overflowed
    assert stored("464", "mxint8").fate == "clipped"
    assert not stored("448", "fp8_e4m3fn", "saturate").overflowed
    assert stored("0", "e8m0fnu").fate == "no zero"
    assert not stored("-1", "e8m0fnu").overflowed
    assert stored("0", "fp16").exact
    assert stored("0", "fp16").relative is None


@given(any_code)
def test_stored_text_is_exact_or_says_about(drawn: tuple[FloatFormat, int]) -> None:
    fmt, code = drawn
    s = store(parse(f"0x{code:x}", fmt), fmt)
    if s.view.value and not s.text.startswith("≈"):
        plain = s.text.replace("−", "-").replace(" × 10", "e").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        assert Fraction(plain) == s.view.value


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32", "fp64"])
def test_error_explanations_equal_the_exact_errors(name: str) -> None:
    s = stored("0.1", name)
    relative, ulps = explain_error(s)
    assert s.relative is not None
    assert s.ulps is not None
    assert relative.value == pytest.approx(float(s.relative))
    assert ulps.value == pytest.approx(float(s.ulps))
    assert explain_error(stored("0.5", name)) == ()
    assert explain_error(stored("2^-1075", "fp64")) == ()  # the error is below what a float64 can hold
    assert explain_error(stored("1e400", name, "saturate")) == ()  # the number is beyond it


# ------------------------------------------------------------------------------------------ the sentence


@every(
    ("text", "name", "answer", "detail"),
    [
        ("0.1", "bf16", "0.1 becomes **0.10009765625** in bf16, **0.0977 %** too large.", "off by 0.2 ULP"),
        ("0.1", "fp64", "too large by **5.55 × 10⁻¹⁷** of its size", "0.4 ULP"),
        ("0.15625", "fp32", "**0.15625** is stored exactly in fp32.", "1.25 × 2⁻³"),
        ("65504", "fp16", "its **largest** finite value", "1.9990234375 × 2¹⁵"),
        ("2^-14", "fp16", "**2⁻¹⁴** is stored exactly in fp16: its **smallest normal** value", "2⁻¹⁴"),
        ("2^-133", "bf16", "its **smallest subnormal**", "subnormal"),
        ("464", "fp8_e4m3fn", "464 becomes **448** in fp8 E4M3, **3.45 %** too small.", "halfway between 448 and 480"),
        ("0.1 + 0.2", "fp64", "becomes **≈ 0.29999", "gives **0.30000000000000004**"),
        ("1e-6", "fp16", "in fp16, **1.33 %** too large", "keeps 5 of 11 significant bits"),
        ("-1e-9", "fp16", "becomes **−0** in fp16", "−1.07 · 2⁻³⁰; its grid ends at 2⁻²⁴"),
    ],
)
def test_the_sentence(text: str, name: str, answer: str, detail: str) -> None:
    preset = describe_outcome(stored(text, name))
    assert answer in preset.answer
    assert detail in preset.detail


@given(any_code)
def test_every_code_has_a_sentence(drawn: tuple[FloatFormat, int]) -> None:
    fmt, code = drawn
    typed = parse(f"0x{code:x}", fmt)
    for other in FORMATS.values():
        if typed.nan and not other.has_nan:
            continue
        for overflow in ("format", "saturate"):
            preset = describe_outcome(store(typed, other, overflow))
            assert preset.answer.endswith(".")
            assert preset.answer.count("**") % 2 == 0
