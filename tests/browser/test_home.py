"""Home in a real browser: how its three answers are computed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from pages.common.registry import HOME
from tests.browser.conftest import settle

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
