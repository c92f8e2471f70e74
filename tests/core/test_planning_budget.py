"""The budget's formulas against published examples, each undoing the others, and the texts a plan is typed in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.budget import equations
from core.budget.equations import accelerator_hours, effective_utilisation, rent, tokens_per_second, training_seconds
from core.hardware.accelerators import find
from core.number_text import QuantityError
from core.planning.plan import Within, parse_mfu, parse_price, parse_within, whole_accelerators
from core.wording import dollars, price
from tests.every import every

H100 = find("H100 SXM").peak("bf16")


def test_megatrons_worked_examples() -> None:
    """arXiv:2104.04473 section 5.1: 8 T P / (n X), the 8 being 6 plus the recomputed forward's 2."""
    for params, tokens, count, achieved, days in ((175e9, 300e9, 1024, 140e12, 34), (1e12, 450e9, 3072, 163e12, 84)):
        seconds = training_seconds(8 * params * tokens, count, achieved, 1.0)
        assert seconds / 86400 == pytest.approx(days, rel=0.01)


def test_deepseek_v3s_price() -> None:
    """2.788 M H800-hours at two dollars are 5.576 M dollars (arXiv:2412.19437, table 1)."""
    assert rent(2.788e6, 2.0) == pytest.approx(5.576e6)


def test_palms_mfu() -> None:
    """arXiv:2204.02311 appendix B: 238.3 k tokens/s on 6,144 TPU v4 are 45.7%, with attention 46.2%."""
    per_token = 6 * 540.35e9
    square = 12 * 118 * 48 * 256 * 2048
    peak = find("TPU v4").peak("bf16")
    hours = accelerator_hours(6144, 1.0)
    assert effective_utilisation(238_300 * per_token, hours, peak) == pytest.approx(0.457, abs=5e-4)
    assert effective_utilisation(238_300 * (per_token + square), hours, peak) == pytest.approx(0.462, abs=5e-4)


@given(
    params=st.floats(1e6, 1e13),
    tokens=st.floats(1e6, 1e15),
    count=st.floats(1, 1e6),
    mfu=st.floats(0.01, 1.0),
    factor=st.floats(6, 60),
)
def test_every_formula_undoes_the_others(params: float, tokens: float, count: float, mfu: float, factor: float) -> None:
    per_token = equations.flop_of_a_token(factor, params)
    flop = equations.flop_of_a_run(per_token, tokens)
    seconds = training_seconds(flop, count, H100, mfu)
    hours = accelerator_hours(count, seconds)
    back = {
        tokens: equations.tokens_trainable(count, H100, mfu, seconds, per_token),
        count: equations.accelerators_needed(flop, H100, mfu, seconds),
        mfu: equations.mfu_needed(flop, count, H100, seconds),
        hours: equations.hours_affordable(rent(hours, 2.5), 2.5),
        seconds: tokens / tokens_per_second(tokens, seconds),
    }
    for given_value, again in back.items():
        assert again == pytest.approx(given_value, rel=1e-12)
    assert effective_utilisation(flop, hours, H100) == pytest.approx(mfu, rel=1e-12)


def test_twice_the_accelerators_take_half_the_time() -> None:
    seconds = training_seconds.over(flop=6.3e24, accelerators=np.array([512.0, 1024.0]), peak=H100, mfu=0.5)
    assert seconds[0] == pytest.approx(2 * seconds[1])


# ------------------------------------------------------------------------------------------ texts

PRICES = {
    "2.50": (2.5, 2.5),
    "2-3.5": (2.0, 3.5),
    "3.5 – 2": (2.0, 3.5),
    "$2.50/h": (2.5, 2.5),
    "$3-4": (3, 4),
    "0": (0, 0),
}
MFUS = {
    "0.4": (0.4, 0.4),
    "40%": (0.4, 0.4),
    "35-45%": (0.35, 0.45),
    "35% to 45%": (0.35, 0.45),
    "0.45–0.35": (0.35, 0.45),
    "45": (0.45, 0.45),
    "100": (1.0, 1.0),
    "1": (1.0, 1.0),
    "35-45": (0.35, 0.45),
    "1-45": (0.01, 0.45),
}


@pytest.mark.parametrize("text", PRICES)
def test_prices_as_typed(text: str) -> None:
    assert parse_price(text) == PRICES[text]


@every("text", MFUS)
def test_mfu_as_typed(text: str) -> None:
    mfu = parse_mfu(text)
    assert mfu
    assert (mfu.low, mfu.high) == pytest.approx(MFUS[text])
    assert mfu.mid == pytest.approx(sum(MFUS[text]) / 2)


def test_mfu_from_published_runs() -> None:
    assert parse_mfu("published") is parse_mfu(" Published ") is parse_mfu("") is None


@pytest.mark.parametrize(
    ("text", "days"),
    [("90 days", 90), ("12 weeks", 84), ("3 months", 91.3125), ("2 years", 730.5), ("36 h", 1.5), ("20 min", 1 / 72)],
)
def test_limits_of_time_as_typed(text: str, days: float) -> None:
    within = parse_within(text)
    assert within.days == pytest.approx(days)
    assert not within.in_money


def test_limits_of_money_as_typed() -> None:
    assert parse_within("$5M").dollars == 5e6
    assert parse_within("$5M").in_money
    assert not Within(90.0).in_money


@every("text", ["", "cheap", "1-2-3", "-", "2-", "-2", "–2", "1e9", "nan"])
def test_bad_prices_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError, match=r"such as|example|[Ee]mpty|out of range|Did you mean") as refused:
        parse_price(text)
    assert text in str(refused.value)


@every("text", ["1.5", "101", "0", "-0.3", "lots", "1-2-3", "nan", "1e999", "%"])
def test_bad_mfu_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError, match=r"40%|from 0.1% to 100%"):
        parse_mfu(text)


@every("text", ["90", "", "soon", "$", "-3 days", "1e999 days", "0 s", "$1e999", "5M"])
def test_bad_limits_are_refused(text: str) -> None:
    with pytest.raises(QuantityError, match=r"such as|example|[Ee]mpty|out of range|Did you mean"):
        parse_within(text)


def test_prices_as_shown() -> None:
    assert price(3.0, 3.5) == "$3.00–3.50/h"
    assert price(2.0, 2.0) == "$2.00/h"
    assert price(math.nan, math.nan) == "unknown"
    assert [dollars(value) for value in (5.576e6, 1.68e25, 1e-18, 0.0, math.nan)] == [
        "$5.58M",
        "$1.68 × 10²⁵",
        "under $0.01",
        "$0.00",
        "unknown",
    ]


def test_accelerators_come_whole() -> None:
    counts = [whole_accelerators(n) for n in (1e-18, 0.5, 1.0, 1 + 1e-12, 1.1, 1023.9, 1024.0)]
    assert counts == [1, 1, 1, 1, 2, 1024, 1024]
