"""Measuring on this machine in a real browser: to the end, cancelled midway, and watched by somebody else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from core.measure.device import machine
from pages.parts.registry import DEVICE
from tests.browser.conftest import settle
from tests.browser.test_house import serious

pytestmark = pytest.mark.browser

Open = Callable[..., Page]

KIND = "GPU" if machine().kind == "cuda" else "CPU"


def run_button(page: Page) -> Locator:
    return page.get_by_role("button", name=f"Measure on this {KIND}", exact=True)


def row(page: Page, dtype: str) -> Locator:
    """The table row of a measured dtype."""
    return page.locator(".np-table tbody tr").filter(has=page.get_by_role("cell", name=dtype, exact=True))


@pytest.fixture
def open_idle(open_page: Open) -> Open:
    """Open the page with given inputs while nothing runs; whatever is still running is cancelled first."""

    def open_(n: int, seconds: float, **options: str) -> Page:
        page = open_page(f"{DEVICE.url_path}?d_n={n}&d_s={seconds}+s", **options)
        cancel = page.get_by_role("button", name="Cancel", exact=True)
        if cancel.count():
            cancel.click()
        expect(run_button(page)).to_be_enabled()
        return page

    return open_


def test_measuring_to_the_end(open_idle: Open, open_page: Open) -> None:
    page = open_idle(256, 0.5)
    expect(page.locator(".np-note").filter(has_text=machine().name)).to_have_count(1)
    run_button(page).click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(run_button(page)).to_be_disabled()
    expect(run_button(page)).to_be_enabled()
    settle(page)

    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.locator(".np-answer")).to_contain_text("FLOP/s in")
    expect(page.locator(".np-answer")).to_contain_text("method matmul-1")
    expect(row(page, "fp32")).to_contain_text("FLOP/s")
    expect(row(page, "bf16")).to_contain_text("FLOP/s")
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    page.wait_for_timeout(500)
    assert serious(page) == []

    page.get_by_text("How is this computed").click()
    settle(page)
    expect(page.get_by_text("Achieved rate of a timed matmul").first).to_be_visible()
    expect(page.get_by_text("random normal numbers")).to_be_visible()

    again = open_page(DEVICE.url_path, theme="dark")
    assert again.locator(".np-answer").inner_text() == page.locator(".np-answer").inner_text()
    again.wait_for_timeout(500)
    assert serious(again) == []
    assert page.problems == []  # type: ignore[attr-defined]


def test_cancelling_midway_keeps_what_was_measured(open_idle: Open) -> None:
    page = open_idle(128, 3)
    run_button(page).click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    settle(page)  # until then results of an earlier run may still stand in the table
    expect(row(page, "fp32")).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    note = page.locator(".np-note").filter(has_text="Cancelled")
    expect(note).to_contain_text("Kept: fp32. Not measured:")
    expect(run_button(page)).to_be_enabled()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(row(page, "fp32")).to_contain_text("FLOP/s")
    expect(row(page, "bf16")).to_have_count(0)
    page.reload()
    settle(page)
    expect(page.locator(".np-note").filter(has_text="Cancelled")).to_contain_text("Kept: fp32")
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_second_browser_watches_and_may_cancel(open_idle: Open, open_page: Open) -> None:
    first = open_idle(128, 20)
    run_button(first).click()
    expect(first.get_by_role("progressbar")).to_be_visible()
    second = open_page(DEVICE.url_path, theme="dark")
    expect(run_button(second)).to_be_disabled()
    expect(second.get_by_text("Somebody else started this measurement")).to_be_visible()
    bar = second.get_by_role("progressbar")
    expect(bar).to_be_visible()
    before = bar.get_attribute("aria-valuenow")
    expect(bar).not_to_have_attribute("aria-valuenow", before or "")
    second.get_by_role("button", name="Cancel", exact=True).click()
    expect(run_button(second)).to_be_enabled()
    # The first browser learns of it by itself.
    expect(run_button(first)).to_be_enabled()
    expect(first.locator(".np-note").filter(has_text="Cancelled")).to_be_visible()
    assert first.problems == second.problems == []  # type: ignore[attr-defined]
