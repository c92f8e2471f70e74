"""Compute budget in a real browser: labels of pictures, and changes faster than answers."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from pages.common.registry import COMPUTE
from tests.browser.conftest import open_preset, settle, still

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
    expect(page.get_by_role("figure")).to_have_count(11)
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
    expect(page.locator(".js-plotly-plot")).to_have_count(3)
    linked = parse_qs(urlsplit(page.locator("button[data-link]").get_attribute("data-link") or "").query)
    assert (linked["p_model"], linked["p_tokens"], linked["c_moves"]) == (["GPT-3 175B"], ["300B"], ["true"])
    for name, values in parse_qs(urlsplit(page.url).query).items():
        assert linked[name] == values, name
    assert page.problems == []  # type: ignore[attr-defined]
