"""Compare in a real browser: plans from three pages, numbers changed in their columns, and all of it kept."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from core.planning.comparison.comparison import compare_plan
from core.planning.comparison.entry import Entry, pack, unpack
from core.planning.comparison.examples import examples
from core.views.comparison import text
from core.wording import plain
from pages.common.comparison_list import IN_LINK
from pages.common.registry import COMPARE, COMPUTE, MEMORY, PARALLEL
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def plans(page: Page) -> tuple[Entry, ...]:
    """The plans that the page's own link carries."""
    link = page.locator("button[data-link]").get_attribute("data-link") or ""
    return unpack(parse_qs(urlsplit(link).query).get(IN_LINK, [""])[0])[0]


def answer(page: Page) -> str:
    return page.locator(".np-answer").first.inner_text().replace("\N{NO-BREAK SPACE}", " ")


def told(entries: tuple[Entry, ...], base: int = 0) -> str:
    return plain(text.sentence([compare_plan(one) for one in entries], base)).replace("\N{NO-BREAK SPACE}", " ")


def address(entries: tuple[Entry, ...]) -> str:
    return f"{COMPARE.url_path}?v=3&{IN_LINK}={quote(pack(entries))}"


def test_plans_of_three_pages_are_compared_and_changed_in_place(open_page: OpenPage) -> None:
    page = open_page(COMPUTE.url_path)
    menu = page.locator('[data-testid="stSidebar"]')
    for i, spec in enumerate((COMPUTE, MEMORY, PARALLEL)):
        if i:
            menu.get_by_role("link", name=spec.title).click()
            page.wait_for_url(f"**/{spec.url_path}*")
            settle(page)
        page.get_by_role("button", name="Add to comparison").click()
        settle(page)
        assert len(plans(page)) == i + 1
    page.get_by_role("link", name="3 of 6 in the comparison · open Compare").click()
    page.wait_for_url(f"**/{COMPARE.url_path}*")
    settle(page)
    before = plans(page)
    assert len(before) == 3
    assert told(before) in answer(page)
    # Two changes, the second made before the first is answered.
    boxes = page.get_by_label("How many", exact=True)
    boxes.nth(0).fill("4096")
    boxes.nth(0).press("Enter")
    boxes.nth(2).fill("2048")
    boxes.nth(2).press("Enter")
    settle(page)
    after = plans(page)
    assert [one.texts["count"] for one in after] == ["4096", before[1].texts["count"], "2048"]
    assert told(after) in answer(page)
    page.reload()
    settle(page)
    assert plans(page) == after
    assert told(after) in answer(page)
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_column_is_pinned_and_another_removed(open_page: OpenPage) -> None:
    page = open_page(address(examples()))
    page.get_by_role("button", name="Plan 2").click()
    page.get_by_text("Make it the baseline", exact=True).click()
    settle(page)
    assert told(plans(page), 1) in answer(page)
    page.get_by_role("button", name="Plan 1").click()
    page.get_by_text("Remove", exact=True).click()
    settle(page)
    assert [one.name for one in plans(page)] == [one.name for one in examples()[1:]]
    expect(page.get_by_role("button", name="Plan 1, the baseline")).to_be_visible()
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_change_that_overtakes_a_slow_answer_is_kept(open_page: OpenPage) -> None:
    """A name, a number and a removal, each made before the browser has heard of the one before it."""
    page = open_page(address(examples()))
    page.evaluate("traffic.late = 700")
    name, count = page.get_by_label("Name", exact=True).nth(0), page.get_by_label("How many", exact=True).nth(2)
    name.fill("renamed")
    name.press("Enter")
    count.fill("333")
    count.press("Enter")
    page.get_by_role("button", name="Plan 2").click()
    page.get_by_text("Remove", exact=True).click()
    settle(page)
    page.evaluate("traffic.late = 0")
    assert [(one.name, one.texts["count"]) for one in plans(page)] == [
        ("renamed", "1,024"),
        (examples()[2].name, "333"),
    ]
    expect(page.get_by_label("Name", exact=True).nth(0)).to_have_value("renamed")
    expect(page.get_by_label("How many", exact=True).nth(1)).to_have_value("333")
