"""Whole meetings: plans are compared, changed in their place, held against limits, saved, and taken along as a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core.limits import limit
from core.messages import message
from core.planning.comparison.comparison import compare_plan
from core.planning.form.plan_form import COUNT
from core.views.plan.text import headline
from core.wording import plain
from pages.common.registry import COMPARE, COMPUTE, MEMORY, PARALLEL, SAVED
from pages.compare.columns import EDIT, PIN
from tests.browser.conftest import open_from_menu, settle
from tests.browser.test_compare import answer, plans, told
from tests.browser.test_report import opened

pytestmark = [pytest.mark.browser, pytest.mark.journey]

AGREED = "As agreed in the meeting"
NO_BREAK = "\N{NO-BREAK SPACE}"


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
    cells = page.locator("tr").filter(has=page.get_by_text("End-to-end time", exact=True)).first.locator("td.num")
    return [text.replace(NO_BREAK, " ").replace("\n", "") for text in cells.all_text_contents()]


def test_a_meeting_ends_with_saved_plans_and_a_report(
    open_page: Callable[..., Page], browser: Browser, tmp_path: Path
) -> None:
    page = open_page(COMPUTE.url_path)
    press(page, "Compare")
    open_from_menu(page, MEMORY)
    enter(page.get_by_label(COUNT.label, exact=True), "2,048")
    press(page, "Compare")
    open_from_menu(page, PARALLEL)
    page.get_by_test_id("stMain").get_by_role("link", name=message("parallel.link.compute")).first.click()
    page.wait_for_url(f"**/{COMPUTE.url_path}*")
    settle(page)
    enter(page.get_by_label(COUNT.label, exact=True), "3,072")
    press(page, "Compare")
    go(page, message("sidebar.compared", count=3.0, most=float(limit("compared_plans"))), COMPARE.url_path)

    page.get_by_role("button", name="Plan 2").click()
    page.get_by_text(PIN, exact=True).click()
    settle(page)
    before = plans(page)
    enter(page.get_by_label("Name", exact=True).nth(0), AGREED)
    page.get_by_role("button", name="Plan 1").click()
    page.get_by_text(EDIT, exact=True).click()
    settle(page)
    enter(page.get_by_label(COUNT.label, exact=True), "4096")
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
    assert plain(headline(expected)).replace(NO_BREAK, " ") in answer(other)
    expect(other.get_by_label(COUNT.label, exact=True)).to_have_value("4096")

    page.locator("summary").filter(has_text=message("export.title")).click()
    settle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="HTML report").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    shown, said = days(page), answer(page)
    assert len(shown) == 3
    with opened(browser, file, 1280) as report:
        assert days(report) == shown
        assert told(after, 1) in said
        assert told(after, 1) in report.locator(".answer").first.inner_text().replace(NO_BREAK, " ")
    assert page.problems == other.problems == []  # type: ignore[attr-defined]
