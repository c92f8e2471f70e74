"""Every table can be sorted by its headings, by mouse and keyboard, and downloaded with plain numbers."""

from __future__ import annotations

import csv
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from core.fields import LINK_VERSION
from core.messages import message
from core.planning.comparison.entry import examples, pack
from pages.common.comparison_list import IN_LINK
from pages.common.registry import COMPARE, MEMORY
from tests.browser.test_all_pages import serious

pytestmark = pytest.mark.browser


def column(table: Locator, at: int) -> list[str]:
    return [row.locator("th, td").nth(at).inner_text() for row in table.locator("tbody tr").all()]


def downloaded(page: Page, table: Locator) -> list[dict[str, str]]:
    with page.expect_download() as saved:
        table.get_by_role("button", name="CSV").click()
    assert saved.value.suggested_filename.endswith(".csv")
    with saved.value.path().open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_headings_sort_and_downloads_have_plain_numbers(open_page: Callable[..., Page]) -> None:
    """Numbers as numbers, by mouse and keyboard, and the file in the order shown; no text is a formula there."""
    page = open_page(f"{MEMORY.url_path}?m_optims=true")
    table = page.locator(".np-tabled").first
    total, states = message("training.heading.peak"), message("training.optimizer.measured")
    heading = table.get_by_role("columnheader", name=total)
    as_drawn = column(table, 0)
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    sizes = [float(row[f"{total} (B)"]) for row in downloaded(page, table)]
    assert sizes == sorted(sizes, reverse=True)
    heading.get_by_role("button").press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    rows = downloaded(page, table)
    sizes = [float(row[f"{total} (B)"]) for row in rows]
    assert sizes == sorted(sizes)
    assert float(next(row for row in rows if row["Optimizer"] == "SGD")[states]) == 0
    assert [row["Optimizer"] for row in rows] == column(table, 0)
    assert serious(page) == []
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") is None
    assert column(table, 0) == as_drawn
    words = table.get_by_role("columnheader", name="Optimizer")
    words.get_by_role("button").click()
    names = column(table, 0)
    assert names == sorted(names, key=str.lower) != as_drawn
    for risky in ("=1+1", "+1x", "-1x", "@x"):
        table.locator("tbody td").first.evaluate("(cell, text) => { cell.textContent = text }", risky)
        assert downloaded(page, table)[0]["Optimizer"] == f"'{risky}"
    table.locator("tbody td").first.evaluate("cell => { cell.textContent = 'a;=1+1' }")
    assert downloaded(page, table)[0]["Optimizer"] == "a;'=1+1"  # two cells, where a semicolon separates them
    assert page.problems == []  # type: ignore[attr-defined]


def test_what_stands_under_a_table_is_no_row_of_it(open_page: Callable[..., Page]) -> None:
    """Compare's links are neither sorted nor taken away; its rents are whole numbers, not the three digits shown."""
    page = open_page(f"{COMPARE.url_path}?{urlencode({'v': LINK_VERSION, IN_LINK: pack(examples())})}")
    table = page.locator(".st-key-compare_table .np-tabled")
    expect(table.locator("tfoot a")).to_have_count(3)
    rows = {next(iter(row.values())): row for row in downloaded(page, table)}
    assert rows.keys() >= {"End-to-end time", "Cost"}
    assert "Open in" not in rows
    rents = [float(text) for plan, text in rows["Cost"].items() if plan.endswith(("H100", "H200", "B200"))]
    assert rents
    assert all(rent != float(f"{rent:.3g}") for rent in rents)
