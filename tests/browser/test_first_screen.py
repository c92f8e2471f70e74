"""On a laptop the answer and the whole of its picture stand on the first screen, whatever is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from core.planning.presets import PRESETS
from pages.common.links import key_of
from pages.common.projector import PICTURES
from pages.common.registry import COMPARE, COMPUTE, HOME, PAGES, PageSpec
from tests.browser.conftest import settle, still
from tests.browser.test_labels import TALES, compared

pytestmark = pytest.mark.browser

PLANNING = [spec for spec in PAGES if spec.plans]
LIMITS = {"until": "120 days", "spend": "$12M", "mw": "2 MW"}

MIXTURE = {
    "model": "Own (config.json)",
    "shape": "layers=48 hidden=6144 heads=48 kv_heads=8 head_dim=128 ffn=16384 vocab=131072 glu=yes tied_head=no "
    "experts.count=64 experts.per_token=6 experts.width=4096",
}

ENDS = """selector => {
  document.querySelector('[data-testid=stMain]').scrollTo(0, 0)
  const main = document.querySelector('[data-testid=stMainBlockContainer]')
  const bottom = e => Math.round(e.getBoundingClientRect().bottom)
  const shown = [...main.querySelectorAll(selector)].find(e => e.checkVisibility() && e.getBoundingClientRect().height)
  const answer = main.querySelector('.np-answer'), small = answer.querySelector('small')
  const sentence = small ? Math.round(small.getBoundingClientRect().top) : bottom(answer)
  return [sentence, Math.max(bottom(answer), bottom(shown))]
}"""
"""Where the answer’s sentence and its picture end, in pixels from the top of the page."""

SENTENCE, FOLD = 330, 800


def questions(spec: PageSpec) -> Mapping[str, str]:
    """Name → address: the page as it opens, its presets, and a plan with limits; Compare’s with plans."""
    if spec is COMPARE:
        return {"three plans": compared()}
    asked = {"as it opens": {}, **TALES.get(spec.id, {})}
    if spec.plans:
        asked["a mixture"] = MIXTURE
    if spec is not HOME:
        asked["with limits"] = {**PRESETS["Our next model"], **LIMITS} if spec is COMPUTE else LIMITS
    fields = {name: {key_of(spec, field): text for field, text in texts.items()} for name, texts in asked.items()}
    return {name: f"{spec.url_path}?{urlencode(texts)}" for name, texts in fields.items()}


@pytest.mark.parametrize("spec", PLANNING, ids=lambda spec: spec.id)
def test_answer_and_picture_stand_on_the_first_screen(
    open_page: Callable[..., Page], server: str, spec: PageSpec
) -> None:
    page, low = open_page(spec.url_path), list[str]()
    page.set_viewport_size({"width": 1280, "height": 800})
    for name, address in questions(spec).items():
        page.goto(f"{server}/{address}")
        settle(page)
        still(page)
        sentence, picture = page.evaluate(ENDS, PICTURES.get(spec.id, ".js-plotly-plot"))
        if sentence > SENTENCE or picture > FOLD:
            low.append(f"{name}: sentence to {sentence}, picture to {picture}")
    assert low == [], "\n".join(low)
