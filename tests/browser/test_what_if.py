"""What if in a real browser: a cell becomes the plan by mouse and by keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from core.planning.form.plan_form import COUNT, PRICE
from pages.common.registry import WHAT_IF
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
SMALL = {
    "x": "accelerators",
    "xs": "512, 1,024, 2,048",
    "y": "MFU",
    "ys": "30%, 40%, 50%",
    "count": "1,024",
    "mfu": "40%",
}


def address(texts: dict[str, str]) -> str:
    return f"{WHAT_IF.url_path}?{urlencode({'v': '3', **{f'w_{name}': text for name, text in texts.items()}})}"


def value(page: Page, label: str) -> Locator:
    return page.get_by_role("textbox", name=label, exact=True)


def yours(page: Page) -> Locator:
    return page.locator(".board button[aria-pressed=true]")


def test_a_click_on_a_cell_makes_it_the_plan(open_page: OpenPage) -> None:
    page = open_page(address(SMALL))
    expect(yours(page)).to_have_attribute("data-id", "1,1")
    cell = page.locator('.board button[data-id="2,2"]')
    told = cell.inner_text().split()[0]
    cell.click()
    settle(page)
    expect(yours(page)).to_have_attribute("data-id", "2,2")
    expect(value(page, COUNT.label)).to_have_value("2,048")
    expect(value(page, "MFU")).to_have_value("50%")
    said = page.locator(".np-answer small").inner_text().replace("\N{NO-BREAK SPACE}", " ")
    assert f"Your plan: {told} days" in said
    assert page.locator(".board .xticks .tick").all_inner_texts() == ["512", "1,024", "2,048"]
    expect(page.locator("button[data-link]")).to_have_attribute("data-link", re.compile("p_count=2%2C048"))
    assert page.problems == []  # type: ignore[attr-defined]


def test_cell_of_another_accelerator_leaves_the_price_behind(open_page: OpenPage) -> None:
    texts = {"x": "accelerator kind", "xs": "H200 SXM, B200", "y": "tokens", "ys": "1T, 2T", "tokens": "1T"}
    page = open_page(address({**texts, "gpu": "H200 SXM", "price": "2.80"}))
    page.locator('.board button[data-id="0,1"]').click()
    settle(page)
    expect(page.get_by_label("Accelerator", exact=True).first).to_have_value("B200")
    expect(value(page, PRICE.label)).to_have_value("")
    expect(page.locator(".st-key-np-fields .np-note")).to_contain_text("H200 SXM")
    page.locator('.board button[data-id="0,0"]').click()
    settle(page)
    expect(value(page, PRICE.label)).to_have_value("")
    assert page.problems == []  # type: ignore[attr-defined]


def test_arrow_keys_reach_every_cell_and_a_key_chooses_it(open_page: OpenPage) -> None:
    page = open_page(address(SMALL))
    assert page.locator('.board button[tabindex="0"]').count() == 1
    yours(page).focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    settle(page)
    expect(yours(page)).to_have_attribute("data-id", "2,0")
    expect(value(page, COUNT.label)).to_have_value("512")
    focused = page.evaluate("[...document.querySelectorAll('*')].map(e => e.shadowRoot?.activeElement?.dataset.id)")
    assert "2,0" in focused
    assert page.problems == []  # type: ignore[attr-defined]
