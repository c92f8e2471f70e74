"""Compare in a real browser: changes that overtake a slow answer."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from core.planning.comparison.comparison import compare_plans
from core.planning.comparison.entry import Entry, examples, pack, unpack
from core.planning.form.plan_form import COUNT
from core.views.comparison import text
from core.wording import plain
from pages.common.comparison_list import IN_LINK
from pages.common.registry import COMPARE
from pages.compare.columns import EDIT
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
    return plain(" ".join(text.answer(compare_plans(entries), base))).replace("\N{NO-BREAK SPACE}", " ")


def address(entries: tuple[Entry, ...]) -> str:
    return f"{COMPARE.url_path}?v=3&{IN_LINK}={quote(pack(entries))}"


def test_a_change_that_overtakes_a_slow_answer_is_kept(open_page: OpenPage) -> None:
    """A name, a number and a removal, each made before the browser has heard of the one before it."""
    page = open_page(address(examples()))
    page.get_by_role("button", name="Plan 3").click()
    page.get_by_text(EDIT, exact=True).click()
    settle(page)
    page.evaluate("traffic.late = 700")
    name, count = page.get_by_label("Name", exact=True).nth(0), page.get_by_label(COUNT.label, exact=True)
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
    expect(count).to_have_value("333")
