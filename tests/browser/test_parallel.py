"""Parallel plan in a real browser: a row of the table put in force."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from pages.common.registry import PARALLEL
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
SMALL = {"model": "Llama 3.1 8B", "count": "16", "gb": "128", "seq": "4096", "tokens": "1T"}


def address(**texts: str) -> str:
    fields = "&".join(f"s_{name}={text.replace(' ', '+')}" for name, text in {**SMALL, **texts}.items())
    return f"{PARALLEL.url_path}?v=3&{fields}"


def test_a_row_of_the_table_becomes_the_plan_in_force(open_page: OpenPage) -> None:
    page = open_page(address(space="true"))
    row = page.locator("tbody tr").filter(has=page.locator("button.pick")).nth(2)
    name = row.locator("button.pick")
    text = name.inner_text()
    name.click()
    settle(page)
    expect(page.get_by_text("The custom layout is")).to_be_visible()
    expect(page.locator("button.pick[aria-pressed=true]")).to_have_text(text)
    assert page.problems == []  # type: ignore[attr-defined]
