"""Behind the panels: where attention overtakes, what moves the answer, the roofline's words, the table to take away."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from core.planning.answer.outlook import FINDS, Find, Outlook, Published, ask_outlook, parse_within, peers_of
from core.planning.evidence.comparable import predictions, score

from core.hardware.accelerators import find
from core.models.catalog import model_named
from core.models.flops import flops_per_token
from core.models.linear import TwoLayers, count_with_torch
from core.models.spec import SlidingWindow
from core.palette import LIGHT
from core.planning.answer.figures import Point, answer_strip, evidence_scatter
from core.planning.counting import words as words_panels
from core.planning.counting.figures import flops_treemap, sequence_sweep
from core.planning.counting.growth import attention_over_rest, growth
from core.planning.evidence import words as words_runs
from core.planning.evidence.rows import evidence
from core.planning.layer import words as words_layer
from core.planning.layer.figures import loss_curves
from core.planning.layer.operations import layer_roofline
from core.planning.moves import words as words_moves
from core.planning.moves.figures import days_around, iso_days_figure, tornado
from core.planning.moves.sensitivity import iso_days
from core.planning.split.scaling import compute_optimal

H100 = find("H100 SXM")
GPT3 = model_named("GPT-3 175B")


def asked(find_: Find = "time", **changes: object) -> tuple[Outlook, Published]:
    given: dict[str, object] = {"parameters": 70e9, "tokens": 15e12, "accelerators": 1024.0}
    return ask_outlook(
        find_,
        **{**given, **changes},  # type: ignore[arg-type]
        device=H100,
        dtype="bf16",
        experts=False,
        mfu=None,
        prices=(3.0, 3.5),
        limits=parse_within("90 days"),
    )


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
    assert "6H = 73,728" in words_panels.growing(g)


def test_windows_everywhere_never_let_attention_overtake() -> None:
    narrow = replace(GPT3.spec, window=SlidingWindow(1024))
    assert math.isinf(growth(narrow, 2048, "full").crossing)
    assert "never overtake" in words_panels.growing(growth(narrow, 2048, "full"))


# ------------------------------------------------------------------------------------------ pictures


@pytest.mark.parametrize("find_", FINDS)
def test_strip_puts_every_run_and_the_plan_in_their_places(find_: Find) -> None:
    o, seen = asked(find_)
    figure = answer_strip(o, peers_of(o, seen), seen.mfu, LIGHT)
    (dots,) = figure["data"]
    assert len(dots["x"]) == len(seen.peers.rows)
    reach = figure["layout"]["xaxis"]["range"][1]
    assert 0 < float(np.max(dots["x"])) <= reach
    go.Figure(figure)
    said = words_runs.comparables(o, seen, published=True)
    assert f"{len(dots['x'])} published ones" in said


def test_many_runs_share_one_strip() -> None:
    o, seen = asked(parameters=405e9)
    assert len(seen.peers.rows) > 18
    figure = answer_strip(o, peers_of(o, seen), seen.mfu, LIGHT)
    assert not figure["layout"]["yaxis"]["ticktext"]
    assert figure["layout"]["height"] < 400


@pytest.mark.parametrize("measure", ["MFU", "hours"])
def test_evidence_scatter_shows_all_and_yours(measure: str) -> None:
    points = [Point(r.run.model, r.run.params, r.utilisation, words_runs.pointed(r, "")) for r in evidence("whole")]
    figure = evidence_scatter([*points, Point("yours", 7e10, 0.4, "", here=True)], measure, LIGHT)  # type: ignore[arg-type]
    assert sum(len(trace["x"]) for trace in figure["data"]) == len(points) + 1
    assert all("<br>" in text for text in figure["data"][0]["text"])
    go.Figure(figure)


@pytest.mark.parametrize("attention", ["causal", "full"])
@pytest.mark.parametrize("name", ["GPT-2 124M", "DeepSeek-V3", "Gemma 3 1B"])
def test_pictures_of_counts_are_plotly_figures(name: str, attention: str) -> None:
    spec = model_named(name).spec
    go.Figure(flops_treemap(flops_per_token(spec, 4096, attention), LIGHT))  # type: ignore[arg-type]
    figure = sequence_sweep(growth(spec, 4096, attention), LIGHT)  # type: ignore[arg-type]
    assert any("yours" in note["text"] for note in figure["layout"]["annotations"])
    go.Figure(figure)


def test_tornado_has_the_widest_on_top_and_the_plan_inside() -> None:
    o, seen = asked()
    named = words_moves.swings(o, seen, model_named("Llama 3 70B").spec, 8192, 0.2, typed=False)
    for dollars in (False, True):
        rows = words_moves.ordered(named, dollars=dollars)
        here = o.usd.mid if dollars else o.over("days").mid
        figure = tornado(rows, here, dollars, LIGHT)
        (bars,) = figure["data"]
        widths = np.asarray(bars["x"])
        assert np.all(np.diff(widths) >= -1e-12)  # plotly draws the last one on top
        assert bars["y"][-1] == "MFU"
        go.Figure(figure)
        assert "**MFU** moves the answer most" in words_moves.moving(named, dollars=dollars)
    assert {n.name for n in named} >= {"MFU", "tokens", "parameters", "accelerators at work", "price per hour"}


def test_only_a_typed_mfu_depends_on_what_counts_as_work() -> None:
    o, seen = asked()
    spec = model_named("Llama 3 70B").spec
    names = [{one.name for one in words_moves.swings(o, seen, spec, 8192, 0.2, typed=typed)} for typed in (False, True)]
    assert names[1] - names[0] == {"what counts as work"}


def test_more_accelerators_move_no_dollars() -> None:
    """Twice the accelerators for half the time cost the same, but for rounding of the last digits."""
    o, seen = asked()
    named = words_moves.swings(o, seen, model_named("Llama 3 70B").spec, 8192, 0.2, typed=False)
    (count,) = (one for one in named if one.name == "accelerators at work")
    noisy = replace(count, swing=replace(count.swing, dollars=(21.7e6, 21.7e6 * (1 + 1e-12))))
    assert words_moves.ordered((noisy,), dollars=True) == ()
    assert noisy in words_moves.ordered((noisy,), dollars=False)
    assert "accelerators at work" not in {one.name for one in words_moves.ordered(named, dollars=True)}


@pytest.mark.parametrize("days", [1e-9, 0.5, 30, 280, 1e9])
def test_round_durations_around_the_plan(days: float) -> None:
    around = days_around(days)
    assert len(around) == 5
    assert list(around) == sorted(around)


def test_equal_days_pass_through_the_plan() -> None:
    o, _ = asked()
    plan = words_moves.assumed(o)
    days = o.over("days").mid
    curves = iso_days(plan, (days,), np.array([plan.tokens]))
    assert curves.accelerators[0, 0] == pytest.approx(plan.accelerators)
    wide = iso_days(plan, days_around(days), np.geomspace(plan.tokens / 30, plan.tokens * 30, 25))
    go.Figure(iso_days_figure(wide, plan.tokens, plan.accelerators, LIGHT))


def test_loss_curves_have_their_bottom_at_the_best_split() -> None:
    flop = 6 * 70e9 * 1.4e12
    figure = loss_curves(flop, 70e9, compute_optimal(flop), LIGHT)
    for line in (trace for trace in figure["data"] if trace["mode"] == "lines"):
        best = float(line["x"][int(np.argmin(line["y"]))])
        assert min(abs(math.log(best / s.params)) for s in compute_optimal(flop)) < 0.15
    go.Figure(figure)


# ------------------------------------------------------------------------------------------ words


def test_claims_c15_and_c16_in_words() -> None:
    found = layer_roofline(GPT3.spec, H100, seq_len=2048, tokens=2048.0, fused_attention=False)
    said = words_layer.layered(found, H100.name, 2048)
    assert "matrix products are **99.97 %** of a layer’s FLOPs" in said
    rows = {row[0]: row for row in words_layer.operations(found)}
    assert rows["Feed-forward, in"][4] == "compute"
    for name in ("Norms", "Softmax", "Cross-entropy"):
        assert rows[name][4] == "**memory**"
    alone = words_layer.layered(layer_roofline(GPT3.spec, H100, seq_len=2048, tokens=1.0), H100.name, 1)
    assert "wait for memory here:** q k v" in alone


def test_score_and_predictions_in_words() -> None:
    by_model, by_lab = score(), score("lab")
    said = words_runs.scored(by_model, by_lab)
    for share in (by_model.error, by_model.inside, by_lab.error, by_lab.inside):
        assert f"{share * 100:.1f} %" in said
    rows = words_runs.predicted(predictions())
    assert len(rows) == score().runs
    assert all(len(row) == len(words_runs.PREDICTED) for row in rows)


def test_two_layers_in_words() -> None:
    plain, with_x = TwoLayers(1024, 256, 64), TwoLayers(1024, 256, 64, x_gradient=True)
    assert "**73.3 %** of 6ND" in words_panels.two_layers(plain)
    assert "exactly **6 FLOPs per weight and row**" in words_panels.two_layers(with_x)
    assert words_panels.per_weight(plain)[0][-1] == "4"
    assert "counts the same" in words_panels.torch_says(plain, count_with_torch(plain))
    assert "counts differently" in words_panels.torch_says(with_x, count_with_torch(plain))
