"""Decide in a real browser: from an empty page to the assignment, cells edited in place, one that becomes the plan."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from core.limits import limit
from core.messages import message
from core.planning.decide.decision import BECAUSE, DECIDE_FORM, decide
from core.planning.decide.offers import OFFER_COLUMNS
from core.planning.decide.record import unpack
from core.planning.decide.runs import RUN_COLUMNS
from core.planning.form.whole_run import BUDGET, DEADLINE, POWER_LIMIT
from core.store.locations import plan_store
from core.views.decide import text
from core.wording import plain
from pages.common.inputs import PACKED
from pages.common.registry import DECIDE, WHAT_IF
from pages.decide.grid import WIDTH, WIDTHS
from tests.browser.conftest import open_from_menu, settle, still
from tests.browser.test_compare import answer
from tests.browser.test_meeting import AGREED, NO_BREAK, enter
from tests.browser.test_report import opened

pytestmark = pytest.mark.browser

OFFERS = "256 own H100\n512 rented H200 at $2.80/h\n256 GB200\n512 MI355X"
_ROW, _TRIES = 35, 40
"""Pixels of a row, and clicks on a cell of a table that is still being drawn."""


class Sheet:
    """A table that is edited like a spreadsheet, whose actions are counted. number: on the page."""

    def __init__(self, page: Page, number: int) -> None:
        self.page, self.actions = page, 0
        columns = ("check", *(RUN_COLUMNS if number else OFFER_COLUMNS))
        self.ends = list(accumulate(WIDTHS.get(column, WIDTH) for column in columns))
        self.grid = page.get_by_test_id("stDataFrame").nth(number)

    def pick(self, row: int, column: int) -> None:
        """Select a cell, columns counted from that of the names."""
        self.actions += 1
        for _ in range(_TRIES):
            self.grid.evaluate("grid => grid.scrollIntoView({ block: 'center' })")
            still(self.page)
            box = self.grid.bounding_box()
            assert box
            grown = max(0.0, box["width"] - self.ends[-1]) / (len(self.ends) - 1)  # all columns but the pinned one
            x = box["x"] + self.ends[column] + column * grown + 20
            y = box["y"] + _ROW * (row + 1) + _ROW / 2
            self.page.mouse.move(x - 5, y)
            self.page.mouse.click(x, y, delay=50)
            with suppress(AssertionError):  # it may not have been drawn yet
                return expect(self.cell(row, column)).to_have_attribute("aria-selected", "true", timeout=5000)
        raise AssertionError(f"the cell {row}, {column} cannot be selected")

    def type(self, row: int, column: int, typed: str) -> None:
        """Type into a cell."""
        self.pick(row, column)
        self.actions += 1
        self.page.keyboard.press("Enter")
        box = self.page.get_by_test_id("portal").locator("textarea")
        box.fill(typed)
        box.press("Enter")
        settle(self.page)

    def paste(self, row: int, column: int, copied: str) -> None:
        """Paste what was copied from a spreadsheet."""
        self.pick(row, column)
        self.actions += 1
        self.page.evaluate("text => navigator.clipboard.writeText(text)", copied)
        self.page.keyboard.press("Control+v")
        settle(self.page)

    def cell(self, row: int, column: int) -> Locator:
        return self.grid.get_by_test_id(f"glide-cell-{column + 1}-{row}")


def texts_of(page: Page) -> dict[str, str]:
    """The texts of the page's own link."""
    link = page.locator("button[data-link]").get_attribute("data-link") or ""
    return dict(DECIDE_FORM.parse(unpack(parse_qs(urlsplit(link).query)[PACKED][0])).texts)


def told(texts: dict[str, str]) -> str:
    return plain(text.answer(decide(DECIDE_FORM.parse(texts)))).replace(NO_BREAK, " ")


