"""Home in a real browser: how its three answers are computed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.planning.form.plan_form import plan_from
from core.planning.presets import FIRST_TUNING, MEMORY_PRESETS
from pages.common.registry import FLOATS, HOME, MEMORY
from tests.browser.conftest import open_from_menu, settle

pytestmark = pytest.mark.browser


def test_the_steps_stand_under_the_question_that_they_answer(open_page: Callable[..., Page]) -> None:
    page = open_page(HOME.url_path)
    page.get_by_text("How is this computed").click()
    settle(page)
    panel = page.locator('[data-testid="stExpander"]').filter(has_text="How is this computed")
    questions = page.locator("h2.np-question").all_inner_texts()
    assert panel.locator("h3").all_inner_texts() == questions
    assert len(questions) == 3
    expect(panel.get_by_text("Memory that the model states leave")).to_have_count(0)  # nobody asked for it
    for name in ("fp32", "fp16", "bf16"):
        expect(panel).to_contain_text(name)
    expect(panel.get_by_text("Value of a normal number")).to_have_count(1)
    expect(panel.locator(".katex-error")).to_have_count(0)
    assert page.problems == []  # type: ignore[attr-defined]


def test_whether_a_model_can_be_fine_tuned_on_ones_card_is_a_click_away(open_page: Callable[..., Page]) -> None:
    """What a newcomer asks: the verdict, minutes and money on the first screen of a laptop."""
    page = open_page(HOME.url_path, width=1280)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("link", name="Can I fine-tune Llama 3.1 8B on my 4090?").click()
    page.wait_for_url(f"**/{MEMORY.url_path}*")
    settle(page)
    plan = plan_from(MEMORY_PRESETS[FIRST_TUNING])
    verdict = page.locator(".np-answer").first
    expect(verdict).to_contain_text(f"Llama 3.1 8B fits on one {plan.accelerator}")
    taken = page.get_by_text("tokens/s").first
    for one in (verdict, taken):
        box = one.bounding_box()
        assert box is not None
        assert 0 <= box["y"] <= box["y"] + box["height"] <= 800
    expect(taken).to_contain_text("$")
    assert page.problems == []  # type: ignore[attr-defined]


def test_the_plans_sidebar_leaves_no_empty_place_on_a_page_without_a_plan(open_page: Callable[..., Page]) -> None:
    page = open_page(HOME.url_path, width=1280)
    begins = "main => main.getBoundingClientRect().left"
    assert page.locator(".stMain").evaluate(begins) == 300
    open_from_menu(page, FLOATS)
    page.wait_for_url(f"**/{FLOATS.url_path}*")
    settle(page)
    assert page.locator(".stMain").evaluate(begins) == 0
    expect(page.get_by_role("img", name="Logo")).to_be_visible()
    open_from_menu(page, HOME)
    expect(page.locator(".np-plan")).to_be_visible()
    assert page.locator(".stMain").evaluate(begins) == 300
