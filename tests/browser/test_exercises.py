"""The path of exercises in a real browser: how far one has come is there on the next visit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.exercises.path import path
from core.messages import message
from pages.common.registry import EXERCISES
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser


def test_what_was_chosen_on_the_path_is_there_on_the_next_visit(open_page: Callable[..., Page], server: str) -> None:
    there = f"{EXERCISES.url_path}?e_how=follow+the+path"
    page, first = open_page(there), path().exercises[0]
    for box in ("Topics", "Sheet"):  # the path is the same for everybody
        expect(page.get_by_label(box, exact=True)).to_be_hidden()
    page.locator("form, [data-testid=stForm]").first.locator("label").filter(
        has=page.get_by_text(first.solution, exact=True)
    ).first.click()
    page.get_by_role("button", name=message("exercises.button.reveal")).first.click()
    expect(page.locator(".np-answer")).to_contain_text("1 of 1 right")
    page.wait_for_function("() => localStorage.getItem('napkin:steps')")
    for link in ("", there):  # another page, and then the path anew, whose link knows nothing
        page.goto(f"{server}/{link}")
    expect(page.locator(".np-answer")).to_contain_text("1 of 1 right")
    settle(page)
    assert f"steps={first.right_answer}" in page.url
    page.get_by_role("button", name=message("exercises.button.start_over")).click()
    expect(page.locator(".np-answer")).to_contain_text(message("exercises.progress.none"))
    settle(page)
    page.goto(f"{server}/{there}")
    settle(page)
    expect(page.locator(".np-answer")).to_contain_text(message("exercises.progress.none"))
