"""The budget: the lecture's 143.9 days, published costs, and prices as typed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.hardware.accelerators import find
from core.models import model_named
from core.models.catalog import nearest_dense
from core.planning.budget.rule import (
    Plan,
    accelerator_hours,
    budget,
    count_every_way,
    effective_utilisation,
    explain_budget,
    explain_count,
    format_cost,
    format_price,
    parse_price,
    rent,
    scale_of,
    tokens_per_second,
    training_seconds,
)
from core.units import QuantityError

LECTURE = Plan(params=70e9, tokens=15e12, accelerators=1024, peak=find("H100 SXM").peak("bf16"), mfu=0.5)


def test_the_lecture_takes_143_9_days() -> None:
    made = budget(LECTURE)
    assert made.flop == 6.3e24
    assert made.seconds / 86400 == pytest.approx(143.9, abs=0.05)
    assert made.hours == pytest.approx(made.seconds / 3600 * 1024)
    assert math.isnan(made.usd_low)


def test_megatrons_worked_examples() -> None:
    """arXiv:2104.04473 section 5.1: 8 T P / (n X), the 8 being 6 plus the recomputed forward's 2."""
    for params, tokens, count, achieved, days in ((175e9, 300e9, 1024, 140e12, 34), (1e12, 450e9, 3072, 163e12, 84)):
        seconds = training_seconds(8 * params * tokens, count, achieved, 1.0)
        assert seconds / 86400 == pytest.approx(days, rel=0.01)


def test_deepseek_v3s_price() -> None:
    """2.788 M H800-hours at two dollars are 5.576 M dollars (arXiv:2412.19437, table 1)."""
    assert rent(2.788e6, 2.0) == pytest.approx(5.576e6)


def test_palms_mfu() -> None:
    """arXiv:2204.02311 appendix B: 238.3 k tokens/s on 6,144 TPU v4 are 45.7 %, with attention 46.2 %."""
    per_token = 6 * 540.35e9
    square = 12 * 118 * 48 * 256 * 2048
    peak = find("TPU v4").peak("bf16")
    hours = accelerator_hours(6144, 1.0)
    assert effective_utilisation(238_300 * per_token, hours, peak) == pytest.approx(0.457, abs=5e-4)
    assert effective_utilisation(238_300 * (per_token + square), hours, peak) == pytest.approx(0.462, abs=5e-4)


@given(
    params=st.floats(1e6, 1e13),
    tokens=st.floats(1e6, 1e15),
    count=st.integers(1, 10**6),
    mfu=st.floats(0.01, 1.0),
)
def test_utilisation_undoes_the_plan(params: float, tokens: float, count: int, mfu: float) -> None:
    """The whole-run utilisation of exactly the planned hours is the MFU the plan assumed."""
    plan = Plan(params, tokens, count, 989.4e12, mfu, 2.0, 3.0)
    made = budget(plan)
    assert effective_utilisation(made.flop, made.hours, plan.peak) == pytest.approx(mfu, rel=1e-12)
    assert made.tokens_per_s * made.seconds == pytest.approx(tokens, rel=1e-12)
    assert made.usd_high / made.usd_low == pytest.approx(1.5)


def test_twice_the_accelerators_take_half_the_time_at_the_same_price() -> None:
    seconds = training_seconds.over(flop=6.3e24, accelerators=np.array([512.0, 1024.0]), peak=989.4e12, mfu=0.5)
    assert seconds[0] == pytest.approx(2 * seconds[1])
    assert tokens_per_second(15e12, float(seconds[1])) == pytest.approx(budget(LECTURE).tokens_per_s)


