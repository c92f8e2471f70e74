"""Behind the panels: where attention overtakes, what moves the answer, and counts of a stand-in."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from core.models.attention_share import attention_over_rest, growth
from core.models.catalog import model_named
from core.models.parameters import parameters
from core.models.spec import SlidingWindow
from core.planning.estimate import estimate
from core.planning.form.plan_form import plan_from
from core.planning.layout import spec_of
from core.planning.plan import FINDS, TYPED
from core.planning.sensitivity import plan_as_answered, swings
from core.views.sensitivity import text as sensitivity_text

GPT3 = model_named("GPT-3 175B")


def test_claim_c9_compare_the_sequence_with_6h() -> None:
    """In a GPT without its head, attention's full square meets the rest at 6H exactly; a causal count at 12H."""
    headless = replace(GPT3.spec, vocab=1)
    assert growth(headless, 2048, "full").crossing == pytest.approx(6 * GPT3.spec.hidden, rel=1e-4)
    assert growth(headless, 2048, "causal").crossing == pytest.approx(12 * GPT3.spec.hidden, rel=1e-4)
    assert growth(GPT3.spec, 2048, "full").six_h == 73_728
    assert attention_over_rest(6 * 12288, 12288) == 1


def test_growth_is_level_in_weights_and_linear_in_attention() -> None:
    g = growth(GPT3.spec, 2048, "full")
    assert np.ptp(g.weights) == 0
    np.testing.assert_allclose(g.squares / g.lengths, g.squares[0] / g.lengths[0])
    assert g.share == pytest.approx(0.027, abs=0.002)


def test_windows_everywhere_never_let_attention_overtake() -> None:
    narrow = replace(GPT3.spec, window=SlidingWindow(1024))
    assert math.isinf(growth(narrow, 2048, "full").crossing)


TYPED_PLAN = plan_from({"mfu": "35-45%", "price": "2-3"})


def test_every_end_of_the_tornado_is_what_one_gets_by_typing_it() -> None:
    plan = replace(TYPED_PLAN, mfu_kind="steady steps")
    by_name = {swing.input: swing for swing in swings(plan, 0.2)}
    assert set(by_name) == {"tokens", "parameters", "accelerators", "MFU", "price"}
    for name in ("tokens", "parameters", "accelerators"):
        for end, days, dollars in zip((0.8, 1.2), by_name[name].days, by_name[name].dollars, strict=True):
            typed = estimate(replace(plan, **{name: getattr(plan, name) * end})).middle
            assert (typed.days, typed.dollars) == pytest.approx((days, dollars))
    assert by_name["price"].days[0] == by_name["price"].days[1]
    assert by_name["price"].dollars[1] == pytest.approx(1.5 * by_name["price"].dollars[0])
    mfu, seen = by_name["MFU"], estimate(plan)
    assert mfu.low <= min(seen.range_of("mfu").low, seen.expected.low)
    assert mfu.days[0] / mfu.days[1] == pytest.approx(mfu.high / mfu.low)
    moved = [swing.moved(dollars=False) for swing in swings(plan, 0.2)]
    assert moved == sorted(moved, reverse=True)


@pytest.mark.parametrize("find_", FINDS)
def test_what_was_found_moves_like_what_was_typed(find_: str) -> None:
    a = estimate(plan_from({"find": find_, "within": "300 days", "n": "8B", "tokens": "3T"}))
    again = estimate(plan_as_answered(a)).middle
    assert (again.days, again.accelerators, again.tokens) == pytest.approx(
        (a.middle.days, a.middle.accelerators, a.middle.tokens)
    )


def test_more_accelerators_move_no_dollars_and_a_mixture_has_one_size() -> None:
    """Twice the accelerators for half the time cost the same at one MFU, but for rounding of the last digits."""
    by_dollars = sensitivity_text.named(swings(TYPED_PLAN, 0.2), dollars=True)
    assert "accelerators" not in {dollar.swing.input for dollar in by_dollars}
    mixture = swings(replace(TYPED_PLAN, model="Mixtral 8x7B"), 0.2)
    assert "parameters" not in {swing.input for swing in mixture}
    assert "price" not in {swing.input for swing in swings(replace(TYPED_PLAN, prices=(2.0, 2.0)), 0.2)}


def test_a_typed_size_has_the_layers_that_its_memory_and_steps_have() -> None:
    a = estimate(plan_from({"model": TYPED, "n": "70B"}))
    assert a.shape.spec == spec_of(a.plan, 70e9)[0]
    assert parameters(a.shape.spec).active == pytest.approx(70e9, rel=1e-6)
