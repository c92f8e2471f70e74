"""Training memory in a real browser: the answer, the chips, the picture, a fix applied, bad input and the link."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from core.planning.form.plan_form import plan_of
from core.planning.memory_estimate import memory_estimate
from core.planning.presets import MEMORY_PRESETS
from core.views.plan import text_memory
from core.wording import plain
from pages.common.registry import MEMORY
from pages.memory.form import FORM
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


def told(**texts: str) -> str:
    return plain(text_memory.sentence(memory_estimate(plan_of(FORM.parse(texts)))))


def test_first_sight_says_whether_it_fits(open_page: OpenPage) -> None:
    page = open_page(MEMORY.url_path)
    assert told() in answer(page)
    assert "fits on 8 × H100 SXM" in answer(page)
    expect(page.get_by_role("figure")).to_have_count(1)
    assert page.problems == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [640, 1280, 1600])
def test_the_picture_names_every_class_and_the_memory(open_page: OpenPage, width: int) -> None:
    page = open_page(f"{MEMORY.url_path}?m_n=32B", width=width)
    plot = page.locator(".js-plotly-plot")
    plot.locator(".main-svg").first.wait_for()
    still(page)
    written = plot.locator(".annotation").all_text_contents()
    for name in ("parameters", "gradients", "master weights", "optimizer state", "activations", "buffers", "runtime"):
        assert any(text.startswith(name) for text in written), written
    assert "its memory: 74.51 GiB = 80 GB" in written or "its memory: 74.5 GiB = 80 GB" in written, written
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


def test_each_chip_tells_its_story(open_page: OpenPage) -> None:
    page = open_page(MEMORY.url_path)
    for chip, texts in MEMORY_PRESETS.items():
        page.get_by_role("radio", name=chip).click()
        settle(page)
        expect(page.get_by_role("radio", name=chip)).to_be_checked()
        assert told(**texts) in answer(page)
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_fix_is_applied_by_its_button(open_page: OpenPage) -> None:
    page = open_page(f"{MEMORY.url_path}?m_n=70B&m_why=true&m_rc=none")
    assert "does not fit" in answer(page)
    page.get_by_role("button", name="Apply").first.click()
    settle(page)
    assert " fits on " in answer(page)
    assert page.problems == []  # type: ignore[attr-defined]


def test_a_checkpoint_says_what_it_holds(open_page: OpenPage) -> None:
    page = open_page(f"{MEMORY.url_path}?m_n=70B")
    expect(page.get_by_text("A checkpoint to resume from takes 840 GB")).to_be_visible()
    expect(page.get_by_text("gradients are not saved")).to_be_visible()


def test_an_older_link_opens_to_the_same_answer(open_page: OpenPage) -> None:
    prec = quote("mixed bf16, fp32 master, fp32 gradients")
    typed = f"m_n=7B&m_opt=Lion&m_prec={prec}&m_count=2&m_gpu=A100+SXM+40+GB&m_shard=ZeRO-1"
    page = open_page(f"{MEMORY.url_path}?v=2&{typed}")
    text = answer(page)
    assert "on 2 × A100 SXM 40 GB" in text
    assert "Lion in bf16 with fp32 master weights and gradients · data 2 under ZeRO-1" in text
    expect(page.get_by_role("alert")).to_have_count(0)
    link = page.locator("button[data-link]").get_attribute("data-link")
    assert link is not None
    assert "m_zero=1" in link
    assert "m_shard" not in link
    assert answer(open_page(link.split("/", 3)[3])) == text


MISTAKES = [
    ("Parameters", "seventy", "is not a count", "8B"),
    ("How many", "8.5", "is not a whole number", "8"),
    ("Micro-batch", "0", "out of range", "1"),
    ("Tensor parallel", "3", "must divide", "1"),
    ("Pipeline parallel", "16", "must divide", "1"),
]


def test_bad_input_keeps_the_last_good_answer(open_page: OpenPage) -> None:
    page = open_page(MEMORY.url_path)
    before = answer(page)
    for label, typed, message, good in MISTAKES:
        fill(page, label, typed)
        alert = page.get_by_role("alert").filter(has_text=message).first
        expect(alert).to_be_visible()
        expect(alert).to_contain_text("Still")
        assert answer(page) == before
        fill(page, label, good)


def test_every_number_opens_to_its_formula(open_page: OpenPage) -> None:
    page = open_page(MEMORY.url_path)
    page.get_by_text("How is this computed").click()
    settle(page)
    panel = page.locator('[data-testid="stExpander"]').filter(has_text="How is this computed")
    assert panel.locator(".katex-display").count() >= 20
    expect(panel.get_by_role("link", name="ZeRO").first).to_have_attribute("href", "https://arxiv.org/abs/1910.02054")


def types_said(page: Page) -> str:
    return page.locator(".np-takeaway").filter(has_text="for each parameter").inner_text().replace("\u00a0", " ")


def test_the_precision_is_edited_and_travels_in_the_link(open_page: OpenPage) -> None:
    """From a preset, by clicks: the sum and the answer follow, the menu says own, and the link opens to the same."""
    page = open_page(f"{MEMORY.url_path}?m_policy=true&m_prec={quote('mixed bf16, fp32 master, fp32 gradients')}")
    assert "= 18 bytes for each parameter" in types_said(page)
    before = answer(page)
    for label, option, total in (("Master weights", "none", 14), ("Gradients", "bf16", 12)):
        page.get_by_role("radiogroup", name=label, exact=True).get_by_role("radio", name=option, exact=True).click()
        settle(page)
        assert f"= {total} bytes for each parameter" in types_said(page)
    assert answer(page) != before
    assert "no master" in answer(page)
    expect(page.get_by_role("combobox", name="Precision of the model states")).to_have_value("own")
    edited = answer(page)
    page.get_by_text("Precision, tensor by tensor").click()
    settle(page)
    assert answer(page) == edited
    link = page.locator("button[data-link]").get_attribute("data-link")
    assert link is not None
    again = open_page(f"{MEMORY.url_path}?{link.partition('?')[2] or link}")
    assert answer(again) == edited
    assert page.problems == again.problems == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [1280, 1600])
def test_the_waterfall_names_every_change_inside_its_frame(open_page: OpenPage, width: int) -> None:
    page = open_page(f"{MEMORY.url_path}?m_n=70B&m_why=true&m_rc=none", width=width)
    plot = page.locator(".js-plotly-plot").nth(1)
    plot.locator(".main-svg").first.wait_for()
    still(page)
    frame = plot.bounding_box()
    assert frame is not None
    written = [*plot.locator(".annotation-text-g").all(), *plot.locator(".ytick text").all()]
    assert len(written) > 8
    for text in written:
        box = text.bounding_box()
        assert box is not None
        assert box["x"] >= frame["x"] - 1, text.text_content()
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1, text.text_content()
    bold = page.locator(".np-note b").all_inner_texts()
    cheapest = bold[bold.index("The cheapest way down:") + 1]
    named = " ".join(tick.text_content() or "" for tick in plot.locator(".ytick text").all())
    assert [change for change in re.split(", | and ", cheapest.lower()) if change not in named] == []
