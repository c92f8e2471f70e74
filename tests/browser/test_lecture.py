"""The lecture page in a real browser: its panel, bad links, filters."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.lecture import CLAIMS
from pages.parts.registry import LECTURE
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser


def test_every_claim_has_its_part_of_the_panel(open_page: Callable[..., Page]) -> None:
    page = open_page(LECTURE.url_path)
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
    for text in ("Topic: the link says “Foo”", "Verdict: the link says “bar”", "Claim: the link says “Z9”"):
        expect(page.get_by_role("alert").filter(has_text=text)).to_be_visible()


def test_one_claim_is_a_sentence_of_its_own(open_page: Callable[..., Page]) -> None:
    page = open_page(f"{LECTURE.url_path}?l_claim=F9")
    expect(page.locator(".np-answer")).to_contain_text("This claim needs care.")


def test_the_topics_fit_their_row(open_page: Callable[..., Page]) -> None:
    page = open_page(LECTURE.url_path)
    group = page.get_by_role("radiogroup", name="Topic")
    assert group.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    last = group.get_by_role("radio").last
    assert last.evaluate(
        "e => e.getBoundingClientRect().right <= e.closest('[data-testid=stMainBlockContainer]')"
        ".getBoundingClientRect().right"
    )


def test_segments_are_as_high_as_the_fields_beside_them(open_page: Callable[..., Page]) -> None:
    page = open_page("training-memory")
    segment = page.get_by_role("radiogroup", name="Model states across accelerators").get_by_role("radio").first
    field = page.get_by_test_id("stNumberInputContainer").or_(page.get_by_test_id("stTextInputRootElement")).first
    assert segment.bounding_box()["height"] == field.bounding_box()["height"]  # type: ignore[index]
