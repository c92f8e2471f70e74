"""KaTeX draws every formula of the product as it was written, with symbols, with values and in a table of values."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Tabs, running_server
from tests.core.test_formula_katex import FORMULAS, latex_in, shown

pytestmark = pytest.mark.browser

DRAWN = """() => [...document.querySelectorAll('.stMarkdown')].map(one => ({
  read: [...one.querySelectorAll('.katex annotation')].map(e => e.textContent),
  refused: [...one.querySelectorAll('.katex-error')].map(e => e.textContent),
}))"""
"""What KaTeX has read in each paragraph, and what it could not read."""


def test_every_derivation_is_drawn_whole(tabs: Tabs, tmp_path: Path) -> None:
    steps = [step for name in FORMULAS for step in shown(name)]
    with running_server(tmp_path / "log.txt", "tests/browser/derivations.py") as base:
        page: Page = tabs.borrow("light", 1280)
        page.goto(base)
        page.wait_for_function("n => document.querySelectorAll('.stMarkdown:has(.katex)').length === n", arg=len(steps))
        for step, drawn in zip(steps, page.evaluate(DRAWN), strict=True):
            assert drawn["refused"] == [], step.title
            assert latex_in(step) <= set(drawn["read"]), step.title
        tabs.give_back("light", page)
