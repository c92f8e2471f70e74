"""Every table can be sorted by its headings, by mouse and keyboard, and downloaded with plain numbers."""

from __future__ import annotations

import csv
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from pages.parts.registry import COMPUTE, FLOATS, LECTURE, MEMORY
from tests.browser.conftest import settle
from tests.browser.test_house import serious

pytestmark = pytest.mark.browser


def column(table: Locator, at: int) -> list[str]:
    return [row.locator("th, td").nth(at).inner_text() for row in table.locator("tbody tr").all()]


def downloaded(page: Page, table: Locator) -> list[dict[str, str]]:
    with page.expect_download() as saved:
        table.get_by_role("button", name="CSV").click()
    assert saved.value.suggested_filename.endswith(".csv")
    with saved.value.path().open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_heading_sorts_numbers_as_numbers(open_page: Callable[..., Page]) -> None:
    page = open_page(f"{COMPUTE.url_path}?c_parts=true")
    table = page.locator(".st-key-c_parts .np-tabled").first
    heading = table.get_by_role("columnheader", name="parameters")
    as_drawn = column(table, 1)
    sizes = [int(text.replace(",", "")) for text in as_drawn]
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert [int(text.replace(",", "")) for text in column(table, 1)] == sorted(sizes, reverse=True)
    heading.get_by_role("button").press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert [int(text.replace(",", "")) for text in column(table, 1)] == sorted(sizes)
    assert serious(page) == []
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") is None
    assert column(table, 1) == as_drawn
    words = table.get_by_role("columnheader", name="component")
    words.get_by_role("button").click()
    names = column(table, 0)
    assert names == sorted(names, key=str.lower)
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_download_has_plain_numbers_in_the_order_shown(open_page: Callable[..., Page]) -> None:
    page = open_page(MEMORY.url_path)
    table = page.locator(".np-tabled").first
    totals = table.get_by_role("columnheader", name="Total")
    totals.get_by_role("button").click()
    totals.get_by_role("button").click()
    rows = downloaded(page, table)
    sizes = [float(row["Total (B)"]) for row in rows]
    assert sizes == sorted(sizes)
    assert rows[0]["Optimizer"] == "SGD"
    assert sizes[-1] == pytest.approx(512e9)
    assert all(float(row["Largest model"]) > 1e9 for row in rows)


def test_remarks_and_links_keep_to_their_own_fields(open_page: Callable[..., Page]) -> None:
    page = open_page(LECTURE.url_path)
    rows = downloaded(page, page.locator(".np-tabled").first)
    third = next(row for row in rows if row["No."] == "F3")
    assert (third["Recomputed now"], third["Verdict"]) == ("0x3e200000 is 0.15625", "exact")
    assert third["Recomputed now note"].startswith("2^(124")


def test_a_table_drawn_by_hand_is_one_too(open_page: Callable[..., Page]) -> None:
    page = open_page(FLOATS.url_path)
    page.get_by_text("What each format can hold").click()
    settle(page)
    rows = downloaded(page, page.locator(".np-tabled", has_text="Smallest normal").first)
    largest = {row["Format"]: row["Largest"] for row in rows}
    assert (float(largest["fp16"]), float(largest["fp32"])) == (65504, pytest.approx(3.4028e38))


def test_no_text_is_a_formula_in_a_spreadsheet(open_page: Callable[..., Page]) -> None:
    page = open_page(MEMORY.url_path)
    table = page.locator(".np-tabled").first
    for risky in ("=1+1", "+1x", "-1x", "@x"):
        table.locator("tbody td").first.evaluate("(cell, text) => { cell.textContent = text }", risky)
        assert downloaded(page, table)[0]["Optimizer"] == f"'{risky}"
