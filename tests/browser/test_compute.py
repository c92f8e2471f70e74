"""Compute budget in a real browser: labels of pictures, and changes faster than answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from core.planning.plan import OWN_SHAPE, TYPED
from pages.common.registry import COMPUTE, MEMORY
from tests.app.plan_pages import CONFIG
from tests.browser.conftest import open_from_menu, open_preset, select, settle, still

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]

PANELS = ("whole", "moves", "runs", "flops", "roof", "split", "parts", "table", "take")
ALL = "&".join(f"c_{name}=true" for name in PANELS)


def answers(page: Page, *parts: str) -> None:
    """The answer shows every one of ``parts``, at once or as soon as the run under way has ended."""
    for part in parts:
        expect(page.locator(".np-answer")).to_contain_text(part)


def whole_labels(page: Page) -> None:
    """No label of any picture is cut off by its frame."""
    for plot in page.locator(".js-plotly-plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
    cut = page.evaluate("""() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => {
        const frame = plot.getBoundingClientRect()
        return [...plot.querySelectorAll('.bartext, .annotation-text-g, .ytick text, .xtitle, .ytitle')].filter(t => {
            const b = t.getBoundingClientRect()
            return b.width && (b.left < frame.left - 1 || b.right > frame.right + 1 || b.bottom > frame.bottom + 1)
        }).map(t => t.textContent)})""")
    assert cut == []


def test_no_label_of_the_pictures_is_cut_off(open_page: OpenPage) -> None:
    """Narrow and wide, with long names and a sequence that makes every figure large."""
    page = open_page(f"compute-budget?v=1&p_model=DeepSeek-V3&p_seq=1000000&{ALL}", width=640)
    expect(page.get_by_role("figure")).to_have_count(7)
    whole_labels(page)
    page.set_viewport_size({"width": 1600, "height": 900})
    still(page)
    whole_labels(page)


def test_two_changes_at_once_leave_link_address_and_page_agreeing(open_page: OpenPage) -> None:
    """The second comes before the answer to the first: neither is lost, and the copied link says what is shown."""
    page = open_page(COMPUTE.url_path)
    open_preset(page, "GPT-3 175B")
    page.locator("summary", has_text="What moves the answer").first.click()
    expect(page.locator('button[data-link*="c_moves=true"]')).to_have_count(1)
    settle(page)
    answers(page, "GPT-3 175B (174.6B parameters) on 300B tokens")
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    linked = parse_qs(urlsplit(page.locator("button[data-link]").get_attribute("data-link") or "").query)
    assert (linked["p_model"], linked["p_tokens"], linked["c_moves"]) == (["GPT-3 175B"], ["300B"], ["true"])
    for name, values in parse_qs(urlsplit(page.url).query).items():
        assert linked[name] == values, name
    assert page.problems == []  # type: ignore[attr-defined]


def test_config_is_pasted_under_the_model_and_never_lost(open_page: OpenPage) -> None:
    page = open_page(COMPUTE.url_path)

    def open_box() -> None:
        page.get_by_test_id("stPopoverButton").filter(has_text="Shape").click()
        page.get_by_text("Read a Hugging Face config.json").click()

    select(page, "Model", OWN_SHAPE)
    expect(page.locator(".js-plotly-plot")).to_have_count(0)
    box = page.get_by_label("Paste a config.json", exact=True)
    box.fill(CONFIG)
    box.press("Control+Enter")
    settle(page)
    answers(page, "Your model")
    expect(box).to_have_count(0)
    for other in (TYPED, "Llama 3 70B"):
        select(page, "Model", other)
        select(page, "Model", OWN_SHAPE)
        answers(page, "Your model")
    page.get_by_role("button", name="New", exact=True).click()
    settle(page)
    select(page, "Model", OWN_SHAPE)
    answers(page, "Your model")
    open_box()
    expect(box).to_have_value(CONFIG)
    box.fill("{")
    box.press("Control+Enter")
    settle(page)
    page.keyboard.press("Escape")
    settle(page)
    answers(page, "Your model")
    open_box()
    expect(box).to_have_value("{")
    assert page.problems == []  # type: ignore[attr-defined]


def test_price_stays_with_its_accelerator_and_returns_with_it(open_page: OpenPage) -> None:
    page = open_page(f"{COMPUTE.url_path}?p_gpu=H200+SXM")
    price, said = page.get_by_label("Your price, $/h", exact=True), page.locator(".st-key-np-fields .np-note")
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
