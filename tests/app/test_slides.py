"""On a projector the page as it was typed is the first slide; it comes back with its slide, and on leaving."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from unittest.mock import patch
from urllib.parse import parse_qsl

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.messages import message
from pages.common import show
from pages.common.links import address, key_of
from pages.common.registry import (
    COMPARE,
    COMPUTE,
    DECIDE,
    EXERCISES,
    FLOATS,
    GLOSSARY,
    HOME,
    LECTURE,
    MEASURE,
    MEMORY,
    PAGES,
    PARALLEL,
    SAVED,
    TENSORS,
    WHAT_IF,
    PageSpec,
)
from pages.common.slides import AS_ENTERED
from pages.common.theme import PROJECTOR
from pages.common.tours import TOUR, TOURS
from tests.app.test_pages import APP
from tests.patience import PATIENCE_S

_STEP = "test:step"
CHANGED = message("slides.changed", name="")

TYPED: Mapping[str, Mapping[str, str]] = {
    HOME.id: {"n": "13B", "k": "16", "x": "nonsense", "prec": "fp32"},
    FLOATS.id: {"x": "0x3dcd", "fmt": "fp16", "over": "saturate", "sums": "true", "count": "77", "arith": "true"},
    TENSORS.id: {"x": "x.view(7, 7)", "shape": "4, 5", "named": "true", "vshape": "2, 2, 5"},
    LECTURE.id: {"topic": "Compute", "linear": "true"},
    EXERCISES.id: {"topics": "memory, nonsense", "sheet": "7", "how": "hand in", "check": "true"},
    GLOSSARY.id: {"q": "shard"},
    COMPUTE.id: {"find": "tokens", "n": "7B", "mfu": "nonsense", "flops": "true", "seq": "2048"},
    MEMORY.id: {"n": "9B", "tp": "2", "why": "true"},
    PARALLEL.id: {"n": "9B", "near": "true", "count": "64"},
    WHAT_IF.id: {"n": "9B", "xs": "1, 2, nonsense"},
    COMPARE.id: {"base": "2", "more": "true"},
    DECIDE.id: {"start": "nonsense", "n": "9B", "train": "first", "goal": "cost"},
    SAVED.id: {"q": "nothing of the kind"},
    MEASURE.id: {"n": "nonsense", "each": "2 s", "roof": "true"},
}
"""What a visitor has typed on each page: far from every preset, some of it unreadable, panels open."""


@pytest.fixture(autouse=True)
def steps() -> Iterator[None]:
    """The page's link stands where a test finds it, and a number field takes the place of the keys."""

    def link(query: str, *, key: str, take: Callable[[object], None] | None = None, **_: object) -> None:
        st.session_state["test:link"] = query
        if take:
            st.number_input("step", value=-1, key=_STEP, on_change=lambda: take(st.session_state[_STEP]))

    with patch.object(show, "copy_link", link):
        yield


def opened(page: PageSpec, query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S)
    if not page.default:
        app.run().switch_page(page.path)
    app.query_params.update(dict(parse_qsl(query, keep_blank_values=True)))
    app.run()
    assert not app.exception
    return app


def typed_on(page: PageSpec) -> AppTest:
    """The page with what somebody typed, and on Compare the plans of theirs."""
    fields = {key_of(page, name): text for name, text in TYPED[page.id].items()}
    app = opened(page, "&".join(f"{name}={text}" for name, text in fields.items()))
    if page is COMPARE:
        for _ in range(2):
            app.button(key="k_add_it").click().run()
        app.text_input(key="p_tokens").set_value("3T").run()
    return app


def turn(app: AppTest, *, on: bool) -> None:
    app.toggle(key=PROJECTOR).set_value(on).run()
    assert not app.exception


def go(app: AppTest, to: int) -> None:
    app.number_input(key=_STEP).set_value(to).run()
    assert not app.exception


def slide(app: AppTest) -> str:
    """What the bar says is shown."""
    (bar,) = (block.proto.body for block in app.get("html") if 'class="np-bar"' in block.proto.body)
    found = re.search(r'np-slide"[^>]*>(.*?)</p>', bar)
    assert found
    return html.unescape(found[1])


def slides(app: AppTest) -> int:
    """How many there are."""
    found = re.search(r'data-slides="(\d+)"', "".join(block.proto.body for block in app.get("html")))
    assert found
    return int(found[1])


def standing(app: AppTest, page: PageSpec) -> tuple[object, ...]:
    """All that a visitor sees of their work: every field, every message and sentence, the link, the address."""
    held = {
        one.key: one.value
        for kind in ("text_input", "text_area", "selectbox", "toggle", "slider", "button_group")
        for one in app.get(kind)
        if one.key and one.key.startswith((f"{page.prefix}_", "p_"))
    }
    panels = {one.proto.id.rpartition("-")[2]: one.proto.expanded for one in app.expander}
    said = [
        block.proto.body
        for block in app.get("html")
        if 'class="np-error' in block.proto.body or 'class="np-answer' in block.proto.body
    ]
    address = {name: text for name, text in app.query_params.items() if name != PROJECTOR}
    return held, panels, said, app.session_state["test:link"], address


