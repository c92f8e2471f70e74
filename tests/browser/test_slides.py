"""Every slide is whole: answer, code and picture on the wall, type for the last row, and no two say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from playwright.sync_api import Page, expect

from core.experiments.catalogue import standing_on
from core.lecture.deck import lecture_slides
from pages.common.figures import LEAST
from pages.common.registry import COMPUTE, FLOATS, LECTURE, MEMORY, PAGES, TENSORS, PageSpec
from pages.common.slides import slide_address
from tests.app.plan_pages import linked, opened
from tests.browser.conftest import settle, still
from tests.browser.test_projector import SMALL

pytestmark = pytest.mark.browser

WALLS = ((1280, 720), (1920, 1080))
PARTS = (
    ".np-bar, .np-slide, .np-answer, .np-takeaway, .np-table, .np-axes, .np-stages, .katex-html, .js-plotly-plot, "
    ".stBidiComponent, .timeline, .source, .why, .storage, .strip, .bit, .card"
)

CUT = """parts => {
  const found = []
  const shown = e => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().height > 1
  const walk = root => root.querySelectorAll('*').forEach(e => {
    if (e.shadowRoot) walk(e.shadowRoot)
    if (!e.matches(parts) || !shown(e) || e.closest('.st-key-projector, [hidden], [data-np-off]')) return
    const b = e.getBoundingClientRect(), name = `${e.className}: ${e.textContent.slice(0, 40)}`
    if (b.bottom > innerHeight + 1 || b.right > innerWidth + 1 || b.left < -1) found.push(`beyond the wall: ${name}`)
    const clips = ['hidden', 'clip'].includes(getComputedStyle(e).overflowX)
    if (clips && e.scrollWidth > e.clientWidth + 2) found.push(`cut off: ${name}`)
  })
  walk(document.querySelector('.stMain'))
  return found
}"""
"""What of a slide lies beyond the wall, or is cut off inside it."""

SHOWN = """() => {
  const kinds = '.stBidiComponent, .js-plotly-plot, .np-table, .np-axes, .np-stages'
  const one = e => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().height > 28
  const says = [...document.querySelectorAll('.stMain :is(.np-answer, .np-takeaway)')].find(one)
  return [says?.textContent ?? '', [...document.querySelectorAll(`.stMain :is(${kinds})`)].some(one)]
}"""
"""What a slide says first, and whether it has a picture."""


TANGLED = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => {
  const names = [...plot.querySelectorAll('.ytick text')].filter(e => e.textContent && e.checkVisibility())
  const boxes = names.map(e => [e.textContent, e.getBoundingClientRect()]).sort(([, a], [, b]) => a.top - b.top)
  return boxes.slice(1).flatMap(([text, box], i) => {
    const [above, other] = boxes[i], apart = box.left > other.right || box.right < other.left
    return apart || box.top + box.height / 2 > other.bottom - 2 ? [] : [`${above} runs into ${text}`]
  })
})"""
"""Names of a chart's rows that stand in one another."""


def walk(page: Page, slides: Iterable[int] | None) -> list[str]:
    """What is wrong with these slides of the page that is open on the wall, or with all of them."""
    wrong: list[str] = []
    said: dict[str, str] = {}
    count = int(page.locator(".np-bar").get_attribute("data-slides") or 0)
    assert count > 2
    for index in range(count):
        if index:
            page.keyboard.press("PageDown")
            expect(page.locator(".np-bar > span")).to_have_text(f"{index + 1} of {count}")
        if slides is not None and index not in slides:
            continue
        settle(page)
        for width, height in WALLS:
            page.set_viewport_size({"width": width, "height": height})
            still(page)
            says, picture = page.evaluate(SHOWN)
            name = f"{page.locator('.np-slide').inner_text()} on {width} × {height}"
            wrong += [f"{name}: no answer"] * (not says) + [f"{name}: no picture"] * (not picture)
            wrong += [f"{name}: {each}" for each in page.evaluate(CUT, PARTS)]
            wrong += [f"{name}: {each}" for each in page.evaluate(SMALL, LEAST * width / 1280)]
        if index:  # the first is whatever was typed
            wrong += [f"{name}: says what {said[says]} does" for _ in range(says in said)]
            said[says] = name
    return wrong


