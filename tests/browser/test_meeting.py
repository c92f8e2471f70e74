"""A whole meeting: plans of three pages are compared, one is changed in its place, saved, and taken along as a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core.planning.comparison.comparison import compare_plan
from core.views.plan.text import sentence
from core.wording import plain
from pages.common.registry import COMPARE, COMPUTE, MEMORY, PARALLEL, SAVED
from tests.browser.conftest import settle
from tests.browser.test_compare import answer, plans, told
from tests.browser.test_report import opened

pytestmark = [pytest.mark.browser, pytest.mark.journey]

AGREED = "As agreed in the meeting"


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    settle(page)


def go(page: Page, label: str, to: str) -> None:
    """Follow a link of the page or of the menu."""
    page.get_by_role("link", name=label).first.click()
    page.wait_for_url(f"**/{to}*")
    settle(page)


def enter(box: Locator, text: str) -> None:
    box.fill(text)
    box.press("Enter")
    settle(box.page)


def days(page: Page) -> list[str]:
    """The days of the table of results, each with its range."""
    cells = page.locator("tr").filter(has=page.get_by_text("Whole run", exact=True)).first.locator("td.num")
    return [text.replace("\N{NO-BREAK SPACE}", " ").replace("\n", "") for text in cells.all_text_contents()]


def test_a_meeting_ends_with_saved_plans_and_a_report(
    open_page: Callable[..., Page], browser: Browser, tmp_path: Path
) -> None:
    page = open_page(COMPUTE.url_path)
    press(page, "Add to comparison")
    go(page, MEMORY.title, MEMORY.url_path)
    press(page, "Add to comparison")
    go(page, PARALLEL.title, PARALLEL.url_path)
    go(page, "Use this plan: FLOPs, days and dollars of the whole run", COMPUTE.url_path)
    press(page, "Add to comparison")
    go(page, "3 of 6 in the comparison", COMPARE.url_path)

    page.get_by_role("button", name="Plan 2").click()
    page.get_by_text("Make it the baseline", exact=True).click()
    settle(page)
    before = plans(page)
    enter(page.get_by_label("Name", exact=True).nth(0), AGREED)
    enter(page.get_by_label("How many", exact=True).nth(0), "4096")
    after = plans(page)
    assert len(after) == 3
    assert after[1:] == before[1:]
    assert (after[0].name, after[0].texts) == (AGREED, {**before[0].texts, "count": "4096"})
    assert told(after, 1) in answer(page)

    page.get_by_text("Save these plans", exact=True).click()
    settle(page)
    press(page, "Save all")
    for one in after:
        expect(page.get_by_role("link", name=one.name, exact=True)).to_be_visible()

    other = open_page(SAVED.url_path)
    go(other, AGREED, COMPUTE.url_path)
    expected = compare_plan(after[0]).answer
    assert expected
    assert plain(sentence(expected)).replace("\N{NO-BREAK SPACE}", " ") in answer(other)
    expect(other.get_by_label("How many", exact=True)).to_have_value("4096")

    page.get_by_text("Take it away").click()
    settle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Report as HTML").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    shown, said = days(page), answer(page)
    assert len(shown) == 3
    with opened(browser, file, "light", 1280) as report:
        assert days(report) == shown
        assert told(after, 1) in said
        assert told(after, 1) in report.locator(".answer").first.inner_text().replace("\N{NO-BREAK SPACE}", " ")
    assert page.problems == other.problems == []  # type: ignore[attr-defined]
