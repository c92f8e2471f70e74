"""Sums by table and leap against additions made one by one, by numpy, ml_dtypes and exact fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.floats import FORMATS, decode, decode_exact, encode, encode_exact
from core.floats.accumulation import (
    DETERMINISTIC,
    SHOWN,
    Run,
    add_up,
    drawn,
    explain,
    master_copy,
    spread,
    sum_to_odd,
    table,
    takeaway,
)
from core.limits import limit


def one_by_one(start: float, addend: float, steps: int, name: str, rounding: str) -> list[Fraction]:
    fmt = FORMATS[name]
    total, small = (decode_exact(encode_exact(Fraction(v), fmt), fmt) for v in (start, addend))
    assert total is not None
    assert small is not None
    sums = [total]
    for _ in range(steps):
        following = decode_exact(encode_exact(sums[-1] + small, fmt, "saturate", rounding=rounding), fmt)  # type: ignore[arg-type]
        assert following is not None
        sums.append(following)
    return sums


@pytest.mark.parametrize(("name", "rounding"), list(itertools.product((*SHOWN, "fp64"), DETERMINISTIC)))
def test_sums_are_exact_additions_rounded_once(name: str, rounding: str) -> None:
    for start, addend in ((0, 0.01), (1, 0.001), (0.3, 7.7), (100, 2**-20)):
        run = add_up(start, addend, 150, FORMATS[name], rounding)  # type: ignore[arg-type]
        assert run.at.tolist() == list(range(151))
        assert run.sums.tolist() == [float(v) for v in one_by_one(start, addend, 150, name, rounding)]


@pytest.mark.parametrize(("name", "dtype"), [("bf16", ml_dtypes.bfloat16), ("fp16", np.float16), ("fp32", np.float32)])
def test_sums_are_those_of_the_libraries(name: str, dtype: type) -> None:
    run = add_up(0, 0.01, 2000, FORMATS[name])
    total, small = dtype(0), dtype(0.01)
    for _ in range(2000):
        total = dtype(total + small)
    assert run.final == float(total)


def test_the_bf16_weight_never_moves_and_the_master_does() -> None:
    assert add_up(1, 1e-3, 1000, FORMATS["bf16"]).stalled == 0
    assert "never moves" in takeaway(1, 1e-3, 1000, FORMATS["bf16"])
    master = master_copy(1, 1e-3, 1000, FORMATS["bf16"])
    assert master.final == pytest.approx(2, rel=1e-3)
    assert master.sums[-1] == 2
    assert np.array_equal(decode(encode(master.sums, FORMATS["bf16"]), FORMATS["bf16"]), master.sums)


def test_the_stalls_everybody_quotes() -> None:
    assert add_up(0, 0.01, 1000, FORMATS["bf16"]).final == 4
    counting = add_up(0, 1, 4000, FORMATS["fp16"])
    assert (counting.final, counting.stalled) == (2048, 2048)
    assert "stalls at 2048" in takeaway(0, 1, 4000, FORMATS["fp16"])
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


@settings(deadline=None, derandomize=True)
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


def test_long_sums_are_thinned_with_both_ends() -> None:
    run = add_up(0, 0.01, 10_000, FORMATS["fp32"])
    assert run.at.size <= 400
    assert (run.at[0], run.at[-1]) == (0, 10_000)
    assert run.sums[-1] == run.final


def test_table_and_picture_say_the_same() -> None:
    rows = table(0, 0.01, 1000)
    assert [row[0][0] for row in rows] == [FORMATS[name].title for name in SHOWN]
    bf16 = rows[SHOWN.index("bf16")]
    assert bf16[1] == ("4", "stalls after 350")
    runs, lots = drawn(0, 0.01, 1000, FORMATS["bf16"])
    assert all(isinstance(run, Run) for *_, run in runs)
    assert lots is not None
    assert drawn(0, 0.01, 1000, FORMATS["fp32"])[1] is None


def test_explanations() -> None:
    total, half = explain(0, 0.01, 1000, FORMATS["bf16"])
    assert total.value == pytest.approx(10)
    assert half.value == 2**-6 / 1  # half of bf16's step of 2^-5 at 4
