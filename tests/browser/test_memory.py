"""Training memory in a real browser: its pictures name everything inside their frames."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from core.planning.search_texts import FINE_TUNING_BATCH
from pages.common.registry import MEMORY
from tests.browser.conftest import settle, still

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


@pytest.mark.parametrize("width", [640, 1280, 1600])
def test_the_picture_names_every_class_and_the_memory(open_page: OpenPage, width: int) -> None:
    page = open_page(f"{MEMORY.url_path}?p_n=32B&p_lay=own", width=width)
    plot = page.locator(".js-plotly-plot")
    plot.locator(".main-svg").first.wait_for()
    still(page)
    written = plot.locator(".annotation").all_text_contents()
    for name in ("parameters", "gradients", "master weights", "optimizer state", "activations", "buffers", "runtime"):
        assert any(text.startswith(name) for text in written), written
    assert any("79.6 GiB" in text for text in written), written
    frame = plot.bounding_box()
    assert frame is not None
    boxes = []
    for label in plot.locator(".annotation-text-g").all():
        box = label.bounding_box()
        assert box is not None
        assert box["x"] >= frame["x"] - 1, label.text_content()
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1, label.text_content()
        boxes.append(box)
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            apart = a["x"] + a["width"] <= b["x"] + 1 or b["x"] + b["width"] <= a["x"] + 1
            above = a["y"] + a["height"] <= b["y"] + 3 or b["y"] + b["height"] <= a["y"] + 3
            assert apart or above, (a, b)


def test_what_is_wrong_is_said_over_the_answer_where_the_sidebar_is_shut(open_page: OpenPage) -> None:
    address = f"{MEMORY.url_path}?p_ft=adapters&p_target=foo_proj"
    for width in (1280, 390):
        page = open_page(address, width=width)
        said = page.locator(".stMain .np-error").get_by_text("“foo_proj” is no target module")
        expect(said).to_be_visible(visible=width == 390)
    above, below = said.bounding_box(), page.locator(".np-answer").first.bounding_box()
    assert above
    assert below
    assert above["y"] + above["height"] <= below["y"]


def test_fine_tuning_begins_with_a_batch_of_its_own_and_keeps_one_that_was_typed(open_page: OpenPage) -> None:
    page = open_page(f"{MEMORY.url_path}?p_model=Llama+3.1+8B&p_count=8&p_tokens=100M")
    batch = page.get_by_label("Global batch", exact=True)
    page.get_by_test_id("stPopoverButton").filter(has_text="What is trained").click()

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
