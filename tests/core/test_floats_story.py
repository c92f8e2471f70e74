"""Every claim of the sentence under a number, in every format, against the definition of the format."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from core.floats.codec import classify, encode_exact
from core.floats.comparison import store
from core.floats.custom import parse_custom
from core.floats.formats import FORMATS, FloatFormat, Overflow
from core.floats.typed_numbers import parse
from core.views.floats.text import Description, describe_outcome
from tests.core.floats_oracle import line, rounded_value, value_of

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
EVERY = pytest.mark.parametrize("fmt", ALL, ids=lambda f: f.name)
NUMBER = r"(−?\d+(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?|−?infinity|NaN)"
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


Told = list[tuple[str, Fraction | None, Overflow, Description]]
"""What was typed, its value, what happens beyond the largest value, and what is said."""


def stories(fmt: FloatFormat) -> Told:
    texts: list[tuple[str, Fraction | None]] = [(typed(v), v) for v in values(fmt) if len(typed(v)) < 1200]
    texts += [("inf", None), ("-inf", None), ("-0", Fraction(0))]
    texts += [("nan", None)] if fmt.has_nan else []
    codes = range(1 << fmt.bits) if fmt.bits <= 8 else [0, fmt.max_code, fmt.last_code, fmt.sign_mask, 1]
    texts += [(f"0x{code:0{fmt.hex_digits}x}", None) for code in codes]
    return [
        (text, value, overflow, describe_outcome(store(parse(text, fmt), fmt, overflow)))
        for text, value in texts
        for overflow in fmt.overflows
    ]


@pytest.mark.sweep(10)
@EVERY
def test_every_sentence_holds(fmt: FloatFormat) -> None:
    told = stories(fmt)
    quoted_codes_and_named_things_exist(fmt, told)
    if fmt.bits <= 10:
        the_answer_is_what_the_definition_gives(fmt, told)
        neighbours_and_ties_are_the_formats_own(fmt, told)


def quoted_codes_and_named_things_exist(fmt: FloatFormat, told: Told) -> None:
    kinds = {classify(code, fmt) for code in range(1 << fmt.bits)} if fmt.bits <= 10 else None
    graded = fmt.has_subnormals if kinds is None else "subnormal" in kinds
    for text, _, overflow, story in told:
        said = f"{story.answer} {story.detail}"
        assert story.answer.endswith("."), said
        assert "**" not in said.replace("**", "", said.count("**") // 2 * 2)
        for code, value in re.findall(rf"`0x([0-9a-f]+)` is \**{NUMBER}", said):
            actual = value_of(int(code, 16), fmt)
            meant = read(value)
            if isinstance(meant, str):
                kind = classify(int(code, 16), fmt)
                assert {"infinity": "inf", "NaN": "nan"}[meant.strip("-")] == kind, (text, said)
            else:
                assert actual is not None, (text, said)
                assert abs(actual - meant) <= abs(actual) / 1000, (text, said)
        if "subnormal" in said:
            assert graded, (text, said)
        assert ("no infinity" in said) <= (not fmt.infinity), (text, said)
        assert ("no zero" in said) <= (not fmt.zero), (text, said)
        assert ("no sign" in said) <= (not fmt.signed), (text, said)
        assert ("it would be infinity" in said) <= fmt.infinity, (text, said)
        assert ("neither infinity nor NaN" in said) <= (not fmt.infinity and not fmt.has_nan), (text, said)
        for bound in re.findall(rf"(?:largest|lowest) finite value(?: is|,) \**{NUMBER}", said):
            assert abs(abs(Fraction(read(bound))) / fmt.max_finite - 1) < Fraction(1, 1000), (text, said)
            assert bound.startswith("−") == ("lowest" in said), (text, said)
        for way, number, word in re.findall(rf"(From|Above) {NUMBER}.*goes to −?(\w+)", said):
            at = encode_exact(fmt.overflow_threshold, fmt, overflow)
            assert (value_of(at, fmt) is None) == (way == "From"), (text, said)
            assert abs(Fraction(read(number)) / fmt.overflow_threshold - 1) < Fraction(1, 100)
            assert_outcome(word, fmt, overflow, (text, said))
        for word in re.findall(
            r"(?:and|it is) (NaN|infinity|the largest finite value)(?: beyond| from there|\.)", said
        ):
            assert_outcome(word, fmt, "format", (text, said))


def assert_outcome(word: str, fmt: FloatFormat, overflow: Overflow, about: object) -> None:
    code = encode_exact(fmt.max_finite * 3, fmt, overflow)
    expected = {"inf": "infinity", "nan": "NaN"}.get(classify(code, fmt), "the largest finite value")
    assert word == expected, about


def the_answer_is_what_the_definition_gives(fmt: FloatFormat, told: Told) -> None:
    for text, value, overflow, story in told:
        if value is None:
            continue
        truth = rounded_value(value, fmt, "nearest_even", overflow)
        about = (text, overflow, truth, story)
        stated = re.search(rf"becomes \*\*(?:≈ )?{NUMBER}\*\*", story.answer)
        if stated is None:
            assert "stored exactly" in story.answer, about
            assert truth == value, about
            continue
        said = read(stated[1])
        if isinstance(truth, str):
            assert said in ({"inf": ("infinity", "-infinity"), "nan": ("NaN",)}[truth]), about
            assert str(said).startswith("-") == (truth == "inf" and value < 0), about
        else:
            assert not isinstance(said, str), about
            assert abs(said - truth) <= abs(truth) / 1000, about
        policy = fmt.own_overflow if overflow == "format" else overflow
        too_large = abs(value) > fmt.max_finite and (fmt.signed or value > 0)
        assert ("clipped" in story.answer) == (too_large and policy == "saturate"), about


def neighbours_and_ties_are_the_formats_own(fmt: FloatFormat, told: Told) -> None:
    known = line(fmt)[0]
    ties = 0
    for text, value, overflow, story in told:
        found = re.search(
            rf"(?:neighbours are|halfway between) {NUMBER}(, the step[^;:]*?)? and {NUMBER}(, the step[^;:]*)?[;:]",
            story.detail,
        )
        if found is None:
            assert "neighbours are" not in story.detail, (text, story)
            continue
        about = (text, overflow, story)
        assert value is not None, about
        low, high = Fraction(read(found[1])), Fraction(read(found[3]))
        assert low < high, about
        for side, past in ((low, found[2]), (high, found[4])):
            nearest = min(known, key=lambda v: abs(v - abs(side)))
            assert (abs(nearest - abs(side)) > (high - low) / 4) == bool(past), about
        slack = (high - low) / 4
        assert low - slack <= value <= high + slack, about
        if "halfway" in story.detail:
            ties += 1
            assert abs((low + high) / 2 - value) < (high - low) / 20, about
            code = encode_exact(value, fmt, overflow)
            even = "even fraction," in story.detail
            assert even == (fmt.fraction_bits > 0), about
            assert not even or code & 1 == 0, about
        else:
            share = (value - low) / (high - low)
            assert abs(share - Fraction(1, 2)) > Fraction(1, 10**8), about
    assert ties or fmt.bits < 5 or fmt.max_finite < 2, fmt.name


@EVERY
def test_nan_and_infinity_have_the_bits_that_are_told(fmt: FloatFormat) -> None:
    if fmt.bits > 16:
        return
    every = [(code, classify(code, fmt)) for code in range(1 << fmt.bits)]
    nans = [code for code, kind in every if kind == "nan"]
    if fmt.has_nan:
        for code in nans[:3] + nans[-3:]:
            story = describe_outcome(store(parse(f"0x{code:x}", fmt), fmt))
            assert f"**{len(nans):,} code" in story.answer
            shape = story.answer
            zero = "the code that would be −0" in shape or "the one that would be −0" in shape
            assert zero == (fmt.signed and fmt.sign_mask in nans), story
            for other in nans:
                if other == fmt.sign_mask and zero:
                    continue
                assert_shape(other, shape, fmt)
    for code in (c for c, kind in every if kind == "inf"):
        story = describe_outcome(store(parse(f"0x{code:x}", fmt), fmt))
        assert_shape(code, story.detail.lower(), fmt)
        typed_infinity = describe_outcome(store(parse("-inf" if code & fmt.sign_mask else "inf", fmt), fmt))
        assert f"`0x{code:0{fmt.hex_digits}x}`" in typed_infinity.answer
        assert_shape(code, typed_infinity.answer, fmt)


def assert_shape(code: int, said: str, fmt: FloatFormat) -> None:
    bits = f"{code:0{fmt.bits}b}"[int(fmt.signed) :]
    exponent, fraction = bits[: fmt.exponent_bits], bits[fmt.exponent_bits :]
    claimed = False
    if "exponent all ones" in said:
        claimed = True
        assert set(exponent) == {"1"}, (code, said)
    if "fraction zero" in said:
        assert set(fraction) <= {"0"}, (code, said)
    if "fraction not zero" in said:
        assert "1" in fraction, (code, said)
    if "every bit" in said:
        claimed = True
        assert ("after the sign" in said) == fmt.signed, (code, said)
        body = bits[:-1] if "but the last" in said else bits
        assert set(body) == {"1"}, (code, said)
        assert ("but the last" in said) == (bits[-1] == "0"), (code, said)
    assert claimed, (code, said)


@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_double_rounding_is_named_where_fp32_goes_astray(name: str) -> None:
    """Beside a tie by less than fp32 can hold, and nowhere else."""
    fmt = FORMATS[name]
    tie = 1 + fmt.eps / 2
    for text, astray in ((f"{tie} + 2^-40", True), (f"{tie} + 2^-20", False), (str(tie), False), ("0.1", False)):
        answer = describe_outcome(store(parse(text, fmt), fmt, "format")).answer
        assert ("double rounding" in answer) == astray, text
    assert (
        "By way of fp32 it becomes **1**" in describe_outcome(store(parse(f"{tie} + 2^-40", fmt), fmt, "format")).answer
    )


@EVERY
def test_an_ulp_is_the_step_outwards_where_the_step_towards_zero_is_another(fmt: FloatFormat) -> None:
    """Around a power of two: the named ULP times the error in ULP is the error, to the digits told."""
    power = max(fmt.min_normal * 2, Fraction(1)) if fmt.max_finite >= 2 else fmt.max_finite
    here = value_of(encode_exact(power, fmt), fmt)
    assert here is not None
    steps = line(fmt)[0] if fmt.bits <= 10 else []
    shape = re.compile(rf"1 ULP is {NUMBER}, the step outwards from {NUMBER}; towards zero the step is {NUMBER}")
    for side in (1, -1) if fmt.signed else (1,):
        for asked in (side * here * (1 - fmt.eps / 16), side * here * (1 + fmt.eps / 16)):
            stored = store(parse(typed(asked), fmt), fmt)
            said = describe_outcome(stored).detail
            named = shape.search(said)
            assert (named is not None) == (stored.view.inward is not None and abs(asked) < abs(here)), said
            if named is None or stored.ulps is None:
                continue
            ulp, value, inward = (Fraction(read(one)) for one in named.groups())
            assert value == side * here
            assert abs(2 * inward / ulp - 1) < Fraction(1, 1000)
            assert abs(abs(stored.ulps) * ulp / abs(asked - value) - 1) < Fraction(1, 1000)
            if steps:
                place = steps.index(here)
                assert (inward, ulp) == (here - steps[place - 1], steps[place + 1] - here)
