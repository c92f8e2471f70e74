"""Pools of Calendar in a real browser: offers as people type them, and a pool that becomes the plan and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from pages.common.registry import CALENDAR, COMPUTE
from tests.browser.conftest import open_from_menu, settle, still

pytestmark = pytest.mark.browser

OFFERS = "256 own H100\n512 rented H200 at $2.8/h\n256 GB200 (NVL72)\n512 MI355X"
ASKED = {"model": "Llama 3 70B", "tokens": "2T", "count": "512", "start": "2027-01-15", "due": "2027-04-14"}
ALONE = "H200 SXM"
"""The run's pool before a pool is chosen for all runs."""


def opened(open_page: Callable[..., Page], texts: dict[str, str]) -> Page:
    fields = {f"y_{name}": text for name, text in {**ASKED, **texts}.items()}
    return open_page(f"{CALENDAR.url_path}?{urlencode({'v': '3', **fields})}")


def fields(page: Page) -> dict[str, str]:
    """The fields of the page's own link."""
    link = page.locator("button[data-link]").get_attribute("data-link") or ""
    return dict(parse_qsl(urlsplit(link).query, keep_blank_values=True))


def choose(page: Page) -> str:
    """Make the best pool the plan; its name."""
    page.locator("summary").filter(has_text="Which of ours").click()
    settle(page)
    text = page.locator(".np-takeaway").filter(has_text="every limit").inner_text()
    best = re.search(r"the best is ([\d,]+ [\w ]+?)(?:,| for)", text.replace("\N{NO-BREAK SPACE}", " "))
    assert best, text
    page.get_by_role("button", name=best[1], exact=True).click()
    settle(page)
    return best[1]


@pytest.mark.journey
def test_a_pool_becomes_the_plan_without_loss_and_undo_goes_back(open_page: Callable[..., Page]) -> None:
    page = opened(open_page, {"pools": OFFERS, "r1p": ALONE, "r1c": "64"})
    before = fields(page)
    assert (before["y_r1p"], before["p_gpu"]) == (ALONE, "H100 SXM")
    chosen = choose(page)
    after = fields(page)
    count, _, accelerator = chosen.partition(" ")
    assert (after["p_count"], after["p_gpu"], after["y_pools"]) == (count, accelerator, before["y_pools"])
    said = page.locator(".np-note").filter(has_text="instead of")
    expect(said).to_contain_text(chosen)
    expect(said).to_contain_text("512 H100 SXM")
    page.get_by_role("button", name="Undo", exact=True).click()
    settle(page)
    assert {**fields(page), "y_which": ""} == {**before, "y_which": ""}
    expect(said).to_have_count(0)
    expect(page.get_by_label("1 · pool", exact=True)).to_have_value(ALONE)
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_disabled()


def test_undo_on_another_page_brings_back_the_pools_of_the_runs(open_page: Callable[..., Page]) -> None:
    page = opened(open_page, {"pools": OFFERS, "r1p": ALONE})
    before = fields(page)
    choose(page)
    open_from_menu(page, COMPUTE)
    page.get_by_role("button", name="Undo", exact=True).click()
    settle(page)
    open_from_menu(page, CALENDAR)
    page.wait_for_url(f"**/{CALENDAR.url_path}*")
    settle(page)
    assert {**fields(page), "y_which": ""} == {**before, "y_which": ""}


def test_the_chosen_pool_stays_in_the_list_and_is_chosen_again_from_it(open_page: Callable[..., Page]) -> None:
    page = opened(open_page, {"pools": OFFERS})
    chosen = choose(page)
    answer = page.locator(".np-answer").first.inner_text()
    count, _, name = chosen.partition(" ")
    row = page.get_by_role("row").filter(has_text=re.compile(rf"^{name}")).filter(has_text=f"✓ {count}")
    expect(row).to_have_count(1)
    page.get_by_role("button", name=chosen, exact=True).click()
    settle(page)
    assert page.locator(".np-answer").first.inner_text() == answer
    assert fields(page)["y_pools"] == OFFERS


def test_offers_as_people_type_them_are_read_and_bad_ones_leave_the_answer_in_sight(
    open_page: Callable[..., Page],
) -> None:
    page = opened(open_page, {"model": "Llama 3 8B"})
    page.set_viewport_size({"width": 1280, "height": 720})
    page.locator("summary").filter(has_text="Additional pools").click()
    settle(page)
    box = page.locator("textarea:visible").first
    errors = page.locator(".np-error")
    for lines, wrong in ((OFFERS, 0), ("\n".join(f"{n} H100 for €3/h" for n in range(1, 8)), 1)):
        box.fill(lines)
        box.press("Control+Enter")
        settle(page)
        expect(errors).to_have_count(wrong)
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 0)")
    still(page)
    bottom = page.locator(".np-answer").first.evaluate("answer => answer.getBoundingClientRect().bottom")
    assert bottom < 720 / 2
    box.fill(OFFERS)
    box.press("Control+Enter")
    settle(page)
    read = page.locator(".np-note").filter(has_text="Read as").inner_text()
    assert all(name in read for name in ("H100 SXM", "H200 SXM", "GB200", "MI355X"))
    assert page.problems == []  # type: ignore[attr-defined]
