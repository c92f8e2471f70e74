"""On a laptop the answer and the whole of its picture stand on the first screen, whatever is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from core.planning.presets import PRESETS
from pages.common.projector import PICTURES
from pages.common.registry import COMPARE, COMPUTE, HOME, PAGES, PageSpec
from pages.common.tours import hrefs
from tests.browser.conftest import settle, still
from tests.browser.test_labels import TALES

pytestmark = pytest.mark.browser

PLANNING = [spec for spec in PAGES if spec is HOME or spec.id in TALES or spec is COMPARE]
LIMITS = {"until": "120 days", "spend": "$12M", "mw": "2 MW"}

LOWEST = """selector => {
  document.querySelector('[data-testid=stMain]').scrollTo(0, 0)
  const main = document.querySelector('[data-testid=stMainBlockContainer]')
  const shown = [...main.querySelectorAll(selector)].find(e => e.checkVisibility() && e.getBoundingClientRect().height)
  return [main.querySelector('.np-answer'), shown].map(e => Math.round(e.getBoundingClientRect().bottom))
}"""
"""Where the answer and its picture end, in pixels from the top of the page."""


def questions(spec: PageSpec) -> Mapping[str, str]:
    """Name → address: the page as it opens, its presets, and a plan with limits; Compare’s with plans."""
    if spec is COMPARE:
        return {f"stop {number}": href for number, href in enumerate(hrefs(spec))}
    asked = {"as it opens": {}, **TALES.get(spec.id, {})}
    if spec is not HOME:
        asked["with limits"] = {**PRESETS["Our next model"], **LIMITS} if spec is COMPUTE else LIMITS
    fields = {name: {f"{spec.prefix}_{field}": text for field, text in texts.items()} for name, texts in asked.items()}
    return {name: f"{spec.url_path}?{urlencode(texts)}" for name, texts in fields.items()}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("spec", PLANNING, ids=lambda spec: spec.id)
def test_answer_and_picture_stand_on_the_first_screen(
    open_page: Callable[..., Page], server: str, spec: PageSpec, theme: str
) -> None:
    page, low = open_page(spec.url_path), list[str]()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    for name, address in questions(spec).items():
        page.goto(f"{server}/{address}")
        settle(page)
        still(page)
        ends = page.evaluate(LOWEST, PICTURES.get(spec.id, ".js-plotly-plot"))
        if max(ends) > 800:
            low.append(f"{name}: answer to {ends[0]}, picture to {ends[1]}")
    assert low == [], "\n".join(low)
