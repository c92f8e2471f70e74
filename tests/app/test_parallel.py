"""Parallel plan as a visitor sees it: its answer, every preset on every panel, ranges, links both ways."""

from __future__ import annotations

import json

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from core.planning.estimate import timed_estimate
from core.planning.form.plan_form import plan_from, plan_of
from core.planning.layout import search_request
from core.planning.memory_estimate import memory_estimate
from core.planning.sensitivity import layout_texts
from core.search.fastest import searched
from core.views.search import text as search_text
from core.views.search.names import layout_label
from pages.common.registry import COMPUTE, MEMORY, PARALLEL
from pages.parallel.form import FORM, PAGE_PRESETS, PANELS
from tests.app.plan_pages import bodies, fold, linked, next_pages, opened, opens_to_itself, shown, stripped
from tests.app.plan_pages import words as said_on
from tests.core.plan_walk import NO_NUMBER

OPEN = dict.fromkeys(PANELS, "true")
SMALL = {"model": "Llama 3.1 8B", "count": "16", "gb": "128", "seq": "4,096", "tokens": "1T"}


def answer(app: AppTest) -> str:
    return stripped(bodies(app, "np-answer")[0].partition("<small>")[0])


@pytest.mark.parametrize("name", PAGE_PRESETS)
def test_every_preset_is_told_by_the_form_alone_with_every_panel_open(name: str) -> None:
    texts = PAGE_PRESETS[name]
    app = opened(PARALLEL, {**texts, **OPEN})
    plan = plan_of(FORM.parse(texts))
    assert answer(app) == shown(search_text.headline(timed_estimate(plan)))
    assert {one.label for one in PANELS.values()} <= {drawn.label for drawn in app.expander}
    assert len(app.get("plotly_chart")) >= 5
    for chart in app.get("plotly_chart"):
        go.Figure(json.loads(chart.proto.spec))
    text = stripped(said_on(app))
    wrong = NO_NUMBER.search(text)
    assert not wrong, text[max(0, wrong.start() - 80) :][:160]


def test_opening_panels_changes_neither_answer_nor_link() -> None:
    apps = [opened(PARALLEL, {**SMALL, **panels}) for panels in (OPEN, dict.fromkeys(PANELS, "false"))]
    links = [{n: t for n, t in linked(app).items() if n.removeprefix("s_") not in PANELS} for app in apps]
    assert links[0] == links[1]
    assert answer(apps[0]) == answer(apps[1])


def test_nothing_is_searched_again_that_was_found() -> None:
    """A rerun with another token budget, price or panel asks for no search."""
    searched.cache_clear()
    app = opened(PARALLEL, {**SMALL, "gb": "64"})
    asked = searched.cache_info().misses
    assert asked
    app.text_input(key="p_tokens").set_value("3T").run()
    app.text_input(key="p_price").set_value("4").run()
    assert searched.cache_info().misses == asked
    app.text_input(key="p_gb").set_value("32").run()
    assert searched.cache_info().misses > asked


@pytest.mark.parametrize(
    ("texts", "button"), [({"model": "Llama 3.1 405B", "count": "8"}, "Apply"), ({"ktp": "7"}, "Remove constraints")]
)
def test_a_button_makes_a_plan_fit(texts: dict[str, str], button: str) -> None:
    app = opened(PARALLEL, {**SMALL, **OPEN, **texts})
    assert not NO_NUMBER.search(stripped(said_on(app)))
    next(drawn for drawn in app.button if drawn.label == button).click().run()
    assert not app.exception
    assert button not in {drawn.label for drawn in app.button}


def test_the_last_plan_stays_where_the_next_cannot_be_read() -> None:
    app = opened(PARALLEL, SMALL)
    before = answer(app)
    app.text_input(key="p_seq").set_value("0").run()
    assert answer(app) == before
    assert bodies(app, "np-error")


def test_a_plan_goes_to_the_other_pages_and_comes_back() -> None:
    texts = {**SMALL, "ktp": "2", "gb": "256"}
    app = opened(PARALLEL, texts)
    best = timed_estimate(plan_of(FORM.parse(texts))).step
    (memory,) = next_pages(app, MEMORY)
    (compute,) = next_pages(app, COMPUTE)
    for there in (memory, compute):
        plan = plan_from(there)
        assert memory_estimate(plan).layout == best.layout
        assert memory_estimate(plan).total == pytest.approx(float(best.memory.total), rel=1e-9)
        assert search_request(plan) == search_request(plan_of(FORM.parse(texts)))
    for page in (MEMORY, COMPUTE):
        sent = next_pages(opened(page, memory), PARALLEL)[-1]
        assert search_request(plan_of(FORM.parse(sent))) == search_request(plan_from(memory))
    again = opened(PARALLEL, sent)
    assert shown(layout_label(best.layout)) in answer(again)


def test_a_link_names_every_field_and_opens_to_the_same_page() -> None:
    opens_to_itself(PARALLEL, FORM, {**SMALL, "kpp": "1-2", "lay": "own", "tp": "2", "why": "true"})


def test_a_layout_of_ones_own_begins_as_the_fastest() -> None:
    """Chosen in the sidebar: model, accelerators, degrees and memory stay; steps are those of this layout alone, which
    are no longer than those that the fastest's days are joined by."""
    app = opened(PARALLEL, SMALL)
    fold(app, "plan:layout", open=True)
    app.segmented_control(key="p_lay").set_value("own").run()
    assert not app.exception
    texts, fastest = linked(app), timed_estimate(plan_from(SMALL)).step
    own = timed_estimate(plan_from({**SMALL, **layout_texts(fastest.layout)})).step
    assert 0.97 * fastest.seconds < own.seconds <= fastest.seconds * (1 + 1e-9)
    layout = fastest.layout
    assert shown(layout_label(layout)) in answer(app)
    assert {name: texts[f"p_{name}"] for name in layout_texts(layout)} == layout_texts(layout)
