"""Whole meetings: plans are compared, changed in their place, held against limits, saved, and taken along as a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core.messages import message
from core.planning.comparison.comparison import compare_plan
from core.planning.form.plan_form import COUNT, MODEL_NAME, SHAPE
from core.planning.plan import OWN_SHAPE
from core.views.plan.text import headline
from core.wording import plain
from pages.common.registry import CALENDAR, COMPARE, COMPUTE, MEMORY, PARALLEL, SAVED
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
    go(page, "3 of 6 compared", COMPARE.url_path)

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


class Visitor:
    """Somebody at a page, whose clicks, choices and typed values are counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.actions = page, 0

    def click(self, target: Locator) -> None:
        self.actions += 1
        target.click()
        settle(self.page)

    def press(self, name: str) -> None:
        self.click(self.page.get_by_role("button", name=name, exact=True))

    def enter(self, label: str, text: str) -> None:
        self.actions += 1
        enter(self.page.get_by_label(label, exact=True).first, text)

    def open(self, name: str) -> None:
        """Open or close a box over the page."""
        self.click(self.page.get_by_test_id("stPopoverButton").filter(has_text=name))

    def choose(self, label: str, option: str) -> None:
        self.click(self.page.get_by_test_id("stSelectbox").filter(has_text=label).locator("input"))
        self.page.keyboard.type(option)
        self.click(self.page.get_by_role("option", name=option, exact=True).first)

    def follow(self, name: str, to: str) -> None:
        self.actions += 1
        go(self.page, name, to)


POOLS = """ours: 256 H100 SXM owned $15,000 over 2 years
lab: 512 H200 SXM rented $3.00-3.50/h
cloud: 256 B200 rented $4.50-6.00/h"""

MIXTURE = (
    "layers=44 hidden=4096 heads=64 kv_heads=8 head_dim=128 ffn=0 vocab=151552 glu=yes tied_head=no "
    "experts.count=112 experts.per_token=6 experts.width=1536 experts.shared=1"
)
"""98B parameters, of which 10B are active."""


def test_a_team_decides_between_models_and_pools_with_every_stage_in_forty_clicks(
    open_page: Callable[..., Page], browser: Browser, tmp_path: Path
) -> None:
    """A 32B or a 100B-A10B on 8T tokens, then 200B at 64k, then fine-tuning; 256 owned H100, or H200 or B200 to rent;
    90 days, $6 M and 1 MW."""
    page = open_page(COMPUTE.url_path)
    visitor = Visitor(page)
    visitor.enter("Parameters", "32B")
    visitor.enter("Tokens", "8T")
    visitor.enter(COUNT.label, "256")
    visitor.enter("Deadline", "90 days")
    visitor.enter("Budget", "6M")
    visitor.open("Limits")
    visitor.enter("Power limit", "1 MW")
    page.keyboard.press("Escape")
    visitor.press("Compare")
    visitor.choose(MODEL_NAME.label, MODEL_NAME.short[MODEL_NAME.options.index(OWN_SHAPE)])
    visitor.open(message("sidebar.shape"))
    visitor.enter(SHAPE.label, MIXTURE)
    page.keyboard.press("Escape")
    visitor.press("Compare")
    visitor.follow("2 of 6 compared", COMPARE.url_path)
    said = answer(page)
    assert re.search(r"No plan meets all limits\. The nearest, Your .*, misses the deadline", said), said

    # The mixture, with its stages, on whichever pool keeps the limits.
    visitor.follow(CALENDAR.title, CALENDAR.url_path)
    visitor.click(page.locator("summary").filter(has_text="Additional pools"))
    pools = page.locator("textarea:visible").first
    visitor.actions += 1
    pools.fill(POOLS)
    pools.press("Control+Enter")
    settle(page)
    for run in (2, 3):
        visitor.actions += 1
        page.get_by_role("slider", name="Runs").press("ArrowRight")
        expect(page.get_by_label(f"{run} · tokens", exact=True)).to_be_visible()
        settle(page)
    for run, tokens, length in ((2, "200B", "64k"), (3, "5B", "8k")):
        visitor.enter(f"{run} · tokens", tokens)
        visitor.enter(f"{run} · sequence", length)
        visitor.choose(f"{run} · waits for", f"run {run - 1}")
    visitor.click(page.locator("summary").filter(has_text="Which of ours"))
    expect(page.get_by_role("cell", name="256 H100 SXM, owned")).to_be_visible()
    takeaway = page.locator(".np-takeaway").filter(has_text="every limit")
    decided = re.search(r"the best is ([\d,]+) (\w+)", takeaway.inner_text())
    assert decided, takeaway.inner_text()
    visitor.click(page.get_by_role("button", name=decided[0].removeprefix("the best is ")).first)
    assert decided[2] in page.locator(".np-plan").inner_text()
    limits = page.locator(".np-note").filter(has_text="✓").first
    expect(limits).to_contain_text(re.compile(r"4 of 4 .*%"))

    visitor.open("Save")
    visitor.enter("Name", AGREED)
    visitor.click(page.get_by_test_id("stPopoverBody").get_by_role("button", name="Save", exact=True))
    page.keyboard.press("Escape")
    agreed = answer(page)
    link = page.get_by_role("button", name="Copy link").get_attribute("data-link") or ""
    visitor.click(page.locator("summary").filter(has_text=message("export.title")).first)
    with page.expect_download() as download:
        visitor.press("HTML report")
    assert visitor.actions <= 40, visitor.actions
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    with opened(browser, file, 1280) as report:
        assert agreed.partition(".")[0] in report.locator(".answer").first.inner_text().replace(NO_BREAK, " ")
    other = open_page(f"{CALENDAR.url_path}?{urlsplit(link).query}")
    assert answer(other) == agreed
    assert page.problems == other.problems == []  # type: ignore[attr-defined]
