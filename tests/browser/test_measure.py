"""Measuring on this machine in a real browser: to the end and after a reload, cancelled midway, and in line."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from core.benchmark.device import machine
from core.benchmark.programme import METHOD
from core.messages import message
from pages.common.registry import MEASURE
from tests.browser.conftest import settle, still
from tests.browser.test_all_pages import serious

pytestmark = pytest.mark.browser

CANCEL = message("measure.button.cancel")
CANCELLED, WAITING = "Cancelled", "Waiting for the device"

Open = Callable[..., Page]


def run_button(page: Page) -> Locator:
    return page.get_by_role(
        "button", name=message("measure.button.gpu" if machine().kind == "cuda" else "measure.button.cpu"), exact=True
    )


@pytest.fixture
def open_idle(open_page: Open) -> Open:
    """Open the page with given inputs while nothing runs; whatever is still running is cancelled first."""

    def open_(n: int, each: float, **options: str) -> Page:
        page = open_page(f"{MEASURE.url_path}?d_n={n}&d_each={each}+s", **options)
        cancel = page.get_by_role("button", name=CANCEL, exact=True)
        if cancel.count():
            cancel.click()
        expect(run_button(page)).to_be_enabled()
        return page

    return open_


def press(page: Page) -> None:
    """Begin a measurement."""
    run_button(page).click()
    settle(page)
    expect(page.get_by_role("progressbar").first).to_be_visible()


@pytest.mark.journey
def test_measuring_to_the_end_and_after_a_reload(open_idle: Open, open_page: Open) -> None:
    page = open_idle(256, 0.05)
    expect(page.locator(".np-note").filter(has_text=machine().name)).to_have_count(1)
    press(page)
    expect(run_button(page)).to_be_disabled()
    expect(run_button(page)).to_be_enabled()
    settle(page)
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.locator(".np-answer")).to_contain_text("FLOP/s")
    expect(page.locator(".np-note").filter(has_text=METHOD)).to_have_count(1)
    # Where the machine is busy a type may be too slow for its share of the time, but not all of them.
    expect(page.locator(".np-table tbody tr").first).to_contain_text("FLOP/s")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    press(page)  # at once
    expect(run_button(page)).to_be_enabled()
    settle(page)
    expect(page.get_by_text(message("measure.other_user"))).to_have_count(0)
    still(page)
    assert serious(page) == []

    again = open_page(MEASURE.url_path, theme="dark")
    expect(again.locator(".np-answer")).to_contain_text("FLOP/s")
    still(again)
    assert serious(again) == []
    assert page.problems == []  # type: ignore[attr-defined]


def test_cancelling_midway_keeps_what_was_measured(open_idle: Open) -> None:
    page = open_idle(128, 10)
    press(page)
    expect(page.get_by_text("(2 of")).to_be_visible()
    page.reload()
    settle(page)
    expect(page.get_by_text(message("measure.other_user"))).to_have_count(0)
    page.get_by_role("button", name=CANCEL, exact=True).click()
    expect(page.locator(".np-note").filter(has_text=CANCELLED)).to_contain_text(re.compile("[1-9][0-9]* of"))
    expect(run_button(page)).to_be_enabled()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_second_browser_waits_in_line_and_leaves_it(open_idle: Open, open_page: Open) -> None:
    first = open_idle(128, 20)
    press(first)
    second = open_page(f"{MEASURE.url_path}?d_n=128&d_each=0.05+s", theme="dark")
    expect(second.get_by_text(message("measure.other_user"))).to_be_visible()
    run_button(second).click()
    expect(second.get_by_text(WAITING)).to_be_visible()
    expect(run_button(second)).to_be_disabled()
    second.get_by_role("button", name=message("measure.button.leave"), exact=True).click()
    expect(second.get_by_text(WAITING)).to_have_count(0)
    second.get_by_role("button", name=CANCEL, exact=True).click()
    expect(run_button(second)).to_be_enabled()
    # The first browser learns of it by itself.
    expect(run_button(first)).to_be_enabled()
    expect(first.locator(".np-note").filter(has_text=CANCELLED)).to_be_visible()
    assert first.problems == second.problems == []  # type: ignore[attr-defined]
