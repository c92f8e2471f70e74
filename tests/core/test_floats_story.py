"""The number in the sentence under what was typed, in every format, against the definition of the format."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.comparison import store
from core.floats.custom import parse_custom
from core.floats.formats import FORMATS, FloatFormat
from core.floats.typed_numbers import parse
from core.limits import limit
from core.views.floats.text import describe_outcome
from tests.core.floats_oracle import rounded_value

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


@pytest.mark.sweep(10)
@pytest.mark.parametrize("fmt", [fmt for fmt in ALL if fmt.bits <= 10], ids=lambda fmt: fmt.name)
def test_the_answer_is_what_the_definition_gives(fmt: FloatFormat) -> None:
    for value, overflow in itertools.product(values(fmt), fmt.overflows):
        text = typed(value)
        if len(text) >= limit("float_chars"):
            continue
        story = describe_outcome(store(parse(text, fmt), fmt, overflow))
        truth = rounded_value(value, fmt, "nearest_even", overflow)
        stated = re.search(rf"becomes \*\*(?:≈ )?{NUMBER}\*\*", story.answer)
        if stated is None:
            assert truth == value, (text, overflow, story)
            continue
        said = read(stated[1])
        if isinstance(truth, str) or isinstance(said, str):
            assert said == {"inf": "-infinity" if value < 0 else "infinity", "nan": "NaN"}[str(truth)], (text, story)
        else:
            assert abs(said - truth) <= abs(truth) / 1000, (text, overflow, story)


@given(st.sampled_from(ALL), st.integers(0, (1 << 64) - 1))
def test_every_code_has_a_sentence(fmt: FloatFormat, drawn: int) -> None:
    given_code = parse(f"0x{drawn >> 64 - fmt.bits:x}", fmt)
    for other in FORMATS.values():
        if given_code.nan and not other.has_nan:
            continue
        for overflow in ("format", "saturate"):
            answer = describe_outcome(store(given_code, other, overflow)).answer
            assert answer.endswith(".")
            assert answer.count("**") % 2 == 0
