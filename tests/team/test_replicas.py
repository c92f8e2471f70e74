"""Napkin in a browser behind nginx: every page, files both ways, and a replica that dies under its visitor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from pages.common.registry import COMPUTE, PAGES
from tests.browser.conftest import Tabs, settle
from tests.team.conftest import Team

pytestmark = pytest.mark.browser


@pytest.fixture
def open_page(tabs: Tabs, team: Team) -> Iterator[Callable[[str], Page]]:
    """``open_page(path)``: a settled page behind the proxy, in the one tab of a test."""
    tab = tabs.borrow("light", 1280)

    def open_(path: str) -> Page:
        tab.goto(f"{team.url}/{path}")
        settle(tab)
        return tab

    yield open_
    tabs.give_back("light", tab)


def test_every_page_runs_under_the_policy(open_page: Callable[[str], Page]) -> None:
    for spec in PAGES:
        page = open_page(spec.url_path)
        expect(page.locator("h1").first).to_have_text(spec.h1)
        assert page.problems == [], spec.id  # type: ignore[attr-defined]


def test_files_go_through_both_ways(open_page: Callable[[str], Page], team: Team) -> None:
    """An upload must reach the replica of its session, and a download come from there."""
    seen = len(team.answers())
    page = open_page(f"{COMPUTE.url_path}?v=1&p_model=Own+(config.json)&c_take=true")
    here = team.serves(f"/{COMPUTE.url_path}", seen)
    with page.expect_download() as saved:
        page.get_by_test_id("stDownloadButton").first.get_by_role("button").click()
    assert saved.value.path().stat().st_size > 100
    assert team.serves("/media/", seen) is here
    page.get_by_test_id("stPopoverButton").filter(has_text="Shape").click()
    page.locator("summary", has_text="Read a Hugging Face config.json").click()
    shape = {"model_type": "gpt2", "n_layer": 3, "n_head": 4, "n_embd": 256, "vocab_size": 1000, "n_positions": 512}
    config = {"name": "config.json", "mimeType": "application/json", "buffer": json.dumps(shape).encode()}
    page.locator("input[type=file]").first.set_input_files([config])
    expect(page.locator("a[href*='vocab%3D1000']").first).to_be_visible()
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_visitor_of_a_killed_replica_goes_on_at_the_other(open_page: Callable[[str], Page], team: Team) -> None:
    """What was typed is in the address and in the browser, so the other replica shows the same and takes changes."""
    seen = len(team.answers())
    page = open_page(f"{COMPUTE.url_path}?p_tokens=14T")
    tokens, answer = page.get_by_role("textbox", name="Tokens", exact=True), page.locator(".np-answer")
    tokens.fill("13T")
    tokens.press("Enter")
    expect(answer).to_contain_text("on 13T tokens")
    killed = team.serves(f"/{COMPUTE.url_path}", seen)
    killed.kill()
    try:
        tokens.fill("12T")  # waits until the page has found the other replica, which makes its fields usable again
        tokens.press("Enter")
        expect(answer).to_contain_text("on 12T tokens")
        seen = len(team.answers())
        open_page(f"{COMPUTE.url_path}?p_tokens=11T")
        expect(answer).to_contain_text("on 11T tokens")
        assert team.serves(f"/{COMPUTE.url_path}", seen) is not killed
    finally:
        killed.start()
        killed.until_healthy()
