"""The budget solver: every inverse undoes the others, published examples come out, and bad plans are told why."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.hardware.accelerators import find
from core.models import flops_per_token, model_named, parameters
from core.planning import BudgetError, fewest_accelerators, solve_budget

H100 = find("H100 SXM").peak("bf16")
LECTURE: dict[str, Any] = {"tokens": 15e12, "parameters": 70e9, "accelerators": 1024, "mfu": 0.5, "peak": H100}
FIVE = ("tokens", "parameters", "accelerators", "days", "mfu")


def without(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}


def test_the_lecture_takes_143_9_days() -> None:
    made = solve_budget(**LECTURE)
    assert (made.solved, made.flop) == ("days", 6.3e24)
    assert made.days == pytest.approx(143.9, abs=0.05)
    assert math.isnan(made.dollars)  # type: ignore[arg-type]


def test_megatrons_worked_examples() -> None:
    """arXiv:2104.04473 section 5.1: 34 days on 1,024 A100 at 140 TFLOP/s, 84 on 3,072 at 163, 8 N per token."""
    for params, tokens, count, achieved, days in ((175e9, 300e9, 1024, 140e12, 34), (1e12, 450e9, 3072, 163e12, 84)):
        made = solve_budget(
            tokens=tokens, parameters=params, accelerators=count, mfu=1.0, peak=achieved, flop_per_parameter=8
        )
        assert made.days == pytest.approx(days, rel=0.01)


def test_deepseek_v3s_dollars_buy_its_hours() -> None:
    """arXiv:2412.19437 table 1: $5.576 M at $2 are 2.788 M hours; on 2,048 accelerators 56.7 days."""
    made = solve_budget(tokens=14.8e12, parameters=37e9, accelerators=2048, dollars=5.576e6, price=2.0, peak=H100)
    assert made.solved == "mfu"
    assert made.hours == pytest.approx(2.788e6)
    assert made.days == pytest.approx(2.788e6 / 2048 / 24)
    assert made.mfu == pytest.approx(6 * 37e9 * 14.8e12 / (2.788e6 * 3600 * H100))


@settings(max_examples=60)
@given(
    tokens=st.floats(1e6, 1e15),
    parameters=st.floats(1e6, 1e13),
    accelerators=st.floats(1, 1e6),
    mfu=st.floats(0.01, 1),
    goodput=st.floats(0.3, 1),
    factor=st.floats(4, 9),
)
def test_each_of_the_five_is_found_again(
    tokens: float, parameters: float, accelerators: float, mfu: float, goodput: float, factor: float
) -> None:
    whole: dict[str, Any] = {"tokens": tokens, "parameters": parameters, "accelerators": accelerators, "mfu": mfu}
    fixed: dict[str, Any] = {"peak": 312e12, "goodput": goodput, "flop_per_parameter": factor, "price": 2.0}
    whole["days"] = solve_budget(**whole, **fixed).days
    for name in FIVE:
        made = solve_budget(**without(name, whole), **fixed)
        assert made.solved == name
        assert getattr(made, name) == pytest.approx(whole[name], rel=1e-9)
        assert made.dollars == pytest.approx(2.0 * accelerators * whole["days"] * 24, rel=1e-9)
        assert made.explanations[-1].value == pytest.approx(made.dollars, rel=1e-9)
    money = solve_budget(**without("accelerators", without("days", whole)), **fixed)
    assert (money.solved, money.dollars) == (
        "dollars",
        pytest.approx(2.0 * accelerators * whole["days"] * 24, rel=1e-9),
    )
    for name in ("tokens", "parameters", "mfu"):
        rest = without(name, without("accelerators", without("days", whole)))
        for known in ({}, {"accelerators": accelerators}, {"days": whole["days"]}):
            found = solve_budget(**rest, **known, **fixed, dollars=money.dollars)
            assert getattr(found, name) == pytest.approx(whole[name], rel=1e-9)
            assert found.hours == pytest.approx(money.hours, rel=1e-9)


def test_every_step_is_explained_and_leads_to_the_answer() -> None:
    whole = {**LECTURE, "days": solve_budget(**LECTURE).days, "price": 2.5, "goodput": 1.0}
    for name in FIVE:
        made = solve_budget(**without(name, whole))
        answers = [step.value for step in made.explanations]
        target = made.days * 86400 if name == "days" else getattr(made, name)
        assert any(value == pytest.approx(target, rel=1e-12) for value in answers), name
        assert all(step.sources for step in made.explanations)


def test_all_five_and_the_dollars() -> None:
    days = solve_budget(**LECTURE).days
    made = solve_budget(**LECTURE, days=days, price=3.0)
    assert (made.solved, made.dollars) == ("dollars", pytest.approx(1024 * days * 24 * 3.0))
    with pytest.raises(BudgetError, match=r"contradict.*143\.9 days"):
        solve_budget(**LECTURE, days=30, price=3.0)
    with pytest.raises(BudgetError, match="contradict"):
        solve_budget(**without("mfu", LECTURE), days=30, dollars=1e6, price=2.0)


def test_counted_flops_take_the_place_of_the_rule() -> None:
    model = model_named("DeepSeek-V3")
    per_token = flops_per_token(model.spec, 4096, "causal").training
    made = solve_budget(tokens=14.8e12, flop_per_token=per_token, accelerators=2048, mfu=0.4, peak=H100)
    assert made.flop == per_token * 14.8e12
    assert math.isnan(made.parameters)  # type: ignore[arg-type]
    active = parameters(model.spec).active
    scaled = {"flop_per_parameter": per_token / active, "accelerators": 2048, "mfu": 0.4, "peak": H100}
    assert solve_budget(tokens=14.8e12, parameters=active, **scaled).days == pytest.approx(made.days)
    assert solve_budget(tokens=14.8e12, days=made.days, **scaled).parameters == pytest.approx(active)


def test_arrays_broadcast_and_agree_with_numbers() -> None:
    counts, tokens = np.array([[512.0], [1024.0], [4096.0]]), np.array([1e12, 15e12])
    made = solve_budget(**{**LECTURE, "accelerators": counts, "tokens": tokens}, price=2.0)
    assert np.shape(made.days) == np.shape(made.dollars) == np.shape(made.peak) == (3, 2)
    for i, j in np.ndindex(3, 2):
        one = solve_budget(**{**LECTURE, "accelerators": counts[i, 0], "tokens": tokens[j]}, price=2.0)
        assert made.at((i, j)) == one
        assert made.at((i, j)).explanations == one.explanations


def test_an_array_marks_what_cannot_be_met() -> None:
    days = np.array([30.0, 300.0])
    made = solve_budget(**without("mfu", LECTURE), days=days)
    assert np.isnan(made.mfu).tolist() == [True, False]


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"accelerators": 0}, "accelerators", "more than zero"),
        ({"accelerators": 0.5}, "accelerators", "at least 1"),
        ({"accelerators": -8}, "accelerators", "more than zero"),
        ({"mfu": 1.4}, "mfu", "100 %"),
        ({"mfu": 40}, "mfu", "Did you mean 40%"),
        ({"goodput": 1.1}, "goodput", "100 %"),
        ({"tokens": math.nan}, "tokens", "finite"),
        ({"tokens": math.inf}, "tokens", "infinite"),
        ({"tokens": 10**400}, "tokens", "not a number"),
        ({"tokens": "many"}, "tokens", "'many' is not a number"),
        ({"tokens": np.array([])}, "tokens", "empty"),
        ({"peak": 0}, "peak", "more than zero"),
        ({"tokens": 1e300, "parameters": 1e300}, "days", "overflows"),
        ({"tokens": 5e-324, "parameters": 1e-10}, "days", "overflows"),
        ({"mfu": None}, "days", "not 2: give all but one of days, mfu"),
        ({"dollars": 1e6}, "price", "without a price"),
        ({"accelerators": None}, "price", "need a price"),
        ({"dollars": 1e6, "price": 2.0, "mfu": None, "tokens": None}, "mfu", "not 2"),
        ({"days": 1, "mfu": None}, "mfu", r"Cannot be met: .* 7,197 %"),
        ({"tokens": np.ones(2), "accelerators": np.ones(3)}, "tokens", "shapes"),
    ],
)
def test_bad_budgets_say_what_is_wrong(change: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(BudgetError, match=says) as refused:
        solve_budget(**{**LECTURE, **change})
    assert refused.value.field == field


def test_a_deadline_takes_the_fewest_accelerators() -> None:
    fleet = fewest_accelerators(flop=6.3e24, peak=H100, mfu=0.5, days=30)
    assert fleet.accelerators == math.ceil(6.3e24 / (H100 * 0.5 * 30 * 86400))
    assert fleet.seconds <= 30 * 86400 < fleet.seconds * fleet.accelerators / (fleet.accelerators - 1)
    nodes = fewest_accelerators(flop=6.3e24, peak=H100, mfu=0.5, days=30, per_node=8, goodput=0.9)
    assert (nodes.accelerators % 8, nodes.nodes * 8) == (0, nodes.accelerators)
    assert nodes.seconds <= 30 * 86400 < nodes.seconds * nodes.nodes / (nodes.nodes - 1)
    exactly = fewest_accelerators(flop=1024 * H100 * 0.5 * 86400 * 7, peak=H100, mfu=0.5, days=7)
    assert exactly.accelerators == 1024
    assert fewest_accelerators(flop=1e15, peak=H100, mfu=0.5, days=30).accelerators == 1
    for bad, field in (({"days": 1e-9}, "days"), ({"per_node": 0}, "per_node"), ({"mfu": 2.0}, "mfu")):
        with pytest.raises(BudgetError) as refused:
            fewest_accelerators(**{"flop": 6.3e24, "peak": H100, "mfu": 0.5, "days": 30, **bad})
        assert refused.value.field == field