def fields(app: AppTest) -> dict[str, str]:
    """The page's own link."""
    return dict(parse_qsl(app.session_state["test:link"], keep_blank_values=True))


def stop_query(page: PageSpec, number: int) -> str:
    """The query of a link to a stop."""
    stop = TOURS[page.id][number - 1]
    return address(page, stop.fields, {TOUR: str(number)}, stop.at).partition("?")[2]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.id)
def test_what_was_typed_comes_back_from_every_slide(page: PageSpec) -> None:
    app = typed_on(page)
    before = standing(app, page)
    turn(app, on=True)
    typed, panels = standing(app, page), fields(app).items() & {(name, "true") for name in fields(app)}
    assert slide(app) == AS_ENTERED
    presets = slides(app) - 1 - len(TOURS[page.id])
    for index in range(1, slides(app)):
        go(app, index)
        stop = TOURS[page.id][index - presets - 1] if presets < index else None
        if stop:
            assert slide(app) == stop.says
            query = stop_query(page, index - presets)
            assert {**fields(app), "plans": ""} == {**fields(opened(page, query)), "plans": ""}, "as its link opens it"
        else:
            assert not slide(app).endswith(CHANGED), "it is not what it says"
        assert slide(app) != AS_ENTERED
        if index % 3 == 0 or index == 1:
            go(app, 0)
            assert slide(app) == AS_ENTERED
            assert standing(app, page) == typed
    if presets:
        go(app, 1)
        assert panels <= fields(app).items(), "what was open before the tour is open after it, and no more"
    turn(app, on=False)
    assert standing(app, page) == before


def test_leaving_brings_back_every_page_that_was_stepped_through() -> None:
    app = typed_on(COMPUTE)
    budget = standing(app, COMPUTE)
    turn(app, on=True)
    go(app, 2)
    app.switch_page(FLOATS.path).run()
    assert slide(app) == AS_ENTERED
    numbers = standing(app, FLOATS)
    go(app, slides(app) - 1)
    turn(app, on=False)
    assert standing(app, FLOATS)[:4] == numbers[:4]
    app.switch_page(COMPUTE.path).run()
    assert standing(app, COMPUTE)[:4] == budget[:4]


def test_turning_it_on_again_returns_to_the_slide_that_was_left() -> None:
    app = typed_on(FLOATS)
    turn(app, on=True)
    go(app, 2)
    left = slide(app)
    turn(app, on=False)
    turn(app, on=True)
    assert slide(app) == left
    turn(app, on=False)
    app.text_input(key="f_x").set_value("5").run()
    turn(app, on=True)
    assert slide(app) == AS_ENTERED, "a new input is what is to be shown"


def test_a_link_to_a_stop_opens_there_and_an_edited_slide_says_so() -> None:
    stop = TOURS[FLOATS.id][1]
    app = opened(FLOATS, stop_query(FLOATS, 2))
    turn(app, on=True)
    assert slide(app) == stop.says
    app.text_input(key="f_x").set_value("2").run()
    assert slide(app) == message("slides.changed", name=stop.says)
    go(app, 0)
    assert slide(app) == AS_ENTERED
    assert app.text_input(key="f_x").value == stop.fields["x"]
    assert app.query_params[TOUR][-1] == "2"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("deck=lecture&slide=99", "“99”"),
        ("deck=lecture&slide=0001999", "“0001999”"),
        (f"deck=lecture&slide=1{'0' * 5000}", f"“1{'0' * 11}”"),
        ("deck=lecture&slide=<b>", "“&lt;b&gt;”"),
        ("deck=cut&slide=1", message("lecture.deck.other")),
    ],
)
def test_a_slide_that_is_none_says_so_and_the_page_stands(query: str, said: str) -> None:
    app = opened(FLOATS, query)
    turn(app, on=True)
    errors = [block.proto.body for block in app.get("html") if 'class="np-error' in block.proto.body]
    assert any(said in error for error in errors)
    assert slide(app) == AS_ENTERED


@pytest.mark.parametrize("page", [page for page in PAGES if page.plans], ids=lambda page: page.id)
def test_with_a_plan_of_ones_own_every_slide_is_that_plan(page: PageSpec) -> None:
    plans = [one for one in PAGES if one.plans]
    there = plans[(plans.index(page) + 1) % len(plans)]
    app = opened(page, "p_n=9B")
    turn(app, on=True)
    (bar,) = (block.proto.body for block in app.get("html") if 'class="np-bar"' in block.proto.body)
    assert f'class="next" data-page="{there.url_path}"' in bar
    assert message("slides.plan", here=plans.index(page) + 1.0, count=float(len(plans))) in bar
    app = opened(page, "")
    turn(app, on=True)
    assert "data-page" not in "".join(block.proto.body for block in app.get("html"))
