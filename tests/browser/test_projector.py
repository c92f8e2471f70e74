"""On a projector: every page at 1280 × 720 by keys alone, readable from the last row."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.glossary import appearances
from pages.common.figures import LEAST
from pages.common.projector import PICTURES
from pages.common.registry import COMPARE, EXERCISES, FLOATS, HOME, PAGES
from pages.common.slides import AS_ENTERED
from tests.browser.conftest import settle, still
from tests.browser.test_all_pages import overflow, serious
from tests.browser.test_labels import compared

pytestmark = pytest.mark.browser

HEIGHT = 720
SMALL = """least => {
  const found = []
  const walk = root => root.querySelectorAll('*').forEach(e => {
    if (e.shadowRoot) walk(e.shadowRoot)
    const own = [...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && /[^\\s\\u200b]/.test(n.textContent))
    const box = e.getBoundingClientRect()
    if (!own || box.width <= 1 || box.bottom < 0 || !e.checkVisibility({ visibilityProperty: true })) return
    const size = parseFloat(getComputedStyle(e).fontSize) * e.currentCSSZoom
    if (size < least - 0.1) found.push(`${e.tagName} ${e.textContent.slice(0, 30)}: ${size} px`)
  })
  walk(document.querySelector('.stApp'))
  return found
}"""
"""Type that is drawn smaller than ``least`` pixels, icons included."""

ENDS = """([picture]) => ['.np-slide', '.np-answer', picture].map(selector => {
  const shown = [...document.querySelectorAll(selector)].filter(e => e.checkVisibility())
  return shown.length ? Math.round(Math.min(...shown.map(e => e.getBoundingClientRect().bottom))) : null
})"""
"""Where the preset's name, the answer and the picture end; null for what is not drawn."""


LONGER = frozenset(("tensors", "lecture", "exercises", "glossary"))
"""Pages whose picture is a list or has parts: it begins on the first screen, and goes on."""


def readable(page: Page, id: str) -> None:
    """The preset's name, the answer and its picture on the first screen, nothing small, nothing for axe to find."""
    picture = ".st-key-h_long .stPlotlyChart" if id == HOME.id else f".stElementContainer:is({PICTURES[id]})"
    still(page)
    name, answer, drawn = page.evaluate(ENDS, [picture])
    assert name < answer < HEIGHT, id
    top = page.evaluate("selector => document.querySelector(selector).getBoundingClientRect().top", picture)
    assert drawn <= HEIGHT or (id in LONGER and top < HEIGHT / 2), (id, drawn)
    assert page.evaluate(SMALL, LEAST) == [], id
    assert overflow(page) <= 0, id
    assert serious(page) == [], id


def larger(page: Page) -> None:
    """The same on 1920 × 1080, half as large again: type, and a chart from edge to edge."""
    page.set_viewport_size({"width": 1920, "height": 1080})
    still(page)
    assert page.evaluate(SMALL, 1.5 * LEAST) == []
    assert overflow(page) <= 0
    chart = page.locator(".js-plotly-plot .main-svg").first.bounding_box()
    assert chart is not None
    assert chart["x"] + chart["width"] == pytest.approx(1920 - 48, abs=3)
    assert chart["width"] == pytest.approx(1920 - 96, abs=6)
    page.set_viewport_size({"width": 1280, "height": HEIGHT})
    still(page)


def preset(page: Page) -> str:
    return page.locator(".np-slide").inner_text()


