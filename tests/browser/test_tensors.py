"""Tensor views in a real browser: picture, hover and keyboard, fixes, writes, permalink."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from core.tensors.tracing.trace import trace
from core.views.tensors.text import kind_label
from pages.common.registry import TENSORS
from pages.tensors.inputs import CODE
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]

SCROLLING = """all => all.filter(box => box.checkVisibility()).map(box => [
  box.scrollWidth - box.clientWidth > 1 || box.scrollHeight - box.clientHeight > 1, box.dataset.cut])"""
"""Whether more is in each box than is in sight, and where its drawn edges say so."""


def opened(open_page: OpenPage, code: str, shape: str = "2, 3", more: str = "", **options: object) -> Page:
    query = urlencode({"t_shape": shape, "t_x": code})
    page = open_page(f"{TENSORS.url_path}?{query}{more}", **options)
    approve(page)
    return page


def approve(page: Page) -> None:
    """Run the code that a link brought, where it waits for that."""
    button, picture = page.get_by_role("button", name="Run", exact=True), page.locator(".storages").first
    button.or_(picture).first.wait_for()
    if button.count():
        button.click()
    picture.wait_for()


def answer(page: Page) -> Locator:
    return page.locator(".np-answer").first


def code_box(page: Page) -> Locator:
    return page.get_by_label("Code on x", exact=True)


def run(page: Page, code: str) -> None:
    code_box(page).fill(code)
    code_box(page).press("Control+Enter")
    settle(page)


def card(page: Page, name: str) -> Locator:
    return page.locator(".card", has=page.locator("figcaption .source", has_text=name)).filter(
        has=page.get_by_role("application", name=f"Elements of {name}. Arrow keys move between cells.", exact=True)
    )


def lit(scope: Locator) -> list[str]:
    return scope.locator(".c.lit").all_inner_texts()


def test_first_sight_shows_why_the_view_fails_and_a_click_fixes_it(open_page: OpenPage) -> None:
    page = open_page(TENSORS.url_path)
    page.locator(".storages").first.wait_for()
    assert page.locator(".timeline .badge").all_inner_texts() == [
        str(kind_label(step)) for step in trace(CODE, (2, 3), dtype="float32")
    ]
    assert page.locator(".timeline .bytes").all_inner_texts() == ["24 B", "0 B", ""]
    expect(page.locator(".why .joint.broken")).to_have_text("1 ≠ 3 × 2")
    assert card(page, "x.transpose(1, 0)").locator(".c").all_inner_texts() == ["0", "3", "1", "4", "2", "5"]
    assert page.locator("svg.broken text").all_text_contents() == ["+3", "−2"]
    assert page.locator(".strip .c.hop").all_inner_texts() == ["0", "1", "3"]
    assert page.locator(".storage h3").all_inner_texts() == ["Storage A"]

    for number, fixed in enumerate((".reshape(2, 3)", ".contiguous().view(2, 3)")):
        run(page, "x.transpose(1, 0).view(2, 3)")
        page.locator(".fix").nth(number).click()
        settle(page)
        expect(code_box(page)).to_have_value(f"x.transpose(1, 0){fixed}")
        expect(answer(page)).to_contain_text("24 B")
        expect(page.locator(".timeline .badge.copy")).to_have_count(1)
        expect(page.locator(".fix")).to_have_count(0)
        assert parse_qs(urlsplit(page.url).query)["t_x"] == [f"x.transpose(1, 0){fixed}"]
    assert page.locator(".storage h3").all_inner_texts() == ["Storage A", "Storage B"]
    assert page.problems == []  # type: ignore[attr-defined]


def test_hover_and_keyboard_light_the_same_memory_everywhere(open_page: OpenPage) -> None:
    page = opened(open_page, "y = x.t()\nz = y.contiguous()\nw = x.view(torch.int32)", more="&t_dtype=int64")
    expect(page.locator(".card:visible")).to_have_count(1)  # of many steps the last one's tensor alone
    for folded in reversed(page.locator(".timeline .step[aria-expanded=false]").all()):
        folded.click()
    expect(page.locator(".card:visible")).to_have_count(4)
    card(page, "y").locator(".c").nth(1).hover()  # y[0, 1] is 3, in cell 3: bytes 24 to 31
    assert lit(card(page, "x")) == lit(card(page, "y")) == ["3"]
    assert lit(card(page, "z")) == []  # the copy is another storage
    assert lit(card(page, "w")) == ["3", "0"]  # two halves, as int32
    strips = page.locator(".storage.s0 .strip")
    assert [lit(strips.nth(0)), lit(strips.nth(1))] == [["3"], ["3", "0"]]
    assert page.locator(".storage.s0 svg text").all_text_contents() == ["↓+1", "→+3"]  # the arcs are now those of y
    strips.nth(0).locator(".c").nth(4).hover()
    page.mouse.move(5, 5)
    expect(page.locator(".c.lit")).to_have_count(0)

    cells = card(page, "y").locator(".c")
    cells.first.focus()
    for key, at, said in (
        ("ArrowDown", 2, "y[1, 0]"),
        ("ArrowRight", 3, "y[1, 1]"),
        ("End", 5, "y[2, 1]"),
        ("ArrowRight", 5, "y[2, 1]"),  # stays inside
        ("ArrowUp", 3, "y[1, 1]"),
    ):
        page.keyboard.press(key)
        expect(cells.nth(at)).to_be_focused()
        expect(page.locator(".readout")).to_contain_text(said)
    assert card(page, "y").locator("[tabindex='0']").count() == 1
    page.keyboard.press("Tab")
    expect(page.get_by_label("size of dimension 0 of w", exact=True)).to_be_focused()
    page.locator(".timeline button").nth(1).click()  # the step's tensor is chosen
    expect(card(page, "y")).to_have_class("card active")
    page.locator(".timeline button").nth(1).click()  # and folded
    expect(card(page, "y")).to_have_count(0)
    try_strides(page)
    assert page.problems == []  # type: ignore[attr-defined]


def try_strides(page: Page) -> None:
    """Typed and stepped by the keyboard next to the tensor, and drawn at once."""
    size, other = (page.get_by_label(f"size of dimension {dim} of x", exact=True) for dim in (0, 1))
    size.focus()
    page.keyboard.press("ArrowUp")
    expect(card(page, "x").locator(".c.beyond")).to_have_count(3)
    other.fill("2")
    for dim, stride in enumerate("13"):
        page.get_by_label(f"stride of dimension {dim} of x", exact=True).fill(stride)
    assert card(page, "x").locator(".c").all_inner_texts() == ["0", "3", "1", "4", "2", "5"]
    expect(card(page, "x")).to_contain_text("as_strided((3, 2), (1, 3), 0)")
    card(page, "x").get_by_role("button", name="Back").click()
    assert card(page, "x").locator(".c").all_inner_texts() == ["0", "1", "2", "3", "4", "5"]


def test_a_write_flashes_every_tensor_that_sees_it(open_page: OpenPage) -> None:
    page = opened(open_page, "y = x.t()\nz = y.clone()\nx[0, 1] = 100")
    expect(answer(page)).to_contain_text("storage cell 1")
    expect(answer(page)).to_contain_text("y")
    assert page.locator(".c.written").all_inner_texts() == ["100", "100", "100"]  # storage, x, y; not z
    page.emulate_media(reduced_motion="reduce")
    names = page.locator(".c.fresh").evaluate_all("cells => cells.map(c => getComputedStyle(c).animationName)")
    assert names == ["none"] * 3
    expect(answer(page)).to_contain_text("storage cell 1")
    # the arrow keys step through memory
    expect(page.locator(".readout")).to_contain_text("cell 1: 1 → 100")
    page.locator(".timeline .step").last.focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator(".timeline .step[aria-current=step]")).to_contain_text("y.clone()")
    assert page.locator(".storage.s0 .strip .c").all_inner_texts() == ["0", "1", "2", "3", "4", "5"]
    expect(page.locator(".c.written")).to_have_count(0)
    page.keyboard.press("End")
    expect(page.locator(".c.written")).to_have_count(3)
    # several lines survive the permalink
    link = page.locator("button[data-link]").get_attribute("data-link") or ""
    again = open_page(link.split("/", 3)[3])
    expect(again.locator(".storages")).to_have_count(0)
    approve(again)
    expect(code_box(again)).to_have_value("y = x.t()\nz = y.clone()\nx[0, 1] = 100")
    expect(again.locator(".c.written")).to_have_count(3)


def test_a_thousand_elements_are_linked_and_fit_the_page(open_page: OpenPage) -> None:
    page = opened(open_page, "x.t()", "20, 25")
    assert page.locator(".c").count() == 1500
    card(page, "x.t()").locator(".c").nth(21).hover()  # row 1 of 25, column 1 of 20: cell 26 of the storage
    expect(page.locator(".readout")).to_contain_text("cell 26 of storage A")
    assert len(lit(card(page, "x"))) == len(lit(card(page, "x.t()"))) == 1
    expect(page.locator(".c.lit")).to_have_count(3)  # the storage's as well
    scrolled: list[list[object]] = []
    for code in (
        "torch.ones(64, 64).flip(0)",
        "torch.ones(256, 256)",
        "torch.ones(2, 2, 1, 2, 1, 2, 3, 2).permute(7, 0, 6, 1, 5, 2, 4, 3)",
    ):
        run(page, code)
        wide = page.locator('[data-testid="stMain"]').evaluate("main => main.scrollWidth - main.clientWidth")
        assert wide <= 0, code
        page.evaluate("() => new Promise(requestAnimationFrame)")
        scrolled += (said := page.locator(".scroll").evaluate_all(SCROLLING))
        assert all(scrolls == bool(signs) for scrolls, signs in said), (code, said)
    assert [False, ""] in scrolled
    assert [True, "down"] in scrolled
    assert page.problems == []  # type: ignore[attr-defined]
