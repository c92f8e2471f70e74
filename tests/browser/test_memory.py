"""Training memory in a real browser: the answer, the chips, the picture, bad input and the link."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from pages.parts.registry import MEMORY
from tests.browser.conftest import settle, still

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def answer(page: Page) -> str:
    return page.locator(".np-answer").first.inner_text().replace("\N{NO-BREAK SPACE}", " ")


def fill(page: Page, label: str, text: str) -> None:
    box = page.get_by_label(label, exact=True)
    box.fill(text)
    box.press("Enter")
    settle(page)


def test_first_sight_answers_the_lectures_question(open_page: OpenPage) -> None:
    """Then the picture at every width, and what opens on request."""
    page = open_page(MEMORY.url_path)
    text = answer(page)
    assert "8 × H100 SXM 80 GB hold 40B parameters under AdamW in bf16 with fp32 master weights." in text
    assert "A 32B model takes 512 GB and leaves 128 GB, 16 GB on each." in text
    assert "16 bytes each: 2 parameters + 2 gradients + 4 master weights + 8 optimizer state" in text
    expect(page.get_by_role("figure")).to_have_count(1)
    segment = page.get_by_role("radiogroup", name="Model states across accelerators").get_by_role("radio").first
    field = page.get_by_test_id("stNumberInputContainer").or_(page.get_by_test_id("stTextInputRootElement")).first
    assert segment.bounding_box()["height"] == field.bounding_box()["height"]  # type: ignore[index]
    for width in (1280, 1600, 640):
        page.set_viewport_size({"width": width, "height": 900})
        draws_every_optimizer_twice_and_the_memory_line(page)

    page.get_by_text("How is this computed").click()
    settle(page)
    panel = page.locator('[data-testid="stExpander"]').filter(has_text="How is this computed")
    expect(panel.locator(".katex-display")).to_have_count(16)  # eight formulas, in symbols and in numbers
    expect(panel.get_by_role("link", name="ZeRO").first).to_have_attribute("href", "https://arxiv.org/abs/1910.02054")

    expect(page.locator('[data-testid="stDataFrame"]')).to_have_count(0)
    page.get_by_text("Each optimizer under each precision").click()
    settle(page)
    expect(page.locator('[data-testid="stDataFrame"]')).to_have_count(1)
    assert page.problems == []  # type: ignore[attr-defined]


def draws_every_optimizer_twice_and_the_memory_line(page: Page) -> None:
    plot = page.locator(".js-plotly-plot")
    plot.locator(".main-svg").first.wait_for()
    still(page)
    ticks = plot.locator(".ytick text, .y2tick text").all_text_contents()
    for name in ("AdamW", "Adam", "RMSProp", "AdaGrad", "SGD momentum", "SGD"):
        assert sum(tick.strip() == name for tick in ticks) == 1, ticks
    for figure in ("AdamW512 GB, 128 GB left", "SGD256 GB, 384 GB left"):
        assert any(tick.strip() == figure for tick in ticks), ticks
    written = plot.locator(".annotation").all_text_contents()
    for text in ("parameters", "gradients", "optimizer state", "memory of 8 × H100 SXM: 640 GB"):
        assert text in written, written
    frame = plot.bounding_box()
    assert frame is not None
    for label in plot.locator(".annotation-text-g, .ytick text, .y2tick text").all():
        box = label.bounding_box()
        assert box is not None
        assert box["x"] >= frame["x"] - 1, label.text_content()
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1, label.text_content()


STORIES = {
    "Lecture: 8 × H100, fp32 AdamW": "A 40B model takes all 640 GB, to the last byte",
    "Does mixed precision save?": "hold 40B parameters under AdamW in bf16 with fp32 master weights.",
    "70B checkpoint": "A 70B model takes 1,120 GB: 480 GB too much",
    "Without sharding": "hold 5B parameters under AdamW in fp32, a full copy on each.",
    "7B on one 24 GB card": "One RTX 4090 24 GB holds 1.5B parameters",
    "Llama 3.1 405B states": "A 405.9B model takes 7,305 GB and leaves 374.7 GB",
}


MISTAKES = [
    ("Parameters", "seventy", "is not a count"),
    ("Parameters", "1e40", "out of range"),
    ("Parameters", "0", "out of range"),
    ("How many", "8.5", "is not a whole number"),
    ("How many", "-2", "out of range"),
]


def test_each_chip_tells_its_story(open_page: OpenPage) -> None:
    """And bad input keeps the last good value."""
    page = open_page(MEMORY.url_path)
    for chip, sentence in STORIES.items():
        page.get_by_role("radio", name=chip).click()
        settle(page)
        expect(page.get_by_role("radio", name=chip)).to_be_checked()
        assert sentence in answer(page)
        if chip == "70B checkpoint":
            expect(page.get_by_text("A checkpoint to resume from takes 840 GB")).to_be_visible()
            expect(page.get_by_text("gradients are not saved")).to_be_visible()

    before = answer(page)
    for label, typed, message in MISTAKES:
        fill(page, label, typed)
        alert = page.get_by_role("alert").filter(has_text=message).first
        expect(alert).to_be_visible()
        expect(alert).to_contain_text("Still using")
        assert answer(page) == before
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_link_opens_to_the_same_answer(open_page: OpenPage) -> None:
    prec = quote("mixed bf16, fp32 master, fp32 gradients")
    page = open_page(f"{MEMORY.url_path}?m_n=7B&m_opt=Lion&m_prec={prec}&m_count=2&m_gpu=A100+SXM+40+GB&m_shard=ZeRO-1")
    text = answer(page)
    assert "2 × A100 SXM 40 GB hold" in text
    assert "under Lion in bf16 with fp32 master weights and gradients, only the optimizer’s states sharded" in text
    link = page.locator("button[data-link]").get_attribute("data-link")
    assert link is not None
    page.goto(link)
    settle(page)
    assert answer(page) == text


@pytest.mark.parametrize("precision", ["mixed bf16, fp32 master", "mixed fp16, fp32 copies of both"])
def test_no_two_labels_meet_on_a_narrow_page(open_page: OpenPage, precision: str) -> None:
    page = open_page(f"{MEMORY.url_path}?m_n=405.85B&m_count=96&m_opt=Lion&m_prec={quote(precision)}", width=640)
    plot = page.locator(".js-plotly-plot")
    plot.locator(".main-svg").first.wait_for()
    still(page)
    boxes = [label.bounding_box() for label in plot.locator(".annotation-text-g").all()]
    found = [box for box in boxes if box]
    assert len(found) > 8
    for i, a in enumerate(found):
        for b in found[i + 1 :]:
            apart = a["x"] + a["width"] <= b["x"] + 1 or b["x"] + b["width"] <= a["x"] + 1
            above = a["y"] + a["height"] <= b["y"] + 3 or b["y"] + b["height"] <= a["y"] + 3
            assert apart or above, (a, b)
