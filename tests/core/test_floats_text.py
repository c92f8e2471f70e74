"""What a person may type for a number, what they are told when they may not, and the number in binary by steps."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.floats.codec import classify, decode_exact
from core.floats.formats import FORMATS, FloatFormat, FormatError
from core.floats.typed_numbers import FloatTextError, code_text, number_text, parse, typed_code
from core.limits import limit
from tests.every import every

FP16 = FORMATS["fp16"]
ALL_FORMATS = pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)


@every(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("  +.5 ", Fraction(1, 2)),
        ("-1e-8", Fraction(-1, 10**8)),
        ("65,504", Fraction(65504)),
        ("1_000_000.5", Fraction(2000001, 2)),
        ("−2", Fraction(-2)),
        ("-0.1 / 3e2", Fraction(-1, 3000)),
        ("2^-133", Fraction(1, 2**133)),
        ("2^(-3)", Fraction(1, 8)),
        ("2⁻²⁴", Fraction(1, 2**24)),
        ("-1.25 × 2^-3", Fraction(-5, 32)),
        ("6 × 10⁻⁸", Fraction(6, 10**8)),
        ("0x1.8p-3", Fraction(3, 16)),
        ("-0x1p-1074", Fraction(-1, 2**1074)),
        ("0X1.FP+2", Fraction(31, 4)),
        ("0x3c00", Fraction(1)),
        ("0x1", Fraction(1, 2**24)),
        ("0b 0 01111 0000000000", Fraction(1)),
        ("1 01111 1000000000", Fraction(-3, 2)),
        ("0|01111|0000000000", Fraction(1)),
        ("0011110000000000", Fraction(1)),
        ("1000000000000000", Fraction(10**15)),  # a power of ten: a number, not bits
        ("1011110000000000", Fraction(-1)),
        ("1 + 2^-8 + 2^-40", 1 + Fraction(1, 2**8) + Fraction(1, 2**40)),
        ("-1/3 + 1e-8 − 0x1p-3", Fraction(-1, 3) + Fraction(1, 10**8) - Fraction(1, 8)),
        ("2⁻²⁴ + 1.5×2⁻²⁵", Fraction(7, 2**26)),
        ("+".join(["1"] * 16), Fraction(16)),
        ("0", Fraction(0)),
        ("1 + (2 + 3)", Fraction(6)),
        ("(1 + 2^-8) / 3 × 2", Fraction(257, 384)),
        ("3^2", Fraction(9)),
        ("(1/2)^3", Fraction(1, 8)),
        ("--1", Fraction(1)),
        ("007", Fraction(7)),
    ],
)
def test_numbers_are_read_exactly(text: str, value: Fraction) -> None:
    typed = parse(text, FP16)
    assert typed.value == value
    assert not typed.nan


@every(
    "text", ["0x3c00", "0x1", "0b 0 01111 0000000000", "1 01111 1000000000", "0|01111|0000000000", "1011110000000000"]
)
def test_codes_are_read_as_codes(text: str) -> None:
    assert parse(text, FP16).code is not None


@every(("text", "value"), [("π", math.pi), ("pi / 4", math.pi / 4), ("-e", -math.e), ("2 × π^2", 2 * math.pi**2)])
def test_constants_are_read_to_the_last_bit(text: str, value: float) -> None:
    typed = parse(text, FORMATS["fp64"])
    assert typed.value is not None
    assert float(typed.value) == pytest.approx(value, rel=2e-16)
    assert typed.value != Fraction(float(typed.value))


@pytest.mark.parametrize(
    ("text", "negative", "nan"),
    [
        ("nan", False, True),
        ("NaN", False, True),
        ("inf", False, False),
        ("-inf", True, False),
        ("- Infinity", True, False),
        ("+∞", False, False),
        ("0x7c00", False, False),
        ("0xfe01", True, True),
    ],
)
def test_specials(text: str, negative: bool, nan: bool) -> None:
    typed = parse(text, FP16)
    assert typed.value is None
    assert (typed.negative, typed.nan) == (negative, nan)


@pytest.mark.parametrize("text", ["-0", "-0.0", "-0e5", "-0/3", "-0x0.0p0", "0x8000"])
def test_negative_zero_keeps_its_sign(text: str) -> None:
    typed = parse(text, FP16)
    assert typed.value == 0
    assert typed.negative
    assert typed_code(typed, FP16) == 0x8000


@every("name", [name for name, fmt in FORMATS.items() if fmt.bits >= 6])
def test_all_bits_of_a_code_are_read_as_bits(name: str) -> None:
    fmt = FORMATS[name]
    for code in {3 << fmt.bits - 2, (1 << fmt.bits) - 1, (1 << fmt.bits - 1) + 1, 1}:
        assert parse(f"{code:0{fmt.bits}b}", fmt).code == code


@every(
    "text",
    [
        *("", "abc", "0.1.2", "1 2", "1e", "2^0.5", "三", "1/0", "0^-1", "0x", "0x.", "0x1p", "-0x3c00", "0x03c00"),
        *("0x10000", "0b", "0b0101", "1 0", "1e999", "1e999999999999", "2^99999", "0x1p99999999", "1 + ", "1 + nan"),
        *("1 + 0x3c00", "1 + (2 + 3", "1 + 1/0", "+".join(["1"] * 17), "0,1", "½", "2π", "sqrt(2)", "9^9^9^9"),
    ],
)
def test_bad_text_gets_a_reason_and_an_example(text: str) -> None:
    with pytest.raises(FloatTextError) as caught:
        parse(text, FP16)
    assert caught.value.args[0].id.startswith("floats.error.")
    assert len(str(caught.value)) < 300


@given(st.lists(st.floats(2.0**-900, 2.0**900) | st.integers(1, 10**6), min_size=2, max_size=6))
def test_sums_are_exact(parts: list[float]) -> None:
    typed = parse(" - ".join(map(repr, parts)), FORMATS["fp64"])
    assert typed.value == Fraction(parts[0]) - sum(Fraction(repr(p)) for p in parts[1:]) + (
        Fraction(repr(parts[0])) - Fraction(parts[0])
    )
    assert typed.negative == (typed.value < 0)


AT_ONCE_S = 2
"""Processor seconds of this thread alone, a thousand times what it takes: text that is worked out takes for ever."""


@pytest.mark.parametrize("text", ["1" * 10**6, "(" * 10**6, "0x" + "f" * 10**6, " " * 10**6, "1e" + "9" * 10**6])
def test_a_million_characters_are_refused_at_once(text: str) -> None:
    start = time.thread_time()
    with pytest.raises(FloatTextError) as caught:
        parse(text, FP16)
    assert caught.value.args[0].id == "floats.error.long"
    assert time.thread_time() - start < AT_ONCE_S
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "9" * 1199,
        "0." + "0" * 1190 + "1",
        "1/" + "7" * 1190,
        "1_" * 599,
        "2^" + "1" * 1190,
        "1+" * 599,
        "1e-9+" * 239,
        "(" * 1199,
        "-" * 1190 + "1",
        "2^" * 599 + "2",
    ],
)
def test_the_longest_allowed_text_is_handled_at_once(text: str) -> None:
    assert len(text) <= limit("float_chars")
    start = time.thread_time()
    with pytest.raises(FloatTextError):
        parse(text, FP16)
    assert time.thread_time() - start < AT_ONCE_S


@given(text=st.text(max_size=60) | st.text("0123456789.eExXpPbB+-^*/ _,naif|", max_size=40))
@example("nan")
def test_any_text_is_read_or_refused(text: str) -> None:
    for fmt in FORMATS.values():
        try:
            typed = parse(text, fmt)
        except FloatTextError:
            continue
        if typed.nan and not fmt.has_nan:
            with pytest.raises(FormatError):
                typed_code(typed, fmt)
        else:
            assert 0 <= typed_code(typed, fmt) < 1 << fmt.bits


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_pythons_own_spelling_is_read_exactly(value: float) -> None:
    for text in (repr(value), value.hex()):
        typed = parse(text, FORMATS["fp64"])
        assert typed.value is not None
        assert float(typed.value) == value
        assert typed.negative == (str(value)[0] == "-")


@pytest.mark.sweep(8)
@ALL_FORMATS
@given(code=st.integers(0, (1 << 64) - 1), data=st.data())
def test_a_codes_text_gives_the_code(fmt: FloatFormat, code: int, data: st.DataObject) -> None:
    code >>= 64 - fmt.bits
    overflow = data.draw(st.sampled_from(fmt.overflows))
    text = code_text(code, fmt, overflow)
    assert typed_code(parse(text, fmt), fmt, overflow) == code
    assert len(text) <= 24


def test_infinity_under_saturation_can_only_be_a_code() -> None:
    assert code_text(0x7C00, FP16, "saturate") == "0x7c00"


def test_a_nan_code_means_its_own_format_only() -> None:
    typed = parse("0x7e05", FP16)
    assert typed_code(typed, FP16) == 0x7E05
    assert typed_code(typed, FORMATS["bf16"]) == FORMATS["bf16"].nan_code
    assert classify(typed_code(typed, FORMATS["fp8_e4m3fn"]), FORMATS["fp8_e4m3fn"]) == "nan"


def test_a_finite_code_is_its_value_in_other_formats() -> None:
    typed = parse("0x3c01", FP16)
    assert decode_exact(typed_code(typed, FORMATS["fp32"]), FORMATS["fp32"]) == 1 + Fraction(1, 1024)


@pytest.mark.parametrize(
    ("text", "number"), [("0.1", "0.1"), ("0x3c01", "1.0009765625"), ("0x7e05", "nan"), ("0xfc00", "-inf")]
)
def test_a_code_can_be_said_as_a_number(text: str, number: str) -> None:
    assert number_text(text, FP16) == number
