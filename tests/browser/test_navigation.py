"""The navigation while a box is open or text is being typed: one click finishes that and opens the whole page."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from core.planning.comparison.entry import entry_of
from core.planning.form.plan_form import COUNT
from core.planning.plan import OWN_SHAPE
from core.store.locations import plan_store
from pages.common.registry import COMPARE, COMPUTE, DECIDE, HOME, MEMORY, PARALLEL, SAVED, TENSORS, PageSpec
from tests.browser.conftest import OpenPage, open_from_menu, settle

pytestmark = pytest.mark.browser

PLAN = {"p_n": "13B", "p_tokens": "2T", "p_count": "512"}
BOXES: tuple[tuple[PageSpec, str], ...] = (
    (COMPUTE, "Save"),
    (HOME, "Examples"),
    (MEMORY, "Layout"),
    (PARALLEL, "Constraints"),
    (DECIDE, "Limits"),
    (COMPARE, "Add saved plans"),
    (TENSORS, "More"),
)
"""A page, and a box on it: of the page's own, of its title, and of the sidebar."""


def open_box(page: Page, name: str) -> None:
    page.get_by_test_id("stPopoverButton").filter(has_text=name).first.click()
    settle(page)
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()


def expect_page_with_plan(page: Page, spec: PageSpec) -> None:
    """The whole page, with the plan in its sidebar, now and after the page is loaded again."""
    for _ in ("now", "loaded again"):
        expect(page.locator("h1")).to_have_text(spec.h1)
        expect(page.locator(".np-answer").first).to_be_visible()
        expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
        expect(page.get_by_label("Parameters", exact=True).first).to_have_value(PLAN["p_n"])
        expect(page.get_by_label(COUNT.label, exact=True).first).to_have_value(PLAN["p_count"])
        page.reload()
        settle(page)
    assert page.problems == []  # type: ignore[attr-defined]


@pytest.mark.journey
def test_menu_opens_compare_while_the_box_that_filled_it_is_open(open_page: OpenPage) -> None:
    saved = [plan_store().save(entry_of(f"Navigation {i}", {"n": "7B", "count": f"{i}"}), "", owner="") for i in (8, 9)]
    try:
        page = open_page(f"{COMPUTE.url_path}?{urlencode(PLAN)}")
        open_from_menu(page, SAVED)
        open_box(page, "Compare plans")
        box = page.get_by_test_id("stPopoverBody")
        box.get_by_role("combobox").fill("Navigation 8")
        page.get_by_role("option", name="Navigation 8").click()
        settle(page)
        page.keyboard.press("Tab")
        box.get_by_role("button", name="Add to comparison").click()
        settle(page)
        open_from_menu(page, COMPARE)
        expect(page.locator(".np-answer")).to_contain_text("Navigation 8")
        expect_page_with_plan(page, COMPARE)
    finally:
        for plan in saved:
            plan_store().archive(plan.id, "")
            plan_store().forget(plan.id)


@pytest.mark.parametrize(("spec", "box"), BOXES, ids=[f"{spec.id} {box}" for spec, box in BOXES])
def test_menu_closes_an_open_box_and_opens_the_page(open_page: OpenPage, spec: PageSpec, box: str) -> None:
    page = open_page(f"{COMPUTE.url_path}?{urlencode(PLAN)}")
    open_from_menu(page, spec)
    open_box(page, box)
    to = COMPUTE if spec == MEMORY else MEMORY
    open_from_menu(page, to)
    expect_page_with_plan(page, to)


@pytest.mark.parametrize(("label", "text"), [("Tokens", "3T"), ("Paste a config.json", '{"model_type": ')])
def test_menu_opens_the_page_right_after_text_was_typed(open_page: OpenPage, label: str, text: str) -> None:
    fields = {**PLAN, "p_model": OWN_SHAPE} if label.startswith("Paste") else PLAN
    page = open_page(f"{COMPUTE.url_path}?{urlencode(fields)}")
    page.get_by_label(label, exact=True).fill(text)
    open_from_menu(page, MEMORY)
    expect(page.locator("h1")).to_have_text(MEMORY.h1)
    expect(page.get_by_label(label, exact=True)).to_have_value(text)


def test_link_closes_an_open_box_and_opens_the_page_once(open_page: OpenPage) -> None:
    page = open_page(f"{COMPUTE.url_path}?{urlencode(PLAN)}")
    open_box(page, "Limits")
    page.get_by_test_id("stPopoverBody").locator("input").first.fill("5 MW")
    page.locator(".stMain a.np-in").first.evaluate("link => link.click()")
    settle(page)
    expect_page_with_plan(page, MEMORY)
    page.go_back()
    settle(page)
    expect_page_with_plan(page, COMPUTE)
