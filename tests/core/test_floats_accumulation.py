"""Sums of one number against additions made one by one, by numpy, ml_dtypes and exact fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.floats.arithmetic.accumulation import DETERMINISTIC, SHOWN, add_up, spread, sum_to_odd
from core.floats.codec import decode, decode_exact, encode, encode_exact
from core.floats.formats import FORMATS
from core.floats.rounding import Rounding
from core.limits import limit
from core.views.floats.charts import summation_lines
from core.views.floats.text_training import sum_texts
from tests.every import every


def additions(start: float, addend: float, steps: int, name: str, rounding: str) -> list[float]:
    fmt = FORMATS[name]
    code = encode_exact(Fraction(start), fmt)
    small = decode_exact(encode_exact(Fraction(addend), fmt), fmt)
    assert small is not None
    sums = [float(decode([code], fmt)[0])]
    for _ in range(steps):
        total = decode_exact(code, fmt)
        if total is not None:  # what has overflowed stays
            code = encode_exact(total + small, fmt, rounding=rounding)  # type: ignore[arg-type]
        sums.append(float(decode([code], fmt)[0]))
    return sums


@every(("name", "rounding"), list(itertools.product((*SHOWN, "fp64"), DETERMINISTIC)))
def test_sums_are_exact_additions_rounded_once(name: str, rounding: str) -> None:
    for start, addend in ((0, 0.01), (1, 0.001), (0.3, 7.7), (100, 2**-20)):
        run = add_up(start, addend, 150, FORMATS[name], rounding)  # type: ignore[arg-type]
        assert run.at.tolist() == list(range(151))
        np.testing.assert_array_equal(run.sums, additions(start, addend, 150, name, rounding))


@pytest.mark.parametrize(("name", "dtype"), [("bf16", ml_dtypes.bfloat16), ("fp16", np.float16), ("fp32", np.float32)])
def test_sums_are_those_of_the_libraries(name: str, dtype: type) -> None:
    run = add_up(0, 0.01, 2000, FORMATS[name])
    total, small = dtype(0), dtype(0.01)
    for _ in range(2000):
        total = dtype(total + small)
    assert run.final == float(total)


LIBRARY_TYPES = {
    "fp64": np.float64,
    "fp32": np.float32,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
    "fp8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
}


@every(
    ("name", "start", "addend"),
    [
        ("fp16", 60000, 1000),
        ("fp16", 65000, 15),
        ("fp16", 65520, 1),
        ("fp16", -60000, -1000),
        ("fp8_e4m3fn", 384, 32),
        ("fp8_e4m3fn", 400, 20),
        ("fp8_e4m3fn", 0, 1e6),
        ("fp8_e4m3fn", 465, 1),
        ("fp8_e4m3fnuz", 200, 16),
        ("fp8_e5m2", 40960, 8192),
        ("fp8_e5m2", 0, 1e6),
        ("bf16", 3e38, 1e36),
        ("fp32", 3.4e38, 1e35),
        ("fp64", 1.7e308, 1e306),
    ],
)
def test_sums_overflow_as_the_libraries_do(name: str, start: float, addend: float) -> None:
    run = add_up(start, addend, 100, FORMATS[name])
    dtype = LIBRARY_TYPES[name]
    with np.errstate(over="ignore", invalid="ignore"):
        total, small = dtype(start), dtype(addend)
        sums = [float(total)]
        for _ in range(100):
            total = dtype(total + small)
            sums.append(float(total))
    np.testing.assert_array_equal(run.sums, sums)
    lost = np.flatnonzero(~np.isfinite(sums))
    assert run.overflowed == (int(lost[0]) if lost.size else None)
    if lost.size:
        assert run.stalled is None
        assert not np.isfinite(run.final)


def test_stochastic_sums_overflow_beyond_the_next_value() -> None:
    fmt = FORMATS["fp8_e4m3fn"]
    lots = spread(448, 8, 1, fmt)  # 456 is a quarter of the way to 480, which would be next
    assert abs(lots.overflowed / 256 - 0.25) < 5 * (0.25 * 0.75 / 256) ** 0.5
    assert spread(448, 32, 1, fmt).overflowed == 256
    assert spread(-448, -32, 1, fmt).overflowed == 256
    assert spread(400, 1, 1, fmt).overflowed == 0
    assert spread(0, 100, 100, FORMATS["mxint8"]).overflowed == 0  # a format that saturates
    lots, run = spread(60000, 1000, 20, FORMATS["fp16"]), add_up(60000, 1000, 20, FORMATS["fp16"])
    assert (run.overflowed, lots.overflowed) == (6, 256)
    assert np.isfinite(lots.mean).tolist() == [True] * 6 + [False] * 15


def test_the_stalls_everybody_quotes() -> None:
    assert add_up(0, 0.01, 1000, FORMATS["bf16"]).final == 4
    counting = add_up(0, 1, 4000, FORMATS["fp16"])
    assert (counting.final, counting.stalled) == (2048, 2048)
    said = sum_texts(0, 1, 4000, FORMATS["fp16"])[1]
    assert (said.id, said.values["sum"]) == ("sums.stalls", "2048")
    assert add_up(0, 1, 300, FORMATS["bf16"]).stalled == 256


def test_stochastic_sums_are_right_on_average() -> None:
    lots = spread(1, 1e-3, 1000, FORMATS["bf16"])
    stored = float(decode(encode([1e-3], FORMATS["bf16"]), FORMATS["bf16"])[0])
    expected = 1 + lots.at * stored
    # The mean of 256 sums lies within five standard errors, everywhere along the way.
    assert np.all(np.abs(lots.mean - expected) <= 5 * lots.deviation / 16 + 1e-12)
    assert lots.deviation[0] == 0
    assert lots.deviation[-1] > 0
    with pytest.raises(ValueError, match="too wide"):
        spread(0, 1, 10, FORMATS["fp32"])


@given(a=st.floats(-1e300, 1e300), b=st.floats(-1e300, 1e300))
def test_sums_to_odd_keep_which_side_the_exact_sum_is_on(a: float, b: float) -> None:
    got = float(sum_to_odd(np.array([a]), b)[0])
    exact = Fraction(a) + Fraction(b)
    if Fraction(a + b) == exact:
        assert got == a + b
    else:
        assert np.float64(got).view(np.int64) & 1
        assert abs(Fraction(got) - exact) < Fraction(float(np.spacing(abs(got)))) * 2


@pytest.mark.parametrize("steps", [0, -1, limit("additions") + 1])
def test_steps_have_a_cap(steps: int) -> None:
    with pytest.raises(ValueError, match="additions"):
        add_up(0, 1, steps, FORMATS["bf16"])


def test_stochastic_has_a_function_of_its_own() -> None:
    with pytest.raises(ValueError, match="spread"):
        add_up(0, 1, 10, FORMATS["bf16"], "stochastic")


MIRRORED: dict[Rounding, Rounding] = {"up": "down", "down": "up"}


@given(
    st.floats(-100, 100), st.floats(-2, 2), st.integers(1, 60), st.sampled_from(SHOWN), st.sampled_from(DETERMINISTIC)
)
def test_a_sum_with_other_signs_is_the_mirror_image(
    start: float, addend: float, steps: int, name: str, rounding: Rounding
) -> None:
    fmt = FORMATS[name]
    there, back = (
        add_up(start, addend, steps, fmt, rounding),
        add_up(-start, -addend, steps, fmt, MIRRORED.get(rounding, rounding)),
    )
    np.testing.assert_array_equal(there.sums, -back.sums)
    assert (there.stalled, there.overflowed) == (back.stalled, back.overflowed)
    for (_, role, run), (_, same, mirror) in zip(
        *(summation_lines(sign * start, sign * addend, steps, fmt)[0] for sign in (1, -1)), strict=True
    ):
        assert role == same
        if addend:
            np.testing.assert_array_equal(run.sums, -mirror.sums)
