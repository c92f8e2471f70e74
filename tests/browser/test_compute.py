"""Compute budget in a real browser: a pasted config and a price are kept."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.planning.form.plan_form import PRICE
from core.planning.plan import OWN_SHAPE, TYPED
from pages.common.registry import COMPUTE, MEMORY
from tests.app.plan_pages import CONFIG
from tests.browser.conftest import open_from_menu, option_shown, select, settle

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def answers(page: Page, *parts: str) -> None:
    """The answer shows every one of ``parts``, at once or as soon as the run under way has ended."""
    for part in parts:
        expect(page.locator(".np-answer")).to_contain_text(part)


def test_config_is_pasted_under_the_model_and_never_lost(open_page: OpenPage) -> None:
    page = open_page(COMPUTE.url_path)

    def open_box() -> None:
        page.get_by_test_id("stPopoverButton").filter(has_text="Shape").click()
        page.get_by_text("Read a Hugging Face config.json").click()

    select(page, "Model", option_shown("model", OWN_SHAPE))
    expect(page.locator(".js-plotly-plot")).to_have_count(0)
    box = page.get_by_label("Paste a config.json", exact=True)
    box.fill(CONFIG)
    box.press("Control+Enter")
    settle(page)
    answers(page, "95,040 parameters")
    expect(box).to_have_count(0)
    for other in (TYPED, "Llama 3 70B"):
        select(page, "Model", option_shown("model", other))
        select(page, "Model", option_shown("model", OWN_SHAPE))
        answers(page, "95,040 parameters")
    page.get_by_role("button", name="New", exact=True).click()
    settle(page)
    select(page, "Model", option_shown("model", OWN_SHAPE))
    answers(page, "95,040 parameters")
    open_box()
    expect(box).to_have_value(CONFIG)
    box.fill("{")
    box.press("Control+Enter")
    settle(page)
    page.keyboard.press("Escape")
    settle(page)
    answers(page, "95,040 parameters")
    open_box()
    expect(box).to_have_value("{")
    assert page.problems == []  # type: ignore[attr-defined]


def test_price_stays_with_its_accelerator_and_returns_with_it(open_page: OpenPage) -> None:
    page = open_page(f"{COMPUTE.url_path}?p_gpu=H200+SXM")
    price, said = page.get_by_label(PRICE.label, exact=True), page.locator(".st-key-np-fields .np-note")
    price.fill("2.80")
    price.press("Enter")
    settle(page)
    expect(said).to_have_count(0)
    select(page, "Accelerator", "MI355X")
    expect(price).to_have_value("")
    expect(said).to_contain_text("H200 SXM")
    expect(page.locator("button[data-link]")).to_have_attribute("data-link", re.compile("p_price=&"))
    open_from_menu(page, MEMORY)
    price.fill("3")
    price.press("Enter")
    settle(page)
    expect(said).to_have_count(0)
    select(page, "Accelerator", "H200 SXM")
    expect(price).to_have_value("2.80")
    select(page, "Accelerator", "MI355X")
    expect(price).to_have_value("3")
    page.get_by_role("button", name="Undo", exact=True).click()
    settle(page)
    expect(price).to_have_value("2.80")
    assert page.problems == []  # type: ignore[attr-defined]
