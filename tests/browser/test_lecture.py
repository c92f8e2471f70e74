"""The lecture page in a real browser: its panel, bad links, filters."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.lecture.catalogue import CLAIMS
from pages.common.registry import LECTURE
from tests.browser.conftest import settle
from tests.browser.test_tables import downloaded

pytestmark = pytest.mark.browser


@pytest.mark.journey
def test_every_claim_has_its_part_of_the_table_and_the_panel(open_page: Callable[..., Page]) -> None:
    """The topics fit their row; of what is downloaded, remarks and links keep to their own fields."""
    page = open_page(LECTURE.url_path)
    group = page.get_by_role("radiogroup", name="Topic")
    assert group.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    last = group.get_by_role("radio").last
    assert last.evaluate(
        "e => e.getBoundingClientRect().right <= e.closest('[data-testid=stMainBlockContainer]')"
        ".getBoundingClientRect().right"
    )
    rows = downloaded(page, page.locator(".np-tabled").first)
    third = next(row for row in rows if row["No."] == "F3")
    assert (third["Recomputed now"], third["Verdict"]) == ("0x3e200000 is 0.15625", "exact")
    assert third["Recomputed now note"].startswith("2^(124")
    page.get_by_text("How is this computed").first.click()
    settle(page)
    panel = page.locator(".st-key-lecture-how")
    said = panel.inner_text()
    assert [claim for claim in CLAIMS if not re.search(rf"\b{claim}\b", said)] == []
    titles = panel.locator("strong").all_inner_texts()
    assert len(titles) == len(set(titles))  # each formula once
    row = panel.get_by_role("row").filter(has_text="F3 · 0.15625 in fp32").first
    expect(row).to_contain_text("0.15625")
    assert panel.evaluate("e => e.getBoundingClientRect().height") < 5000
    assert page.locator(".katex-error").count() == 0


def test_a_bad_link_says_what_is_wrong(open_page: Callable[..., Page]) -> None:
    page = open_page(f"{LECTURE.url_path}?l_topic=Foo&l_verdict=bar&l_claim=Z9")
    for text in ("Topic: “Foo” is not", "Verdict: “bar” is not", "Claim: “Z9” is not"):
        expect(page.get_by_role("alert").filter(has_text=text)).to_be_visible()


@pytest.mark.parametrize("claim", ["F13", "F12", "C16", "M8"])
def test_a_link_lands_at_its_evidence(open_page: Callable[..., Page], claim: str) -> None:
    """What the claim's link is about is in sight without scrolling, on a page that is long."""
    page = open_page(f"{LECTURE.url_path}?l_claim={claim}")
    href = page.locator(".np-table a").first.get_attribute("href")
    link = CLAIMS[claim].link
    assert href
    assert link
    page = open_page(href)
    part = page.locator(f"[class~='st-key-{href.split('at=')[1].split('&')[0]}']").first
    expect(part).to_be_in_viewport()
    top = "e => e.getBoundingClientRect().top"
    assert 0 <= part.evaluate(top) < 200
