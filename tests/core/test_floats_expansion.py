"""A number in binary by steps: against long division, Python's own conversion, and counting."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.arithmetic.expansion import digits_of, expand, repetition
from core.floats.codec import encode_exact, floor_log2
from core.floats.formats import FORMATS, FloatFormat
from core.floats.typed_numbers import parse
from core.limits import limit
from core.views.floats.text_expansion import answer

FORMAT = st.sampled_from([fmt for fmt in FORMATS.values() if fmt.zero])
NUMBER = st.fractions(-(10**9), 10**9, max_denominator=10**5) | st.decimals(
    min_value="-1e3", max_value="1e3", places=12
).map(Fraction)


def by_long_division(rest: Fraction, most: int) -> tuple[int, int] | None:
    """Digits before the block, and of it, found by waiting for a remainder to come again."""
    seen: dict[Fraction, int] = {}
    for place in range(most):
        if not rest:
            return place, 0
        if rest in seen:
            return seen[rest], place - seen[rest]
        seen[rest] = place
        rest = 2 * rest % 1
    return None


@given(st.fractions(0, 1, max_denominator=600).filter(lambda f: f < 1))
def test_the_period_is_that_of_long_division(rest: Fraction) -> None:
    assert repetition(rest) == by_long_division(rest, 1300)


@pytest.mark.parametrize(("power", "period"), [(1, 4), (2, 20), (8, 312_500), (30, 4 * 5**29)])
def test_decimals_repeat_as_powers_of_five_do(power: int, period: int) -> None:
    assert repetition(Fraction(1, 10**power)) == (power, period)
    assert pow(2, period, 5**power) == 1
    assert pow(2, period // 2, 5**power) != 1
    assert pow(2, period // 5, 5**power) != 1 or power == 1


def test_a_block_too_long_to_count_is_not_counted() -> None:
    prime = 1_000_003
    assert repetition(Fraction(1, prime)) == (0, None)
    assert "more than" in answer(parse(f"1/{prime}", FORMATS["fp32"]), expand(Fraction(1, prime), FORMATS["fp32"]), 0)


@given(NUMBER, FORMAT)
def test_every_step_is_true_and_the_digits_are_those_of_the_number(value: Fraction, fmt: FloatFormat) -> None:
    made = expand(value, fmt)
    assert int(made.whole, 2) == int(abs(value))
    assert len(made.halvings) + len(made.doublings) <= 2 * limit("binary_steps")
    for up in made.halvings:
        assert up.before == 2 * up.after + up.digit
    for down in made.doublings:
        assert 2 * down.before == down.digit + down.after
        assert down.digit == int(abs(value) * 2**down.place) % 2
    if made.period:
        rest = abs(value) % 1
        count = made.lead_in + 3 * min(made.period, 200)
        text = digits_of(rest, count)[made.lead_in :]
        assert len(made.block) == min(made.period, limit("binary_steps"))
        if made.period <= 200:
            assert text[: made.period] * 3 == text
            assert text.startswith(made.block)


@given(NUMBER, FORMAT)
def test_the_steps_reach_just_past_the_last_place_and_the_cut_gives_the_code(value: Fraction, fmt: FloatFormat) -> None:
    made = expand(value, fmt)
    if not value or (value < 0 and not fmt.signed):
        return
    assert made.cut is not None
    last = max(floor_log2(abs(value)), fmt.emin) - fmt.fraction_bits
    assert made.cut.last == last
    if abs(value) <= fmt.max_finite:
        code = encode_exact(abs(value), fmt)
        assert fmt.magnitude(code) == (made.cut.kept + made.cut.up) * Fraction(2) ** last
    if made.doublings and made.period != 0:
        assert made.doublings[-1].place == max(0, -last) + 3
