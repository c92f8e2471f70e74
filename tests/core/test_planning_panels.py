"""Behind the panels: where attention overtakes, what moves the answer, counts, the split and the roofline in words."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from core.budget.compute_optimal import LAWS, compute_optimal
from core.hardware.accelerators import find
from core.models.attention_share import attention_over_rest, growth
from core.models.catalog import model_named, nearest_dense
from core.models.flops import conventions, flops_per_token
from core.models.layer_count import explain_count, scale_of
from core.models.parameters import parameters
from core.models.spec import SlidingWindow
from core.planning.evaluation import answer
from core.planning.form.plan_form import plan_from
from core.planning.nearest_runs import similar_runs
from core.planning.plan import FINDS, TYPED
from core.planning.sensitivity import plan_as_answered, swings
from core.runs.conventions import which_mfu
from core.runs.utilisation import evidence
from core.step_time.layer_roofline import layer_roofline
from core.units import format_quantity, significant
from core.views.common.palette import LIGHT
from core.views.compute_optimal import text as compute_optimal_text
from core.views.flops import text as flops_text
from core.views.plan.charts import answer_strip
from core.views.roofline import text as roofline_text
from core.views.runs import text as runs_text
from core.views.runs.charts import RunPoint, evidence_scatter
from core.views.sensitivity import text as sensitivity_text
from core.views.sensitivity.charts import tornado
from core.wording import percent
from tests.core.sentence_facts import says
from tests.every import every

H100 = find("H100 SXM")
GPT3 = model_named("GPT-3 175B")


# ------------------------------------------------------------------------------------------ where attention overtakes


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
    assert "6H = 73,728" in flops_text.growing(g)


def test_windows_everywhere_never_let_attention_overtake() -> None:
    narrow = replace(GPT3.spec, window=SlidingWindow(1024))
    assert math.isinf(growth(narrow, 2048, "full").crossing)


# ------------------------------------------------------------------------------------------ pictures


@every("most", [1, 12, 30])
@every("find_", FINDS)
def test_strip_puts_every_run_and_the_plan_in_their_places(find_: str, most: int) -> None:
    a = answer(plan_from({"find": find_, "within": "300 days"}))
    peers = similar_runs(a, most)
    figure = answer_strip(a, peers, LIGHT)
    (dots,) = figure["data"]
    assert len(dots["x"]) == len(peers) == most
    assert bool(len(figure["layout"]["yaxis"]["ticktext"])) == (most <= 18), "many share one strip"
    reach = figure["layout"]["xaxis"]["range"][1]
    assert 0 < float(np.max(dots["x"])) <= reach
    go.Figure(figure)
    if a.plan.expects_mfu:
        band = figure["layout"]["shapes"][0]
        drawn, array = (np.array(ends) for ends in ((band["x0"], band["x1"]), (a.result.low, a.result.high)))
        assert drawn / drawn[0] == pytest.approx(array / array[0]), "the band is the range of the sentence"
        assert drawn[0] / dots["x"][0] == pytest.approx(a.result.low / max(peer.value for peer in peers))


def test_evidence_scatter_shows_all_and_yours() -> None:
    points = [RunPoint(r.run.model, r.run.params, r.utilisation, runs_text.pointed(r)) for r in evidence("whole")]
    figure = evidence_scatter([*points, RunPoint("yours", 7e10, 0.4, "", here=True)], LIGHT)
    assert sum(len(trace["x"]) for trace in figure["data"]) == len(points) + 1
    assert all("<br>" in text for text in figure["data"][0]["hovertext"])
    go.Figure(figure)


TYPED_PLAN = plan_from({"mfu": "35-45%", "price": "2-3"})


def test_every_end_of_the_tornado_is_what_one_gets_by_typing_it() -> None:
    plan = replace(TYPED_PLAN, mfu_kind="steady steps")
    by_name = {swing.input: swing for swing in swings(plan, 0.2)}
    assert set(by_name) == {"tokens", "parameters", "accelerators", "MFU", "price"}
    for name in ("tokens", "parameters", "accelerators"):
        for end, days, dollars in zip((0.8, 1.2), by_name[name].days, by_name[name].dollars, strict=True):
            typed = answer(replace(plan, **{name: getattr(plan, name) * end})).middle
            assert (typed.days, typed.dollars) == pytest.approx((days, dollars))
    assert by_name["price"].days[0] == by_name["price"].days[1]
    assert by_name["price"].dollars[1] == pytest.approx(1.5 * by_name["price"].dollars[0])
    mfu, seen = by_name["MFU"], answer(plan)
    assert mfu.low <= min(seen.range_of("mfu").low, seen.expected.low)
    assert mfu.days[0] / mfu.days[1] == pytest.approx(mfu.high / mfu.low)
    moved = [swing.moved(dollars=False) for swing in swings(plan, 0.2)]
    assert moved == sorted(moved, reverse=True)


@pytest.mark.parametrize("find_", FINDS)
def test_what_was_found_moves_like_what_was_typed(find_: str) -> None:
    a = answer(plan_from({"find": find_, "within": "300 days", "n": "8B", "tokens": "3T"}))
    again = answer(plan_as_answered(a)).middle
    assert (again.days, again.accelerators, again.tokens) == pytest.approx(
        (a.middle.days, a.middle.accelerators, a.middle.tokens)
    )


def test_tornado_has_the_widest_on_top_and_the_plan_inside() -> None:
    a = answer(TYPED_PLAN)
    for dollars in (False, True):
        rows = sensitivity_text.named(swings(TYPED_PLAN, 0.2), dollars=dollars)
        here = a.middle.dollars if dollars else a.middle.days
        figure = tornado(rows, here, dollars, LIGHT)
        (bars,) = figure["data"]
        widths = np.asarray(bars["x"])
        assert np.all(np.diff(widths) >= -1e-12)  # plotly draws the last one on top
        assert bars["y"][-1] == rows[0].name
        for row in rows:
            low, high = sorted(row.swing.dollars if dollars else row.swing.days)
            assert low <= here * (1 + 1e-9)
            assert high >= here * (1 - 1e-9)
        says(sensitivity_text.moved(rows, dollars=dollars).lower(), rows[0].name.lower(), rows[0].span)
    assert sensitivity_text.moved((), dollars=False)


def test_more_accelerators_move_no_dollars_and_a_mixture_has_one_size() -> None:
    """Twice the accelerators for half the time cost the same at one MFU, but for rounding of the last digits."""
    by_dollars = sensitivity_text.named(swings(TYPED_PLAN, 0.2), dollars=True)
    assert "accelerators" not in {dollar.swing.input for dollar in by_dollars}
    mixture = swings(replace(TYPED_PLAN, model="Mixtral 8x7B"), 0.2)
    assert "parameters" not in {swing.input for swing in mixture}
    assert "price" not in {swing.input for swing in swings(replace(TYPED_PLAN, prices=(2.0, 2.0)), 0.2)}


# ------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(("name", "seq_len"), [("Llama 3 70B", 8192), ("DeepSeek-V3", 4096), ("GPT-3 175B", 2048)])
def test_the_layers_shares_hold_neither_head_nor_update(name: str, seq_len: int) -> None:
    operations = layer_roofline(model_named(name).spec, H100, seq_len=seq_len, tokens=8192.0)
    inside = [o for o in operations if o.in_layer and o.phase != "update"]
    seconds = sum(float(o.placed.seconds) for o in inside)
    matmul = sum(float(o.placed.seconds) for o in inside if o.kind == "matmul") / seconds
    update = sum(float(o.placed.seconds) for o in operations if o.in_layer and o.phase == "update") / seconds
    head = sum(float(o.placed.seconds) for o in operations if not o.in_layer) / seconds
    text = roofline_text.layered(operations, H100.name, 8192)
    says(text, percent(matmul))
    says(text, percent(update), "once per step")
    says(text, f"{significant(head, 3)} such layers", "once in the model")
    rows = roofline_text.operations(operations)
    assert sum(float(row[6].split()[0]) for row in rows if row[6].endswith("%") and "under" not in row[6]) < 100.1


def test_a_stand_ins_counts_are_scaled_to_the_typed_parameters() -> None:
    """70B typed stands on the layers of another model: every figure per token is scaled to 70B."""
    a = answer(plan_from({"model": TYPED, "n": "70B"}))
    spec, m = nearest_dense(70e9).spec, a.middle
    assert a.shape.spec == spec
    scale = scale_of(spec, m.parameters)
    assert scale == m.parameters / parameters(spec).active != 1
    causal = next(way for way in conventions(spec, 8192) if way.id == "causal")
    text = format_quantity(scale * causal.per_token, "flop")
    says(flops_text.where(flops_per_token(spec, 8192, "causal"), scale), text)
    cluster = {"accelerators": 1024, "peak": a.peak, "tokens_per_second": 6e5}
    scored, unscaled = (which_mfu(spec, 8192, scale=by, **cluster) for by in (scale, 1.0))
    assert {row[1] for row in flops_text.scores(scored)} >= {text, format_quantity(6 * 70e9, "flop")}
    for item, other in zip(scored, unscaled, strict=True):
        assert item.utilisation == pytest.approx(scale * other.utilisation)
        assert item.per_rule == other.per_rule
    steps = explain_count(spec, 8192, "causal", params=m.parameters, tokens=m.tokens)
    assert steps[0].value == pytest.approx(scale * causal.per_token * m.tokens, rel=1e-12)
    assert sum(step.value for step in steps[2:]) * 3 == pytest.approx(causal.per_token, rel=1e-14)


def test_every_split_and_the_plan_have_their_loss_by_either_law() -> None:
    a = answer(TYPED_PLAN)
    allocations = compute_optimal(6 * 70e9 * 15e12)
    rows = compute_optimal_text.splits(allocations, a)
    assert {len(row) for row in rows} == {len(compute_optimal_text.SPLITS)}
    for column, law in enumerate(LAWS, start=4):
        assert rows[-1][column] == f"{law.loss(70e9, 15e12):.4f}"
        own = next(row for row, split in zip(rows, allocations, strict=False) if split.id == law.id)
        assert float(own[column]) == min(float(row[column]) for row in rows)
    assert [e.value for e in compute_optimal_text.explain_losses(a)] == [law.loss(70e9, 15e12) for law in LAWS]
    says(compute_optimal_text.trained(a), "214", "10.7 times")
