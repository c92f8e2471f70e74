"""Rounding modes and overflow against a search of the line of values, and what the microscope shows of a rounding."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.floats.codec import classify, decode, decode_exact, encode, encode_exact
from core.floats.formats import FORMATS, OVERFLOWS, FloatFormat, FormatError, Overflow
from core.floats.rounding import ROUNDINGS, Rounding
from core.floats.rounding_cases import magnify, spacing, through_fp32
from core.views.floats.text import code_value
from core.views.floats.text_rounding import takeaway
from tests.core.floats_oracle import described, format_and_value, line, rounded_value, small_format
from tests.every import every

DETERMINISTIC: tuple[Rounding, ...] = tuple(r for r in ROUNDINGS if r != "stochastic")
any_format = st.sampled_from(list(FORMATS.values()))


@pytest.mark.parametrize("rounding", DETERMINISTIC)
@given(drawn=format_and_value(), overflow=st.sampled_from(OVERFLOWS))
def test_exact_rounding_equals_a_search_of_the_line(
    rounding: Rounding, drawn: tuple[FloatFormat, Fraction], overflow: Overflow
) -> None:
    fmt, value = drawn
    if overflow not in fmt.overflows:
        with pytest.raises(FormatError, match=overflow):
            encode_exact(value, fmt, overflow, rounding=rounding)
        return
    code = encode_exact(value, fmt, overflow, rounding=rounding)
    assert described(code, fmt) == rounded_value(value, fmt, rounding, overflow)
    here = described(code, fmt)
    if value < 0 and here == 0 and fmt.has_negative_zero:
        assert code == fmt.sign_mask


@pytest.mark.parametrize("rounding", DETERMINISTIC)
@given(fmt=any_format | small_format, overflow=st.sampled_from(OVERFLOWS), data=st.data())
def test_array_and_exact_rounding_are_the_same(
    rounding: Rounding, fmt: FloatFormat, overflow: Overflow, data: st.DataObject
) -> None:
    if overflow not in fmt.overflows:
        with pytest.raises(FormatError, match=overflow):
            encode(1.0, fmt, rounding=rounding, overflow=overflow)
        return
    top, least = float(fmt.max_finite), float(fmt.min_subnormal)
    near = st.floats(-4 * top, 4 * top) if top < 1e300 else st.floats(allow_nan=False, allow_infinity=False)
    small = st.floats(-8 * least, 8 * least) if least > 1e-300 else near
    values = data.draw(st.lists(near | small | st.floats(allow_nan=fmt.has_nan), min_size=1, max_size=20))
    codes = encode(values, fmt, rounding=rounding, overflow=overflow).tolist()
    for value, code in zip(values, codes, strict=True):
        if math.isnan(value):
            assert code == fmt.nan_code
        elif math.isinf(value):
            if value < 0 and not fmt.signed:
                assert classify(code, fmt) == "nan" if fmt.has_nan else code == 0
            elif fmt.infinity and overflow != "saturate":
                assert (classify(code, fmt), bool(code & fmt.sign_mask)) == ("inf", value < 0)
            else:
                beyond = encode_exact(Fraction(2) ** 1100 * (1 if value > 0 else -1), fmt, overflow)
                assert described(code, fmt) == described(beyond, fmt)
        elif value:
            assert code == encode_exact(Fraction(value), fmt, overflow, rounding=rounding), value
        else:
            negative = math.copysign(1, value) < 0
            assert code == (fmt.sign_mask if negative and fmt.has_negative_zero else encode_exact(Fraction(0), fmt))


# ------------------------------------------------------------------------------------------ stochastic


@given(drawn=format_and_value(), seed=st.integers(0, 2**32))
def test_stochastic_rounding_takes_one_of_the_two_neighbors(drawn: tuple[FloatFormat, Fraction], seed: int) -> None:
    fmt, value = drawn
    if (value < 0 and not fmt.signed) or (value == 0 and not fmt.zero):
        return
    exact = decode_exact(encode_exact(value, fmt, "saturate", rounding="stochastic", seed=seed), fmt)
    array = float(decode(encode(float(value), fmt, overflow="saturate", rounding="stochastic", seed=seed), fmt))
    values = line(fmt)[0]
    assert exact is not None
    for asked, stored in ((value, exact), (Fraction(float(value)), Fraction(array))):
        first, past = bisect_left(values, abs(asked)), bisect_right(values, abs(asked))
        assert abs(stored) in values[max(past - 1, 0) : past] + values[first : first + 1]


@every("name", ["bf16", "fp8_e4m3fn", "fp32", "mxint8", "e8m0fnu"])
@every("share", [0.125, 0.5, 0.9])
def test_stochastic_rounding_goes_up_as_often_as_it_should(name: str, share: float) -> None:
    fmt = FORMATS[name]
    low, high = 1.0, 1.0 + float(fmt.eps)
    n = 40_000
    stored = decode(encode(np.full(n, low + share * (high - low)), fmt, rounding="stochastic", seed=5), fmt)
    assert set(stored.tolist()) == {low, high}
    assert abs(np.mean(stored == high) - share) < 4 * math.sqrt(share * (1 - share) / n)
    exact = Fraction(low) + Fraction(share) * (Fraction(high) - Fraction(low))
    draws = [encode_exact(exact, fmt, rounding="stochastic", seed=seed) for seed in range(1000)]
    assert abs(np.mean(decode(draws, fmt) == high) - share) < 4 * math.sqrt(share * (1 - share) / 1000)


def test_stochastic_rounding_reaches_from_far_below_the_smallest_value() -> None:
    fmt = FORMATS["fp8_e4m3fn"]
    n = 200_000
    least = float(fmt.min_subnormal)
    stored = decode(encode(np.full(n, least / 256), fmt, rounding="stochastic", seed=5), fmt)
    assert abs(stored.mean() / least - 1 / 256) < 4 * math.sqrt(1 / 256 / n)
    assert not encode(np.full(n, 1e-300), fmt, rounding="stochastic", seed=5).any()
    gap = encode(np.full(n, 2.0**-12), FORMATS["fp16"], rounding="stochastic", seed=5)
    assert set(gap.tolist()) == {int(encode(2.0**-12, FORMATS["fp16"]))}  # what is exact stays


def test_seeds_repeat_and_generators_go_on() -> None:
    fmt, values = FORMATS["fp8_e5m2"], np.linspace(1, 2, 50_001)
    once = encode(values, fmt, rounding="stochastic", seed=1)
    np.testing.assert_array_equal(once, encode(values, fmt, rounding="stochastic", seed=1))
    assert (once != encode(values, fmt, rounding="stochastic", seed=2)).any()
    generator = np.random.default_rng(1)
    np.testing.assert_array_equal(once, encode(values, fmt, rounding="stochastic", seed=generator))
    assert (once != encode(values, fmt, rounding="stochastic", seed=generator)).any()


# ------------------------------------------------------------------------------------------ overflow


@pytest.mark.parametrize(
    ("name", "policies"),
    [
        ("fp16", ("format", "saturate", "infinity", "nan")),
        ("fp8_e4m3fn", ("format", "saturate", "nan")),
        ("fp8_e4m3fnuz", ("format", "saturate", "nan")),
        ("p3109_k8p3se", ("format", "saturate", "infinity", "nan")),
        ("fp4_e2m1fn", ("format", "saturate")),
        ("mxint8", ("format", "saturate")),
    ],
)
def test_policies_of_a_format(name: str, policies: tuple[Overflow, ...]) -> None:
    fmt = FORMATS[name]
    assert fmt.overflows == policies
    for overflow in policies:
        kind = classify(int(encode(1e300, fmt, overflow=overflow)), fmt)
        expected = {"saturate": "normal", "infinity": "inf", "nan": "nan"}
        assert kind == expected[fmt.own_overflow if overflow == "format" else overflow]
    for overflow in set(OVERFLOWS) - set(policies):
        with pytest.raises(FormatError, match=f"{fmt.title} cannot overflow to “{overflow}”"):
            encode(1.0, fmt, overflow=overflow)


NARROW = [f for f in FORMATS.values() if f.bits <= 16]


@pytest.mark.sweep(6)
@pytest.mark.parametrize("fmt", NARROW, ids=lambda f: f.name)
@settings(max_examples=60)
@given(share=st.fractions(-1, 1))
def test_neighbors_bracket_and_the_bits_say_which_half(fmt: FloatFormat, share: Fraction) -> None:
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


def test_neighbors_are_numpys_nextafter() -> None:
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
    assert [c.rounding for c in scope.choices] == list(ROUNDINGS)
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
    detour = through_fp32(asked, FORMATS["bf16"], "format")
    assert detour is not None
    assert (detour.direct, detour.code) == (0x3F81, 0x3F80)
    assert detour.differs
    assert (scope.guard, scope.round_, scope.sticky) == (1, 0, 1)
    assert scope.kept == "1.0000000"
    said = takeaway(scope)
    assert (said.id, said.values["share"]) == ("rounding.takeaway.up", "just over 50")
    # Rounding through numpy's float32 is the same detour.
    assert float(np.float32(float(asked))) == float(detour.between or 0) == 1 + 2**-8


def test_the_step_past_the_largest_has_no_code() -> None:
    scope = magnify(Fraction(65519), FORMATS["fp16"])
    assert scope is not None
    assert (scope.low, scope.high, scope.high_code) == (65504, 65536, None)
    up = next(c for c in scope.choices if c.rounding == "up")
    assert up.value is None
    assert code_value(up.code or 0, scope.fmt) == "infinity"
    negative = magnify(Fraction(-65519), FORMATS["fp16"])
    assert negative is not None
    assert (negative.low, negative.low_code, negative.high) == (-65536, None, -65504)
    assert magnify(Fraction(70000), FORMATS["fp16"]) is None
