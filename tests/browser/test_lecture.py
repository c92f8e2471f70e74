"""The lecture page in a real browser: its panel, bad links, filters."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.lecture.catalogue import CLAIMS
from core.lecture.deck import lecture_slides
from core.messages import message
from pages.common.figures import LEAST
from pages.common.registry import LECTURE, TENSORS
from pages.common.slides import slide_address
from tests.browser.conftest import settle, still
from tests.browser.test_projector import SMALL
from tests.browser.test_tables import downloaded

pytestmark = pytest.mark.browser

SLIDES = lecture_slides()


@pytest.mark.journey
def test_every_claim_has_its_part_of_the_table_and_the_panel(open_page: Callable[..., Page]) -> None:
    """Of what is downloaded, remarks and links keep to their own fields."""
    page = open_page(f"{LECTURE.url_path}?l_topic=All")
    topic = open_page(LECTURE.url_path)
    rows = downloaded(topic, topic.locator(".np-tabled").first)
    third = next(row for row in rows if row[message("lecture.heading.number")] == "1.3")
    found = message("lecture.heading.found")
    assert (third[found], third[message("lecture.heading.verdict")]) == ("0x3e200000 is 0.15625.", "exact")
    assert third[f"{found} note"].startswith("2^(124")
    page.get_by_text("How is this computed").first.click()
    settle(page)
    panel = page.locator(".st-key-lecture-how")
    said = panel.inner_text()
    assert [c.number for c in CLAIMS.values() if not re.search(rf"(?<![.\d]){re.escape(c.number)}(?!\d)", said)] == []
    titles = panel.locator("strong").all_inner_texts()
    assert len(titles) == len(set(titles))  # each formula once


def test_a_deck_goes_across_pages_and_the_notes_follow(open_page: Callable[..., Page]) -> None:
    """A press reveals what was asked, the next one goes on; the second window marks the slide on the wall."""
    panel = open_page(f"{LECTURE.url_path}?l_deck=true")
    with panel.context.expect_page() as opened:
        panel.get_by_role("link", name=message("lecture.deck.start")).click()
    wall = opened.value
    settle(wall)
    for number, slide in enumerate(SLIDES[:8], 1):
        expect(wall.locator(".np-slide")).to_have_text(slide.headline)
        expect(wall.locator(".np-bar > span")).to_have_text(f"{number} of {len(SLIDES)}")
        settle(wall)
        expect(panel.locator(".np-notes > [data-now=now]")).to_contain_text(slide.say)
        if slide.ask:
            expect(wall.locator(".np-predict")).to_have_text(slide.ask)
            wall.keyboard.press("PageDown")
            expect(wall.locator(".np-predict")).to_be_hidden()
            expect(wall.locator(".np-answer:visible, .np-takeaway:visible").first).to_be_visible()
        wall.keyboard.press("ArrowRight")
    expect(wall.locator(".np-slide")).to_have_text(SLIDES[8].headline)
    wall.keyboard.press("ArrowLeft")
    expect(wall.locator(".np-slide")).to_have_text(SLIDES[7].headline)
    assert TENSORS.url_path in wall.url
    late = panel.context.new_page()
    late.goto(panel.url)
    settle(late)
    expect(late.locator(".np-notes > [data-now=now]")).to_contain_text(SLIDES[7].say)
    expect(late.locator(".np-notes > [data-now=next]")).to_contain_text(SLIDES[8].say)
    until = sum(slide.minutes for slide in SLIDES[:8])
    expect(late.get_by_role("timer")).to_contain_text(f"this slide ends at {until:g} min")
    wall.goto(f"{wall.url.partition('?')[0].rpartition('/')[0]}/{slide_address(27)}")
    late.goto(panel.url + "&at=l_deck")
    expect(late.locator(".np-notes > [data-now=now]")).to_contain_text(SLIDES[26].say)
    expect(late.locator(".np-notes > [data-now=now]")).to_be_in_viewport(ratio=1)
    expect(late.get_by_role("timer")).to_be_in_viewport(ratio=1)
    assert panel.problems == []  # type: ignore[attr-defined]


def test_a_link_to_a_deck_of_ones_own_says_so(open_page: Callable[..., Page]) -> None:
    page = open_page(f"{LECTURE.url_path}?l_deck=true&deck=cut")
    expect(page.locator(".np-error")).to_contain_text(message("lecture.deck.other"))
    expect(page.locator(".np-notes > li")).to_have_count(len(SLIDES))


@pytest.mark.parametrize("topic", ["All", "Compute"])
def test_verdicts_are_whole_on_a_phone(open_page: Callable[..., Page], topic: str) -> None:
    """Each with its claim, what came out and its link, nothing beside the screen."""
    page = open_page(f"{LECTURE.url_path}?l_topic={topic}")
    page.set_viewport_size({"width": 390, "height": 844})
    still(page)
    cells = page.locator(".np-tabled tbody td").evaluate_all("all => all.map(e => e.getBoundingClientRect().toJSON())")
    assert len(cells) >= 5 * 20
    assert all(cell["left"] >= 0 and cell["right"] <= 390 for cell in cells)


@pytest.mark.long
def test_every_claim_is_read_from_the_last_row(open_page: Callable[..., Page], server: str) -> None:
    """On a projector no letter is smaller than 24 px, and what came out begins on the first screen."""
    page = open_page(LECTURE.url_path)
    page.set_viewport_size({"width": 1280, "height": 720})
    small: list[str] = []
    for claim in CLAIMS:
        page.goto(f"{server}/{LECTURE.url_path}?l_topic=All&l_claim={claim}&projector=true")
        settle(page)
        still(page)
        small += [f"{claim}: {text}" for text in page.evaluate(SMALL, LEAST)]
        assert page.evaluate("document.querySelector('.np-answer').getBoundingClientRect().bottom") < 720, claim
    assert LEAST >= 24
    assert small == []
