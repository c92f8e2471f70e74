"""Home in a real browser: from a newcomer’s question to its answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.messages import message
from core.planning.form.plan_form import plan_from
from core.planning.presets import FIRST_TUNING, MEMORY_PRESETS
from pages.common.registry import HOME, MEMORY
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser


def test_whether_a_model_can_be_fine_tuned_on_ones_card_is_a_click_away(open_page: Callable[..., Page]) -> None:
    """What a newcomer asks: the verdict, minutes and money on the first screen of a laptop."""
    page = open_page(HOME.url_path, width=1280)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("link", name=message("home.large.fine_tuning")).click()
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