def on_the_wall(open_page: Callable[..., Page], spec: PageSpec) -> Page:
    return open_page(f"{spec.url_path}?projector=true")


@pytest.mark.long
@pytest.mark.parametrize("spec", [FLOATS, TENSORS, LECTURE, COMPUTE, MEMORY], ids=lambda spec: spec.id)
def test_every_slide_is_whole(open_page: Callable[..., Page], spec: PageSpec) -> None:
    assert walk(on_the_wall(open_page, spec), None) == []


def panels(spec: PageSpec) -> list[str]:
    """The parts of a page that a link opens, as they stand in its address."""
    app = opened(spec, {})
    link = linked(app)
    return [key for one in app.expander if link.get(key := one.proto.id.rpartition("-")[2]) == "false"]


@pytest.mark.long
@pytest.mark.parametrize("spec", PAGES, ids=lambda spec: spec.id)
def test_every_open_panel_is_whole(open_page: Callable[..., Page], server: str, spec: PageSpec) -> None:
    """Each says something in type for the last row; the names of a picture's rows stand apart."""
    wrong, page = list[str](), open_page(spec.url_path)
    for key in panels(spec):
        page.goto(f"{server}/{spec.url_path}?{key}=true&at={key}&projector=true")
        settle(page)
        if key.partition("_")[2] in {one.id for one in standing_on(spec.id)}:  # has ended, and is drawn
            expect(page.locator(f"[class*='st-key-{spec.id}'][class*='{key.partition('_')[2]}-chart']")).to_be_visible()
            settle(page)
        for width, height in WALLS:
            page.set_viewport_size({"width": width, "height": height})
            still(page)
            says, _ = page.evaluate(SHOWN)
            name = f"{key} on {width} × {height}"
            wrong += [f"{name}: no answer"] * (not says)
            wrong += [f"{name}: {each}" for each in page.evaluate(CUT, PARTS)]
            wrong += [f"{name}: {each}" for each in page.evaluate(SMALL, LEAST * width / 1280)]
            wrong += [f"{name}: {each}" for each in page.evaluate(TANGLED)]
    assert wrong == []


@pytest.mark.long
def test_every_slide_of_the_lectures_deck_is_whole(open_page: Callable[..., Page], server: str) -> None:
    """Once its question is answered it says something and shows it, across pages."""
    wrong, page = list[str](), open_page(slide_address(1))
    for number, slide in enumerate(lecture_slides(), 1):
        page.goto(f"{server}/{slide_address(number)}")
        settle(page)
        if slide.ask:
            expect(page.locator(".np-predict")).to_be_visible()
            page.keyboard.press("PageDown")
        expect(page.locator(".np-slide")).to_have_text(slide.headline)
        for width, height in WALLS:
            page.set_viewport_size({"width": width, "height": height})
            still(page)
            says, picture = page.evaluate(SHOWN)
            name = f"{slide.claim} on {width} × {height}"
            wrong += [f"{name}: no answer"] * (not says) + [f"{name}: no picture"] * (not picture)
            wrong += [f"{name}: {each}" for each in page.evaluate(CUT, PARTS)]
            wrong += [f"{name}: {each}" for each in page.evaluate(SMALL, LEAST * width / 1280)]
    assert wrong == []


@pytest.mark.journey
@pytest.mark.parametrize(("spec", "slides"), [(TENSORS, (4, 8))], ids=["tensors"])
def test_some_slides_are_whole(open_page: Callable[..., Page], spec: PageSpec, slides: tuple[int, ...]) -> None:
    assert walk(on_the_wall(open_page, spec), slides) == []
