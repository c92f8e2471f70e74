"""The microscope's neighbours, tie, bits and choices, against exact arithmetic and the codec."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.floats.codec import decode_exact
from core.floats.formats import FORMATS, FloatFormat
from core.floats.rounding import ROUNDINGS
from core.floats.rounding_cases import WORDS, magnify, overflows, spacing, takeaway
from tests.every import every

NARROW = [f for f in FORMATS.values() if f.bits <= 16]


@pytest.mark.sweep(6)
@pytest.mark.parametrize("fmt", NARROW, ids=lambda f: f.name)
@settings(max_examples=60)
@given(share=st.fractions(-1, 1))
def test_neighbours_bracket_and_the_bits_say_which_half(fmt: FloatFormat, share: Fraction) -> None:
    asked = share * fmt.max_finite
    scope = magnify(asked, fmt)
    if scope is None:
        assert not fmt.zero
        assert asked < fmt.min_subnormal
        return
    assert scope.low <= asked <= scope.high
    if scope.exact:
        assert scope.low == asked
        return
    assert scope.tie == (scope.low + scope.high) / 2
    assert asked == scope.low + scope.position * (scope.high - scope.low)
    if scope.low_code is not None and scope.high_code is not None:
        assert decode_exact(scope.low_code, fmt) == scope.low
        assert decode_exact(scope.high_code, fmt) == scope.high
    away = scope.position if asked >= 0 else 1 - scope.position
    assert scope.guard == (away >= Fraction(1, 2))
    assert scope.round_ == (away % Fraction(1, 2) >= Fraction(1, 4))
    assert scope.sticky == (away % Fraction(1, 4) > 0)


def test_neighbours_are_numpys_nextafter() -> None:
    draw = np.random.default_rng(0)
    for value in draw.standard_normal(200) * 10.0 ** draw.integers(-6, 4, 200):
        scope = magnify(Fraction(float(value)), FORMATS["fp16"])
        assert scope is not None
        near = np.float16(value)
        other = np.nextafter(near, np.float16(np.inf if value > float(near) else -np.inf))
        assert {float(near), float(other)} == {float(scope.low), float(scope.high)}


@every("fmt", NARROW, ids=lambda f: f.name)
def test_every_mode_takes_one_of_the_two(fmt: FloatFormat) -> None:
    low = fmt.min_normal * 2
    asked = low + spacing(low, fmt) * Fraction(3, 8)
    scope = magnify(asked, fmt)
    assert scope is not None
    assert [c.rounding for c in scope.choices] == list(ROUNDINGS) == list(WORDS)
    taken = {c.rounding: c.value for c in scope.choices}
    assert taken["toward_zero"] == taken["down"] == scope.low
    assert taken["up"] == scope.high
    assert next(c.chance for c in scope.choices if c.rounding == "stochastic") == scope.position == Fraction(3, 8)
    for choice in scope.choices:
        if choice.code is not None:
            assert choice.upper == (choice.value == scope.high)


def test_the_double_rounding_trap() -> None:
    asked = 1 + Fraction(1, 2**8) + Fraction(1, 2**40)
    scope = magnify(asked, FORMATS["bf16"])
    assert scope is not None
    assert scope.detour is not None
    assert (scope.detour.direct, scope.detour.code) == (0x3F81, 0x3F80)
    assert scope.detour.differs
    assert (scope.guard, scope.round_, scope.sticky) == (1, 0, 1)
    assert scope.kept == "1.0000000"
    assert "hair above halfway" in takeaway(scope)
    # Rounding through numpy's float32 is the same detour.
    assert float(np.float32(float(asked))) == float(scope.detour.between or 0) == 1 + 2**-8


def test_the_step_past_the_largest_has_no_code() -> None:
    scope = magnify(Fraction(65519), FORMATS["fp16"])
    assert scope is not None
    assert (scope.low, scope.high, scope.high_code) == (65504, 65536, None)
    up = next(c for c in scope.choices if c.rounding == "up")
    assert up.value is None
    assert overflows(up.code, scope.fmt) == "infinity"
    negative = magnify(Fraction(-65519), FORMATS["fp16"])
    assert negative is not None
    assert (negative.low, negative.low_code, negative.high) == (-65536, None, -65504)
    assert magnify(Fraction(70000), FORMATS["fp16"]) is None