def test_every_page_is_readable_from_the_last_row_and_moved_through_by_keys(
    open_page: Callable[..., Page],
) -> None:
    page = open_page(compared())
    page.set_viewport_size({"width": 1280, "height": HEIGHT})
    page.get_by_label("Baseline").first.wait_for()
    settle(page)
    expect(page.locator(".np-answer").first).to_be_in_viewport()
    page.get_by_label("Example plan").press("p")  # in a field it is a letter
    expect(page.locator(".np-bar")).to_have_count(0)
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("p")
    order = [*PAGES[PAGES.index(COMPARE) :], *PAGES[: PAGES.index(COMPARE)]]
    for spec in order:
        expect(page.locator(".np-bar h1")).to_have_text(spec.h1)
        settle(page)
        assert "projector=true" in page.url
        readable(page, spec.id)
        page.keyboard.press("Shift+ArrowRight")
    expect(page.locator(".np-bar h1")).to_have_text(COMPARE.h1)
    assert page.problems == []  # type: ignore[attr-defined]
    larger(page)

    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator(".np-bar h1")).to_have_text(PAGES[PAGES.index(COMPARE) + 1].h1)
    settle(page)
    typed = page.locator(".np-answer").inner_text()
    assert preset(page) == AS_ENTERED
    expect(page.get_by_role("button", name="Previous slide")).to_be_disabled()
    shown = [typed]
    for key, there in (("PageDown", 1), ("ArrowRight", 2), ("PageUp", 1), ("ArrowLeft", 0)):
        before = preset(page)
        page.keyboard.press(key)  # what a clicker sends, and what a keyboard has
        expect(page.locator(".np-slide")).not_to_have_text(before)
        settle(page)
        shown.extend([page.locator(".np-answer").inner_text()] * (there == len(shown)))
        assert page.locator(".np-answer").inner_text() == shown[there]
    assert preset(page) == AS_ENTERED
    page.get_by_role("button", name="Next slide").click()
    expect(page.locator(".np-slide")).not_to_have_text(AS_ENTERED)
    settle(page)
    page.keyboard.press("Escape")
    expect(page.locator(".np-bar")).to_have_count(0)
    settle(page)
    assert "projector" not in page.url
    expect(page.locator(".np-answer")).to_contain_text(typed)

    term, tip = page.locator(".np-answer .np-term").first, page.locator("#np-tip")
    term.focus()
    (meant,) = appearances(term.inner_text())
    expect(tip).to_have_text(meant.meaning)
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    term.hover()
    expect(tip).to_be_visible()


def test_a_number_is_typed_on_the_wall_and_a_bad_one_keeps_the_one_before(open_page: Callable[..., Page]) -> None:
    """In the bar, in type for the last row; after Enter the clicker goes on."""
    page = open_page(f"{FLOATS.url_path}?projector=true")
    page.set_viewport_size({"width": 1280, "height": HEIGHT})
    box, answer = page.get_by_label("Number", exact=True), page.locator(".np-answer").first
    box.fill("1e-8")
    box.press("Enter")
    expect(answer).to_contain_text("1e-8 becomes")
    expect(page.locator(".np-slide")).to_have_text(AS_ENTERED)
    box.fill("½")
    box.press("Enter")
    expect(page.locator(".np-error")).to_contain_text("uses 1e-8")
    expect(answer).to_contain_text("1e-8 becomes")
    settle(page)
    assert page.evaluate(SMALL, LEAST) == []
    page.keyboard.press("PageDown")
    expect(page.locator(".np-slide")).not_to_have_text(AS_ENTERED)


def test_the_keys_go_through_a_long_list_before_the_next_slide(open_page: Callable[..., Page]) -> None:
    """And back; the page that was clicked has no ring around it."""
    page = open_page(f"{EXERCISES.url_path}?e_topics=memory")
    page.set_viewport_size({"width": 1280, "height": HEIGHT})
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.locator(".np-bar")).to_be_visible()
    settle(page)
    still(page)
    assert page.evaluate("document.activeElement === document.body")
    last = page.locator(".st-key-exercises-questions .stElementContainer").last
    expect(last).not_to_be_in_viewport()
    scrolled = "document.querySelector('[data-testid=stMain]').scrollTop"
    places = [page.evaluate(scrolled)]
    while not last.evaluate("one => one.getBoundingClientRect().bottom <= innerHeight + 24"):
        page.keyboard.press("PageDown")
        page.wait_for_function(f"() => {scrolled} > {places[-1]}")
        still(page)
        places.append(page.evaluate(scrolled))
        assert preset(page) == AS_ENTERED
        assert places[-2] < places[-1] < places[-2] + HEIGHT
    assert len(places) > 2
    page.keyboard.press("PageUp")
    still(page)
    assert page.evaluate(scrolled) < places[-1]
    assert preset(page) == AS_ENTERED


def test_a_slide_with_a_field_of_its_own_is_left_and_come_back_to(open_page: Callable[..., Page]) -> None:
    """One that opens “More formats”, whose parameter no other slide has."""
    page = open_page(f"{FLOATS.url_path}?projector=true")
    said = page.locator(".np-bar > span")
    for key, number in [*(("ArrowRight", number) for number in range(2, 8)), *[("ArrowLeft", 6), ("ArrowLeft", 5)]]:
        page.keyboard.press(key)
        expect(said).to_contain_text(f"{number} of ")
        settle(page)
    for number in (6, 7):
        page.keyboard.press("ArrowRight")
        expect(said).to_contain_text(f"{number} of ")
    page.get_by_role("button", name="Leave").click()
    expect(page.locator(".np-bar")).to_have_count(0)
