"""What the days of compared plans go to, and how far a plan falls behind its accelerators."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.planning.comparison.comparison import ComparedPlan, compare_plans
from core.planning.comparison.entry import entry_of
from core.planning.comparison.examples import examples
from core.planning.comparison.time_parts import TimeParts, known_parts, shortfall, time_parts
from core.planning.cost.tariff import TARIFF, mean_of_tariff
from core.planning.presets import PRESETS
from core.units import QuantityError
from core.views.common.palette import LIGHT
from core.views.comparison.time_parts import parts_bars, why_not_faster
from tests.core.sentence_facts import says


def parts_of(**texts: str) -> tuple[ComparedPlan, TimeParts]:
    (plan,) = compare_plans([entry_of("plan", texts)])
    parts = time_parts(plan)
    assert isinstance(parts, TimeParts)
    return plan, parts


@pytest.mark.parametrize("name", PRESETS)
def test_the_parts_of_a_plan_are_its_days(name: str) -> None:
    (plan,) = compare_plans([entry_of(name, PRESETS[name])])
    parts = time_parts(plan)
    assert plan.answer
    if isinstance(parts, TimeParts):
        assert parts.total == pytest.approx(plan.answer.middle.days)
        assert min(parts.days.values()) >= 0
    else:
        assert parts.endswith(".")


def test_steps_and_what_lies_beside_them_are_those_of_the_answer() -> None:
    plan, parts = parts_of()
    assert plan.answer
    assert parts.days["beside"] == pytest.approx(plan.answer.middle.days - plan.answer.middle.steps_days)
    typed, fast = parts_of(mfu="60%")  # faster than the layout: beside its steps are the stops alone
    assert typed.answer
    middle = typed.answer.middle
    assert fast.days["beside"] == pytest.approx(middle.days * (1 - middle.goodput))


def test_what_a_plan_lacks_adds_up_to_its_days() -> None:
    _, h100 = parts_of()
    for other in ({"gpu": "B200"}, {"gpu": "H200 SXM"}, {"count": "2,048"}, {"tokens": "3T"}, {"n": "8B"}):
        _, parts = parts_of(**other)
        result = shortfall(h100, parts)
        assert sum(result.over.values()) == pytest.approx(parts.total - h100.total / result.peak)
        assert result.faster == pytest.approx(h100.total / parts.total)
    assert shortfall(h100, parts_of(count="2,048")[1]).peak == pytest.approx(2)
    assert shortfall(h100, parts_of(tokens="5T")[1]).peak == pytest.approx(3)
    same = shortfall(h100, h100)
    assert (same.peak, same.faster, set(same.over.values())) == (1, 1, {0})


def test_every_plan_is_told_and_drawn_or_said_to_be_unknown() -> None:
    plans = compare_plans([*examples(), entry_of("no room", {"count": "1"}), entry_of("no price", {"within": "$1"})])
    parts = [time_parts(plan) for plan in plans]
    lines = why_not_faster(plans, parts, 0)
    says(lines[2], "70B on B200", "2.27 times the dense peak of 70B on H100", "times as fast", "more")
    says(lines[3], "no room", "unknown. No layout divides its accelerators and fits.")
    assert len(lines) == len(plans)
    figure = parts_bars(plans, parts, LIGHT)
    assert {len(bar["x"]) for bar in figure["data"]} == {len(known_parts(parts))}
    without = why_not_faster(plans, ["unknown.", *parts[1:]], 0)
    says(without[1], "matrix products take")


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 23), st.integers(0, 24))
def test_the_mean_of_a_tariff_lies_between_its_prices(usual: float, other: float, first: int, last: int) -> None:
    if first == last:
        return
    mean = mean_of_tariff(f"{usual:.6f}, {other:.6f} from {first} to {last}")
    assert min(usual, other) - 1e-5 <= mean <= max(usual, other) + 1e-5
    hours = (last - first) % 24 or 24
    assert mean == pytest.approx((hours * other + (24 - hours) * usual) / 24, abs=1e-5)


def test_a_tariff_that_cannot_be_read_is_refused_with_an_example() -> None:
    assert mean_of_tariff(TARIFF) == pytest.approx(0.09)
    assert mean_of_tariff("$0.06; 0.12 8-20h") == pytest.approx(0.09)
    for text in ("cheap", "0.06, 0.12", "0.06, 0.12 from 8 to 99", "0.1, 0.2 8-12, 0.3 11-13", "0.1, 0.2 8-8"):
        with pytest.raises(QuantityError, match="For example"):
            mean_of_tariff(text)