@pytest.mark.journey
def test_an_empty_page_becomes_a_decision_in_thirty_actions(
    open_page: Callable[..., Page], browser: Browser, tmp_path: Path
) -> None:
    """A 32B and a 120B-A13B on four offers within 90 days, $6M, and 1.2 MW: 15 actions to the assignment with its
    reason, 24 with the record saved and taken along."""
    page = open_page(DECIDE.url_path)
    offers, runs = Sheet(page, 0), Sheet(page, 1)
    offers.paste(0, 0, OFFERS)
    for row, (model, tokens) in enumerate((("32B", "8T"), ("120B-A13B", "12T"))):
        runs.type(row, 1, model)
        runs.type(row, 2, tokens)
    others = 0

    def click(target: Locator) -> None:
        nonlocal others
        others += 1
        target.click()
        settle(page)

    def fill(label: str, typed: str) -> None:
        nonlocal others
        others += 1
        enter(page.get_by_label(label, exact=True).first, typed)

    fill(DEADLINE.label, "90 days")
    fill(BUDGET.label, "6M")
    click(page.get_by_test_id("stPopoverButton").filter(has_text="Limits"))
    fill(POWER_LIMIT.label, "1.2 MW")
    page.keyboard.press("Escape")
    settle(page)
    assert offers.actions + runs.actions + others + 1 == 15
    expect(page.locator("td button")).to_have_count(2 * 4)
    decision = decide(DECIDE_FORM.parse(texts_of(page)))
    assert decision.answer.best
    assert answer(page).startswith(told(texts_of(page)))
    shown = page.locator(".np-error").all_inner_texts()
    assert shown == [plain(text.reasons(decision)).replace(" ", " ")]
    assert decision.answer.best.met is False

    click(page.get_by_role("button", name=message("decide.record.best"), exact=True))
    fill(BECAUSE.label, "it is nearest")
    click(page.get_by_test_id("stPopoverButton").filter(has_text="Save"))
    fill("Name", AGREED)
    click(page.get_by_test_id("stPopoverBody").get_by_role("button", name="Save", exact=True))
    page.keyboard.press("Escape")
    agreed = answer(page)
    link = page.locator("button[data-link]").get_attribute("data-link") or ""
    assert len(link) < 100
    click(page.locator("summary").filter(has_text=message("export.title")).first)
    with page.expect_download() as download:
        click(page.get_by_role("button", name="HTML report"))
    assert offers.actions + runs.actions + others <= 30
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    with opened(browser, file, 1280) as report:
        saved = dict(plan_store().get(parse_qs(urlsplit(link).query)[PACKED][0]).entry.texts)
        assert told(saved) in report.locator(".answer").first.inner_text().replace(NO_BREAK, " ")
        assert saved[BECAUSE.id].strip() in report.locator("main").inner_text()
    other = open_page(f"{DECIDE.url_path}?{urlsplit(link).query}")
    assert answer(other) == agreed
    assert page.problems == other.problems == []  # type: ignore[attr-defined]


def test_cells_are_edited_in_place_marked_and_undone(open_page: Callable[..., Page]) -> None:
    page = open_page(f"{DECIDE.url_path}?{urlencode({'v': '5', 'y_offers': OFFERS, 'p_n': '32B', 'p_tokens': '2T'})}")
    offers, runs = Sheet(page, 0), Sheet(page, 1)
    expect(offers.cell(0, 1)).to_have_text("H100 SXM")
    before, texts = answer(page), texts_of(page)
    offers.type(1, 2, "51x")
    expect(offers.grid.get_by_test_id("glide-cell-0-1")).to_contain_text(message("decide.column.count"))
    expect(page.locator(".np-error")).to_have_count(1)
    expect(page.locator("td button")).to_have_count(3)
    offers.type(1, 2, "1,024")
    expect(page.locator(".np-error")).to_have_count(0)
    assert decide(DECIDE_FORM.parse(texts_of(page))).offers.offers[1].count == 1024
    open_from_menu(page, WHAT_IF)
    open_from_menu(page, DECIDE)
    page.wait_for_url(f"**/{DECIDE.url_path}*")
    settle(page)
    expect(Sheet(page, 0).cell(1, 2)).to_have_text("1,024")
    for _ in range(2):
        page.get_by_role("button", name="Undo", exact=True).click()
        settle(page)
    assert (answer(page), texts_of(page)) == (before, texts)
    expect(Sheet(page, 0).cell(1, 2)).to_have_text("512")
    runs = Sheet(page, 1)
    runs.type(0, 2, "3T")
    expect(page.get_by_label("Tokens", exact=True)).to_have_value("3T")
    enter(page.get_by_label("Tokens", exact=True), "4T")
    expect(Sheet(page, 1).cell(0, 2)).to_have_text("4T")
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_cell_becomes_the_plan_and_every_run_stays_what_it_was(open_page: Callable[..., Page]) -> None:
    page = open_page(
        f"calendar?{urlencode({'y_offers': OFFERS, 'y_train': chr(10) + '8B' + chr(9) + '8B', 'p_n': '32B'})}"
    )
    page.wait_for_url(f"**/{DECIDE.url_path}*")
    settle(page)
    before = answer(page)
    page.locator('td button[data-id="1.1"]').click()
    settle(page)
    expect(page.get_by_label("Parameters", exact=True)).to_have_value("8B")
    expect(page.get_by_label("Accelerators", exact=True)).to_have_value("512")
    expect(page.locator("td button[aria-pressed=true]")).to_have_attribute("data-id", "1.1")
    assert answer(page) == before
    assert [run.name for run in decide(DECIDE_FORM.parse(texts_of(page))).runs.runs] == ["32B", "8B"]
    page.get_by_role("button", name=message("decide.page.compare_all"), exact=True).click()
    settle(page)
    kept = message("sidebar.compared", count=4.0, most=float(limit("compared_plans")))
    expect(page.get_by_role("link", name=kept)).to_be_visible()
    page.get_by_role("button", name="Undo", exact=True).click()
    settle(page)
    expect(page.get_by_label("Parameters", exact=True)).to_have_value("32B")
    assert answer(page) == before
    assert page.problems == []  # type: ignore[attr-defined]
