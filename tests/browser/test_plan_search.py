"""Parallel plan in a real browser: the answer, a row of the table put in force, the pictures, and the way onwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.planning.form.plan_form import plan_of
from core.planning.plan_search import search_layouts, search_request
from core.views.search import text as search_text
from core.wording import plain
from pages.common.registry import PARALLEL
from pages.parallel.form import CHIPS, FORM
from tests.browser.conftest import settle, still

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
SMALL = {"model": "Llama 3.1 8B", "count": "16", "gb": "128", "seq": "4096", "tokens": "1T"}


def address(**texts: str) -> str:
    fields = "&".join(f"s_{name}={text.replace(' ', '+')}" for name, text in {**SMALL, **texts}.items())
    return f"{PARALLEL.url_path}?v=3&{fields}"


def answer(page: Page) -> str:
    return page.locator(".np-answer").first.inner_text().replace("\N{NO-BREAK SPACE}", " ")


def told(**texts: str) -> str:
    plan = plan_of(FORM.parse(texts))
    best = search_layouts(search_request(plan)).best
    assert best is not None
    return plain(search_text.sentence(plan, search_request(plan), best))


def test_first_sight_says_which_layout_is_fastest(open_page: OpenPage) -> None:
    page = open_page(PARALLEL.url_path)
    assert told() in answer(page)
    assert page.problems == []  # type: ignore[attr-defined]


def test_each_chip_tells_its_story(open_page: OpenPage) -> None:
    page = open_page(PARALLEL.url_path)
    for chip in list(CHIPS)[1:]:
        page.get_by_role("radio", name=chip).click()
        settle(page)
        expect(page.get_by_role("radio", name=chip)).to_be_checked()
        assert told(**CHIPS[chip]) in answer(page)
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_row_of_the_table_becomes_the_plan_in_force(open_page: OpenPage) -> None:
    page = open_page(address(space="true"))
    row = page.locator("tbody tr").filter(has=page.locator("button.pick")).nth(2)
    name = row.locator("button.pick")
    text = name.inner_text()
    name.click()
    settle(page)
    expect(page.get_by_text("This is your own layout")).to_be_visible()
    expect(page.locator("button.pick[aria-pressed=true]")).to_have_text(text)
    assert page.problems == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [640, 1280, 1600])
def test_pictures_keep_their_words_inside(open_page: OpenPage, width: int) -> None:
    page = open_page(address(space="true", why="true", sizes="true"), width=width)
    page.locator(".js-plotly-plot").first.wait_for()
    still(page)
    plots = page.locator(".js-plotly-plot")
    assert plots.count() >= 4
    for plot in plots.all():
        frame = plot.bounding_box()
        assert frame is not None
        for label in plot.locator(".annotation-text-g").all():
            box = label.bounding_box()
            assert box is not None
            assert box["x"] >= frame["x"] - 2, label.text_content()
            assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 2, label.text_content()


def test_use_this_plan_opens_training_memory_with_its_layout(open_page: OpenPage) -> None:
    page = open_page(address())
    link = page.get_by_role("link", name="Use this plan: what each accelerator has to hold")
    href = link.get_attribute("href")
    assert href is not None
    there = open_page(href)
    assert "fits on 16 × H100 SXM" in answer(there)
    assert there.problems == []  # type: ignore[attr-defined]
