"""What Parallel plan shows, without the page: fields, the pipeline in time, places, pictures, words."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.formula import explain_run
from core.number_text import QuantityError
from core.planning.estimate import estimate, timed_estimate
from core.planning.form.plan_form import PLAN_FORM, plan_from, plan_of
from core.planning.layout import evaluate_layout, resolve_layout, search_request, stages, traffic
from core.planning.memory_estimate import memory_estimate
from core.planning.memory_fixes import fewest_accelerators, fixes
from core.planning.plan import parse_batch, parse_range
from core.planning.presets import SEARCH_PRESETS
from core.planning.sensitivity import cluster_results, layout_texts, made_own
from core.search.fastest import searched
from core.search.neighbours import neighbours
from core.search.placement import groups, timeline, timeline_of
from core.search.request import LayoutResult, Range, SearchRequest, SearchResult, explain
from core.step_time.calibration.fit import kept
from core.training.layout import Layout, LayoutError
from core.views.common.palette import LIGHT
from core.views.search import text as search_text
from core.views.search import text_evidence, text_step
from core.views.search.charts import cluster_sizes, space
from core.views.search.charts_evidence import predicted_against_measured
from core.views.search.charts_step import pipeline, shown_parts, waterfall
from core.views.search.export import as_csv
from core.views.search.names import layout_label

SMALL = {"model": "Llama 3.1 8B", "count": "16", "gb": "128", "seq": "4,096", "tokens": "1T"}


def query(**texts: str) -> SearchRequest:
    return search_request(plan_from({**SMALL, **texts}))


def best(**texts: str) -> LayoutResult:
    result = searched(query(**texts)).best
    assert result is not None
    return result


# ------------------------------------------------------------------------------------------ what is asked


@pytest.mark.parametrize(
    ("text", "seq_len", "sequences"), [("16M tokens", 8192, 1953.125), ("2,048", 8192, 2048), ("100 tokens", 512, 1)]
)
def test_a_batch_is_a_target_in_sequences(text: str, seq_len: int, sequences: float) -> None:
    assert parse_batch(text).target(seq_len) == sequences


RANGES = {"": None, "any": None, "8": Range(8, 8), "up to 8": Range(1, 8), "8-2": Range(2, 8), "2 to 4": Range(2, 4)}


@pytest.mark.parametrize(("text", "allowed"), RANGES.items())
def test_ranges_are_read(text: str, allowed: Range | None) -> None:
    assert parse_range(text) == allowed
    assert allowed is None or parse_range(str(allowed)) == allowed


@pytest.mark.parametrize("text", ["0", "x", "1-2-3", "8-", "-8", "up to", "1e99"])
def test_what_is_no_range_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError, match=r"up to 8|out of range"):
        parse_range(text)


@pytest.mark.parametrize("text", ["", "tokens", "1.5", "0", "16M tokens a step", "1e30 tokens"])
def test_what_is_no_batch_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError, match=r"16M tokens|out of range"):
        parse_batch(text)


def test_a_search_depends_on_nothing_but_its_question() -> None:
    """Tokens, price and an own layout leave the question as it is, so that what was found is found again."""
    same = (plan_from({**SMALL, **other}) for other in ({"tokens": "9T"}, {"price": "7"}, {"tp": "2"}, {"mfu": "40%"}))
    assert {search_request(plan) for plan in same} == {query()}
    assert searched(query()) is searched(search_request(plan_from({**SMALL, "within": "9 days"})))
    for other in ({"count": "32"}, {"gb": "64"}, {"seq": "2048"}, {"ktp": "2"}, {"opt": "SGD"}, {"frag": "9%"}):
        assert query(**other) != query()


@pytest.mark.parametrize(
    ("texts", "keeps"),
    [
        ({"ktp": "2"}, lambda item: item.tensor == 2),
        ({"kpp": "2-4"}, lambda item: (item.pipeline >= 2) & (item.pipeline <= 4)),
        ({"kmbs": "up to 2"}, lambda item: item.micro_batch <= 2),
        ({"kzero": "3"}, lambda item: item.zero == 3),
        ({"krc": "full"}, lambda item: item.recompute == 2),
        ({}, lambda item: item.offload == 0),
    ],
)
def test_every_plan_keeps_to_what_it_has_to(texts: dict[str, str], keeps: object) -> None:
    result = searched(query(**texts))
    assert 0 < result.fitting <= result.count <= searched(query()).count
    assert callable(keeps)
    assert np.all(keeps(result.plans.layout))


def test_a_plan_found_is_the_same_typed() -> None:
    result = best()
    typed = plan_of(PLAN_FORM.parse({**SMALL, **layout_texts(result.layout)}))
    again = timed_estimate(typed).step
    assert again.layout == result.layout
    assert again.seconds == pytest.approx(result.seconds, rel=1e-9)
    assert float(again.memory.total) == pytest.approx(float(result.memory.total), rel=1e-9)


@pytest.mark.parametrize(
    "texts", [{}, {"loss": "fused", "chunks": "4"}, {"impl": "Hugging Face SDPA"}, {"ctx": "0 GB", "frag": "9%"}]
)
def test_a_plan_found_holds_what_training_memory_counts(texts: dict[str, str]) -> None:
    result = best(**texts)
    plan = plan_from({**SMALL, **texts, **layout_texts(result.layout)})
    assert memory_estimate(plan).layout == result.layout
    assert memory_estimate(plan).total == pytest.approx(float(result.memory.total), rel=1e-9)


def test_what_does_not_divide_is_idle_or_filled_up() -> None:
    layout = resolve_layout(Layout(tensor=1, micro_batch=3, micro_batches=0), 16, 128)
    assert (layout.data, layout.micro_batches) == (16, 3)
    layout = resolve_layout(Layout(tensor=3, micro_batch=4, micro_batches=0), 16, 128)
    assert (layout.data, layout.accelerators, layout.micro_batches) == (5, 15, 7)
    assert resolve_layout(Layout(micro_batch=16, micro_batches=0), 64, 128).data == 8
    with pytest.raises(LayoutError, match="128"):
        resolve_layout(Layout(micro_batch=256, micro_batches=0), 16, 128)
    with pytest.raises(LayoutError, match="32 accelerators"):
        resolve_layout(Layout(tensor=8, pipeline=4), 16, 128)


# ------------------------------------------------------------------------------------------ the pipeline in time


@given(
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(1, 5),
    st.floats(0.1, 3),
    st.floats(0.1, 6),
    st.floats(0, 0.05),
)
def test_the_pipeline_keeps_its_order(
    stages: int, chunks: int, rounds: int, forward: float, backward: float, transfer: float
) -> None:
    """No stage does two things at once, nothing starts before what it needs, and without transfers nothing waits more
    than the formula says."""
    chunks = chunks if stages > 1 else 1
    many = rounds * stages
    line = timeline(stages, chunks, many, forward, backward, transfer)
    assert len(line.start) == 2 * stages * chunks * many
    ends = {
        (bool(b), int(c) * stages + int(s), int(m)): float(e)
        for b, c, s, m, e in zip(line.backward, line.chunk, line.stage, line.micro_batch, line.end, strict=True)
    }
    last = stages * chunks - 1
    for b, c, s, m, start in zip(
        line.backward.tolist(), line.chunk, line.stage, line.micro_batch, line.start, strict=True
    ):
        place = int(c) * stages + int(s)
        needs = (b, place - 1, int(m)) if not b else (b, place + 1, int(m)) if place < last else (False, last, int(m))
        assert needs not in ends or ends[needs] <= start + 1e-9
    for stage in range(stages):
        at = line.stage == stage
        order = np.argsort(line.start[at])
        assert np.all(line.end[at][order][:-1] <= line.start[at][order][1:] + 1e-9)
    ideal = (many * chunks + stages - 1) * (forward + backward)
    if transfer == 0:
        assert line.length == pytest.approx(ideal)
    assert line.length >= ideal - 1e-9


def test_bubble_text_names_the_micro_batches_drawn_of_a_long_step() -> None:
    result = best()
    layout = replace(result.layout, pipeline=4, interleave=2, micro_batches=4096)
    line = timeline_of(layout, result.step)
    assert line.micro_batches < 4096
    assert line.micro_batches % 4 == 0
    said = text_step.bubble_text(layout, line, result.step)
    assert (said.id, said.values["drawn"]) == ("search.pipeline.some", line.micro_batches)
    layout = Layout(micro_batches=4)
    said = text_step.bubble_text(layout, timeline_of(layout, result.step), result.step)
    assert (said.id, said.values["micro_batches"]) == ("search.pipeline.none", 4)


# ------------------------------------------------------------------------------------------ places


def test_groups_lie_on_the_links_that_their_strides_allow() -> None:
    layout = Layout(tensor=8, pipeline=4, data=4, micro_batches=8)
    result = best()
    sent = traffic(query(), result.layout)
    lain = {group.kind: group for group in groups(layout, result.step, sent, 8)}
    assert lain["tensor"].inside
    assert (lain["data"].nodes, lain["pipeline"].nodes) == (4, 4)
    narrow = {group.kind: group for group in groups(replace(layout, tensor=2, data=8), result.step, sent, 8)}
    assert (narrow["data"].stride, narrow["data"].nodes) == (2, 2)
    assert not groups(Layout(), result.step, sent, 8)


# ------------------------------------------------------------------------------------------ pictures and words


@pytest.fixture(scope="module")
def result() -> SearchResult:
    return searched(query())


def test_pictures_are_figures(result: SearchResult) -> None:
    here = best()
    layout = here.layout
    deep = replace(layout, pipeline=2, data=8, zero=1, micro_batch=1, micro_batches=16, tensor=1, context=1)
    sized = cluster_results(plan_from(SMALL))
    rows = kept()
    drawn = (
        space(result.plans, result.pareto, here, here.usable, LIGHT),
        waterfall(here.step, LIGHT, low=here.low, high=here.high),
        pipeline(timeline_of(deep, here.step), LIGHT),
        cluster_sizes(sized, 16, 90.0, LIGHT),
        cluster_sizes(sized, 16, math.nan, LIGHT),
        predicted_against_measured(*text_evidence.points(rows), LIGHT),
    )
    for figure in drawn:
        go.Figure(figure)
    assert any(f"{here.usable / 2**30:.1f} GiB" in note["text"] for note in drawn[0]["layout"]["annotations"])


def test_a_step_is_the_sum_of_what_is_drawn() -> None:
    here = best()
    assert sum(seconds for _, seconds in shown_parts(here.step)) == pytest.approx(here.seconds, rel=1e-3)
    drawn = waterfall(here.step, LIGHT, low=here.low, high=here.high)["data"][0]
    ends = np.asarray(drawn["base"]) + np.asarray(drawn["x"])
    assert float(ends.max()) == pytest.approx(here.seconds, rel=1e-3)


def test_the_fastest_are_drawn_evenly_and_none_beyond_what_is_asked(result: SearchResult) -> None:
    plans = result.plans
    some = plans.fastest(1.3, 50)
    assert len(some.seconds) == 50
    assert some.pace[0] == plans.pace[0]
    assert some.pace[-1] <= 1.3 * plans.pace[0] < plans.pace[np.searchsorted(plans.pace, some.pace[-1], "right")]
    whole = plans.fastest(1.3, len(plans.seconds))
    assert (np.diff(whole.pace) >= 0).all()
    assert len(whole.seconds) == np.count_nonzero(plans.pace <= 1.3 * plans.pace[0])
    assert [some.at(i) for i in (0, 49)] == [whole.at(i) for i in (0, len(whole.seconds) - 1)]
    assert len(as_csv(some).splitlines()) == len(some.seconds) + 1


def test_where_nothing_fits_the_nearest_is_said_and_what_is_offered_fits() -> None:
    texts = {**SMALL, "model": "Llama 3.1 405B", "count": "8"}
    plan = plan_from(texts)
    result = searched(search_request(plan))
    assert result.best is None
    assert result.nearest is not None
    said = search_text.does_not_fit(plan, search_request(plan), result)
    assert said.values["needed"] - said.values["capacity"] == pytest.approx(-result.nearest.spare)
    h = memory_estimate(plan)
    more = fewest_accelerators(h)
    assert more
    assert memory_estimate(plan_from({**texts, "count": f"{more}"})).room >= 0
    for fix in fixes(h):
        assert memory_estimate(plan_from({**texts, **made_own(plan, h.layout), **fix.texts})).fits == "fits"


@pytest.mark.parametrize("texts", [{"gb": "10", "kmbs": "8"}, {"ktp": "7"}])
def test_where_nothing_keeps_to_what_it_has_to_it_is_said(texts: dict[str, str]) -> None:
    plan = plan_from({**SMALL, **texts})
    result = searched(search_request(plan))
    assert (result.count, result.nearest) == (0, None)
    assert search_text.does_not_fit(plan, search_request(plan), result).id == "search.headline.no_layout"


def test_neighbours_say_what_changes(result: SearchResult) -> None:
    here = best()
    around = neighbours(here, query())
    assert len(text_step.neighbor_rows(here, around)) == len(around) > 5
    fits = [neighbour.found.pace for neighbour in around if neighbour.found and neighbour.fits]
    assert min(fits) >= here.pace * 0.99, "a neighbour is better by more than the space is coarse"


def test_a_faster_change_that_does_not_fit_is_not_called_better() -> None:
    """From a plan beside the best the way back is named; once whatever is faster no longer fits, nothing is."""
    where = query()
    beside = [neighbour.found for neighbour in neighbours(best(), where) if neighbour.found and neighbour.fits]
    slower = max(beside, key=lambda result: result.seconds)
    around = neighbours(slower, where)
    faster = [
        neighbour
        for neighbour in around
        if neighbour.fits and neighbour.found and neighbour.found.seconds < slower.seconds
    ]
    assert faster
    assert text_step.neighbors_text(slower, around).id == "search.near.faster"
    tight = [
        replace(neighbour, found=replace(neighbour.found, usable=0.0), fits=False)
        if neighbour in faster and neighbour.found
        else neighbour
        for neighbour in around
    ]
    assert text_step.neighbors_text(slower, tight).id == "search.near.slower"
    rows = text_step.neighbor_rows(slower, [one for one in tight if one.found and not one.fits])
    assert any(row[2].startswith("−") for row in rows), "it is still listed as faster"


def test_a_change_that_leaves_less_free_than_the_plan_keeps_is_marked_and_not_called_better() -> None:
    here = best()
    around = neighbours(here, query())
    held = max(float(one.found.memory.total) for one in around if one.found and one.fits)
    tight = neighbours(here, replace(query(), keep_free=1 - (held - 1) / query().usable))
    (marked,) = (one for one in tight if one.found and float(one.found.memory.total) == held)
    assert not marked.fits
    assert text_step.neighbors_text(here, tight).values["change"] != text_step.change_text(here, marked)


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        ({"cp": "64", "seq": "4032"}, ["failing"]),
        ({"zero": "1", "pp": "4"}, ["able", "add"]),
        ({"gpu": "TPU v5p", "zero": "3"}, ["able", "tpu", "add"]),
        ({"ft": "adapters", "acc": "1"}, ["able"]),
        ({"ft": "adapters", "acc": "1", "tp": "2"}, ["failing"]),
    ],
)
def test_launch_text_names_programs_that_cannot_run_the_plan(texts: dict[str, str], ids: list[str]) -> None:
    at = timed_estimate(plan_from({"model": "Llama 3.1 8B", "count": "64", "lay": "own", **texts}))
    said = text_step.launch_text(at.launches, at.whole.software, at.whole.device)
    assert [one.id for one in said] == [f"search.launch.{name}" for name in ids]


def test_stages_hold_what_the_fullest_holds() -> None:
    here = best(kpp="4", kvpp="1")
    rows = stages(query(), here.layout, 16)
    assert [place for place, _ in rows] == list(range(4))
    fullest = max(float(memory.total) for _, memory in rows)
    assert fullest == pytest.approx(float(here.memory.total), rel=1e-9)
    assert text_step.stages_text(rows, 4).values["most"] == fullest


def test_the_derivation_has_the_step_and_its_parts() -> None:
    here = best()
    steps = explain(query(), here, 1e12)
    names = {step.name.rpartition(".")[2] for step in steps}
    assert {"days_of_steps", "mfu_needed", "product_seconds"} <= names
    assert steps[0].value == pytest.approx(1e12 / here.tokens * here.seconds / 86400)
    assert steps[1].value == pytest.approx(here.mfu)
    assert all(math.isfinite(step.value) for step in steps)
    assert explain_run(lambda: None) == []


def test_more_accelerators_never_take_longer() -> None:
    sized = cluster_results(plan_from({**SMALL, "price": "2"}))
    days = [result.answer.middle.days for result in sized]
    assert days == sorted(days, reverse=True)
    assert {2, 4, 8, 16, 32, 64, 128} <= {result.accelerators for result in sized}
    for result in sized:
        whole = estimate(plan_from({**SMALL, "price": "2", "count": f"{result.accelerators}"}))
        assert (result.answer.middle.days, result.answer.dollars.mid) == (whole.middle.days, whole.dollars.mid)
    enough = next(result.accelerators for result in sized if result.answer.middle.days <= days[2])
    assert search_text.sizes_text(sized, days[2], None)[-1].values["accelerators"] == enough
    assert search_text.sizes_text(sized, days[-1] / 2, None)[-1].id == "search.sizes.too_late"
    sure = cluster_results(plan_from({**SMALL, "price": "2", "sure": "P90"}))
    late = sure[3].answer.range_of("days").high
    assert search_text.sizes_text(sure, late, None)[-1].values["accelerators"] == sure[3].accelerators
    assert search_text.sizes_text(sure, days[2], None)[-1].values.get("accelerators") != enough, "50% is not 90%"


@pytest.mark.parametrize("name", SEARCH_PRESETS)
def test_every_preset_has_a_plan_that_fits(name: str) -> None:
    result = searched(search_request(plan_from(SEARCH_PRESETS[name])))
    assert result.best is not None
    assert result.best.spare >= 0
    assert 0.1 < result.best.mfu < 0.7


def test_every_plan_of_the_table_is_the_same_once_it_is_chosen(result: SearchResult) -> None:
    for i in range(0, min(400, len(result.plans.seconds)), 7):
        chosen = evaluate_layout(query(), result.plans.at(i))
        assert chosen.seconds == pytest.approx(float(result.plans.seconds[i]), rel=1e-9)
        assert float(chosen.memory.total) == pytest.approx(float(result.plans.memory[i]), rel=1e-9)


def test_the_picture_of_a_space_holds_ones_own_layout_and_names_each_point_otherwise(result: SearchResult) -> None:
    slow = evaluate_layout(query(), Layout(tensor=8, data=2, micro_batches=64, zero=3, recompute=2))
    assert slow.pace > 1.2 * float(result.plans.pace[:500].max())
    layout = space(result.plans, result.pareto * 2, slow, slow.usable, LIGHT)["layout"]
    low, high = (10**end for end in layout["xaxis"]["range"])
    assert low < result.pareto[0].pace
    assert slow.pace < high
    notes = [note["text"] for note in layout["annotations"]]
    assert len(set(notes)) == len(notes) > 2


def test_headline_and_rows_have_the_numbers_of_the_layout(result: SearchResult) -> None:
    at = timed_estimate(plan_from(SMALL))
    here, said = at.step, search_text.headline(at)
    assert (said.values["layout"], said.values["seconds"]) == (layout_label(here.layout), here.seconds)
    rows = {row.key: row.value for row in search_text.answer_rows(at, result)}
    assert (rows["step_tokens"], rows["memory"]) == (here.tokens, float(here.memory.total))
    assert rows["fitting"] == result.fitting
    assert at.days_of_steps(here.seconds) == pytest.approx(1e12 / here.tokens * here.seconds / 86400)
    assert here.low < here.high


def test_accuracy_text_has_the_errors_of_its_rows() -> None:
    rows = kept()
    measured, predicted, names, mixture = text_evidence.points(rows)
    off = np.abs(predicted / measured - 1)
    said = text_evidence.accuracy_text(rows)
    assert said.values["median"] == pytest.approx(float(np.median(off)))
    assert said.values["steps"] == len(mixture) == len(rows.left) == len(names)
