"""Changes made faster than the server answers: nothing is lost, and page, address, link and a reload agree."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page

from core.planning.form.plan_form import COUNT
from pages.common.registry import COMPUTE
from tests.browser.conftest import OpenPage, choose, open_preset, settle

pytestmark = [pytest.mark.browser, pytest.mark.patched]

Change = Callable[[Page], object]


def option(name: str) -> Change:
    """One of the options that stand side by side."""
    return lambda page: choose(page, name)


def preset(name: str) -> Change:
    return lambda page: open_preset(page, name)


def panel(title: str) -> Change:
    return lambda page: page.locator("summary", has_text=title).first.click()


def typed(label: str, text: str) -> Change:
    def change(page: Page) -> None:
        page.get_by_label(label, exact=True).fill(text)
        page.get_by_label(label, exact=True).press("Enter")

    return change


def held(page: Page) -> None:
    """From here on the browser hears nothing."""
    page.evaluate("traffic.held = []")


def heard(page: Page) -> None:
    """It hears all of it, and what comes."""
    page.evaluate("() => { const all = traffic.held; traffic.held = null; all.forEach(hear => hear()) }")


GPT, LLAMA = preset("GPT-3 175B"), preset("Llama 2 70B")
MOVES = panel("Sensitivity")

CASES: dict[str, tuple[int, tuple[Change, ...], dict[str, str]]] = {
    "a preset, a panel": (100, (GPT, MOVES), {"p_model": "GPT-3 175B", "p_tokens": "300B", "c_moves": "true"}),
    "a preset, a field of it": (
        0,
        (held, GPT, typed(COUNT.label, "20,000"), heard),
        {"p_model": "GPT-3 175B", "p_count": "20,000"},
    ),
    "two presets": (400, (GPT, LLAMA), {"p_model": "Llama 2 70B", "p_tokens": "2T", "p_gpu": "A100 SXM 80 GB"}),
    "a panel, a preset, the panel": (400, (MOVES, GPT, MOVES), {"p_model": "GPT-3 175B", "c_moves": "false"}),
    "a question, a panel": (400, (option("Tokens"), MOVES), {"p_find": "tokens", "c_moves": "true"}),
    "a preset, a field, a panel": (
        0,
        (held, GPT, typed("Tokens", "1T"), MOVES, heard),
        {"p_model": "GPT-3 175B", "p_tokens": "1T", "c_moves": "true"},
    ),
}
"""What is done → by how many milliseconds the browser hears its answers late, the changes, and what is wanted then."""


def fields(query: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(query).query, keep_blank_values=True)


def link(page: Page) -> str:
    return page.get_by_role("button", name="Copy link").get_attribute("data-link") or ""


def shown(page: Page) -> list[str]:
    """What the page's boxes hold, and its answer."""
    boxes: Locator = page.locator(".stApp input[type=text]:visible")
    return [page.locator(".np-answer").inner_text(), *(box.input_value() for box in boxes.all())]


@pytest.mark.parametrize("case", CASES)
def test_changes_faster_than_answers(open_page: OpenPage, case: str) -> None:
    late, changes, wanted = CASES[case]
    page = open_page(COMPUTE.url_path)
    page.evaluate("late => { traffic.late = late }", late)
    for change in changes:
        change(page)
    settle(page)
    linked = fields(link(page))
    assert {name: linked[name][0] for name in wanted} == wanted
    for name, values in fields(page.url).items():
        assert linked[name] == values, name
    seen, full, address = shown(page), link(page), page.url
    page.goto(address)
    settle(page)
    assert (shown(page), link(page)) == (seen, full)
    assert page.problems == []  # type: ignore[attr-defined]
