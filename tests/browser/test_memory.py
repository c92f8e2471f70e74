"""Training memory in a real browser: what is wrong is said, and the batch that fine-tuning begins with."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from core.messages import message
from core.planning.plan import FINE_TUNING_BATCH
from pages.common.registry import MEMORY
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def test_what_is_wrong_is_said_over_the_answer_where_the_sidebar_is_shut(open_page: OpenPage) -> None:
    address = f"{MEMORY.url_path}?p_ft=adapters&p_target=foo_proj"
    for width in (1280, 390):
        page = open_page(address, width=width)
        said = page.locator(".stMain .np-error").get_by_text("“foo_proj” is not a target module")
        expect(said).to_be_visible(visible=width == 390)
    above, below = said.bounding_box(), page.locator(".np-answer").first.bounding_box()
    assert above
    assert below
    assert above["y"] + above["height"] <= below["y"]


def test_fine_tuning_begins_with_a_batch_of_its_own_and_keeps_one_that_was_typed(open_page: OpenPage) -> None:
    page = open_page(f"{MEMORY.url_path}?p_model=Llama+3.1+8B&p_count=8&p_tokens=100M")
    batch = page.get_by_label("Global batch", exact=True)
    page.get_by_test_id("stPopoverButton").filter(has_text=message("sidebar.trained")).click()

    def train(what: str) -> None:
        settle(page)
        page.get_by_role("combobox", name="Trained").click()
        page.get_by_role("option", name=what, exact=True).click()
        settle(page)

    def type_batch(text: str) -> None:
        batch.fill(text)
        batch.press("Enter")
        settle(page)

    begun = batch.input_value()
    train("adapters")
    expect(batch).to_have_value(FINE_TUNING_BATCH)
    assert parse_qs(urlsplit(page.url).query)["p_gb"] == [FINE_TUNING_BATCH]
    train("last layers")
    expect(batch).to_have_value(FINE_TUNING_BATCH)
    train("everything")
    expect(batch).to_have_value(begun)
    train("adapters")
    type_batch("96")
    train("everything")
    expect(batch).to_have_value("96")
    type_batch(FINE_TUNING_BATCH)
    train("adapters")
    train("everything")
    expect(batch).to_have_value(FINE_TUNING_BATCH)