def test_every_number_of_the_budget_is_explained() -> None:
    made = budget(LECTURE)
    values = {e.name.rpartition(".")[2]: e.value for e in explain_budget(LECTURE)}
    assert values == {
        "train_flop_6nd": made.flop,
        "training_seconds": made.seconds,
        "accelerator_hours": made.hours,
        "tokens_per_second": made.tokens_per_s,
    }
    priced = Plan(70e9, 15e12, 1024, 989.4e12, 0.5, 3.0, 3.5)
    assert [e.value for e in explain_budget(priced)][-2:] == [budget(priced).usd_low, budget(priced).usd_high]


def test_counting_conventions_of_a_plan() -> None:
    model = model_named("Llama 3.1 405B")
    plan = Plan(model.active, 15.6e12, 16_384, 989.4e12, 0.41)
    ways = count_every_way(model.spec, 8192, plan)
    assert ways[0].flop == budget(plan).flop
    assert ways[0].seconds == budget(plan).seconds
    assert [way.id for way in ways] == ["rule", "kaplan", "causal", "full", "palm"]
    assert ways[2].against_rule == pytest.approx(0.0365, abs=1e-4)
    explained = explain_count(model.spec, 8192, "causal", plan)
    assert explained[-1].value == pytest.approx(ways[2].flop, rel=1e-14)
    assert sum(e.value for e in explained[:-1]) * 3 == pytest.approx(ways[2].per_token, rel=1e-14)


@pytest.mark.parametrize("typed", [70e9, 1.5e12, 1.0, 7e9])
def test_a_stand_ins_counts_are_scaled_to_the_typed_parameters(typed: float) -> None:
    stand_in = nearest_dense(typed)
    plan = Plan(typed, 15e12, 1024, 989.4e12, 0.5)
    ways = count_every_way(stand_in.spec, 8192, plan)
    assert (ways[0].flop, ways[0].seconds) == (budget(plan).flop, budget(plan).seconds)
    own = count_every_way(stand_in.spec, 8192, Plan(stand_in.active, 15e12, 1024, 989.4e12, 0.5))
    for scaled, counted in zip(ways, own, strict=True):
        assert scaled.against_rule == counted.against_rule
        assert scaled.flop / counted.flop == pytest.approx(typed / stand_in.active, rel=1e-12)
        assert scaled.per_token == pytest.approx(scaled.flop / plan.tokens, rel=1e-12)
    assert scale_of(stand_in.spec, plan) == typed / stand_in.active
    explained = explain_count(stand_in.spec, 8192, "causal", plan)
    assert explained[-1].name.endswith("scaled_flop")
    assert explained[-1].value == pytest.approx(ways[2].flop, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "prices"),
    [
        ("2.50", (2.5, 2.5)),
        ("2-3.5", (2.0, 3.5)),
        ("3.5 – 2", (2.0, 3.5)),
        ("$2.50/h", (2.5, 2.5)),
        ("$3-4", (3, 4)),
        ("0", (0, 0)),
    ],
)
def test_prices_as_typed(text: str, prices: tuple[float, float]) -> None:
    assert parse_price(text) == prices


@pytest.mark.parametrize("text", ["", "cheap", "1-2-3", "-", "2-", "-2", "–2", "1e9", "nan"])
def test_bad_prices_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError) as refused:
        parse_price(text)
    assert text in str(refused.value)
    assert ("Empty" in str(refused.value)) == (text == "")


def test_prices_as_shown() -> None:
    assert format_price(3.0, 3.5) == "$3.00–3.50/h"
    assert format_price(2.0, 2.0) == "$2.00/h"
    assert format_price(math.nan, math.nan) == "unknown"
    assert format_cost(5.576e6, 5.576e6) == "$5.58 M"
    assert format_cost(10.6e6, 12.4e6) == "$10.6 M to $12.4 M"
    assert format_cost(1.68e25, 1.68e25) == "$1.68 × 10²⁵"
    assert format_cost(math.nan, math.nan) == "unknown"
    assert format_cost(1e-18, 2e-18) == "under $0.01"
    assert format_cost(0.001, 0.02) == "under $0.01 to $0.02"
    assert format_cost(0.0, 0.0) == "$0.00"
