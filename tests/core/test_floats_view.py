"""What is said about a code: exact digits, neighbors, bits, formula, rounding error, and the sentence on top."""

from __future__ import annotations

import itertools
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
from core.floats.codec import classify, decode, decode_exact, split
from core.floats.comparison import Stored, store, store_everywhere
from core.floats.custom import parse_custom
from core.floats.decimals import exact_decimal, power_form, shortest_decimal
from core.floats.formats import FORMATS, FloatFormat, FormatError
from core.floats.typed_numbers import parse
from core.limits import limit
from core.views.common.palette import LIGHT
from core.views.floats.latex import value_latex
from core.views.floats.text import answer_text, detail_texts
from tests.core.floats_oracle import custom_formats, rounded_value
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


# ------------------------------------------------------------------------------------------ one code


@given(any_code)
def test_neighbors_leave_no_gap(drawn: tuple[FloatFormat, int]) -> None:
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
    value = decode_exact(code, fmt)
    for place, bit in enumerate(reversed(strip)):
        other = code ^ 1 << place
        changed = decode_exact(other, fmt)
        if bit.field == "fraction" and bit.power is not None and changed is not None and value is not None:
            assert abs(changed - value) == Fraction(2) ** bit.power
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
        assert (r"\mathrm{NaN}" in latex) == (view.kind == "nan")
        return
    sides = re.split(r" = | \\approx ", latex.removeprefix(r"\phantom{x} = "))
    assert len(sides) == (3 if view.value and not fmt.twos_complement else 2)
    for side in sides:
        value = Fraction(str(parse_latex(side).evalf(40)))
        assert float(value) == pytest.approx(float(view.value), rel=10.0 ** -(fmt.decimal_digits + 2))


@given(custom_formats(10).flatmap(lambda fmt: st.tuples(st.just(fmt), st.integers(0, (1 << fmt.bits) - 1))))
def test_custom_codes_are_described(drawn: tuple[FloatFormat, int]) -> None:
    fmt, code = drawn
    view = describe(code, fmt)
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
    with pytest.raises(FormatError) as caught:
        store(nan, FORMATS["fp4_e2m1fn"])
    assert caught.value.args[0].id == "floats.error.no_nan"


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


# ------------------------------------------------------------------------------------------ the sentence


CUSTOM = (
    "e4m3_noinf",
    "e4m3_nosub",
    "e3m0f_unsigned",
    "e3m0_noinf",
    "e1m2",
    "e1m3_unsigned",
    "e4m3fn_inf",
    "e4m3fn_inf_unsigned",
    "e4m3_nonegzero",
    "e5m2fn_nonegzero",
    "e4m2f_unsigned_nosub",
    "e2m3f_inf",
)
ALL = (*FORMATS.values(), *(parse_custom(text) for text in CUSTOM))
SPOKEN = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")


def read(text: str) -> Fraction | str:
    """A number as the sentence writes it."""
    plain = text.replace(" × 10", "e").translate(SPOKEN)
    return plain if plain.strip("-") in ("infinity", "NaN") else Fraction(plain)


def values(fmt: FloatFormat) -> list[Fraction]:
    """Numbers at which the sentences change: zero, ends, ties, and points just beside them, of both signs."""
    one = Fraction(1) if fmt.max_finite >= 1 else fmt.max_finite
    landmarks = [
        fmt.max_finite,
        fmt.overflow_threshold,
        fmt.max_finite * 2,
        Fraction(10) ** 400,
        fmt.min_subnormal,
        fmt.min_subnormal / 2,
        fmt.min_subnormal * Fraction(3, 2),
        fmt.min_normal,
        fmt.min_normal * Fraction(3, 4),
        one + fmt.eps / 2,
        one + fmt.eps * Fraction(3, 2),
        Fraction(3),
        Fraction(1, 10),
        Fraction(1, 10**9),
    ]
    nudged = [v * (1 + n) for v in landmarks for n in (0, Fraction(1, 10**6), -Fraction(1, 10**6))]
    return [Fraction(0), *(s * v for v in nudged if v <= Fraction(10) ** 400 for s in (1, -1))]


def typed(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


@pytest.mark.sweep(10)
@pytest.mark.parametrize("fmt", [fmt for fmt in ALL if fmt.bits <= 10], ids=lambda fmt: fmt.name)
def test_the_answer_is_what_the_definition_gives(fmt: FloatFormat) -> None:
    for value, overflow in itertools.product(values(fmt), fmt.overflows):
        text = typed(value)
        if len(text) >= limit("float_chars"):
            continue
        said = answer_text(store(parse(text, fmt), fmt, overflow))
        truth = rounded_value(value, fmt, "nearest_even", overflow)
        if said.id.startswith("floats.answer.exact"):
            assert truth == value, (text, overflow, said)
            continue
        stated = "0" if said.id == "floats.answer.underflow" else said.values["value"]
        found = read(stated.removeprefix("≈ "))
        if isinstance(truth, str) or isinstance(found, str):
            assert found == {"inf": "-infinity" if value < 0 else "infinity", "nan": "NaN"}[str(truth)], (text, said)
        else:
            assert abs(found - truth) <= abs(truth) / 1000, (text, overflow, said)


@given(st.sampled_from(ALL), st.integers(0, (1 << 64) - 1))
def test_every_code_has_a_sentence(fmt: FloatFormat, drawn: int) -> None:
    given_code = parse(f"0x{drawn >> 64 - fmt.bits:x}", fmt)
    for other in FORMATS.values():
        if given_code.nan and not other.has_nan:
            continue
        for overflow in ("format", "saturate"):
            result = store(given_code, other, overflow)
            assert all(said.endswith(".") for said in (answer_text(result), *detail_texts(result)))


@every(
    ("text", "fmt", "answer", "reasons"),
    [
        ("1e-8", "fp16", "underflow", ["underflow"]),
        ("0.1", "bf16", "rounded_up", ["nearest"]),
        ("65504", "fp16", "exact_largest", ["step"]),
        ("65520", "fp16", "overflow", ["threshold"]),
        ("465", "fp8_e4m3fn", "overflow", ["above"]),
        ("1 + 2^-8 + 2^-40", "bf16", "rounded_up", ["nearest", "double", "added"]),
        ("2^-133", "bf16", "exact_subnormal", ["subnormal"]),
        ("7e-8", "fp16", "rounded_down", ["nearest_subnormal"]),
        ("-0", "fp8_e4m3fnuz", "no_minus_zero", []),
        ("-1", "e8m0fnu", "no_sign", ["range"]),
        ("nan", "bf16", "nan", ["nan_ieee"]),
        ("inf", "fp8_e4m3fn", "no_infinity", []),
    ],
)
def test_an_answer_has_its_reasons(text: str, fmt: str, answer: str, reasons: list[str]) -> None:
    result = stored(text, fmt)
    assert answer_text(result).id == f"floats.answer.{answer}"
    assert [said.id for said in detail_texts(result)] == [f"floats.detail.{reason}" for reason in reasons]
