"""Every claim's link in a real browser: what was found stands on the first screen of 1280 × 720, unscrolled."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from core.fields import query_of
from core.lecture.catalogue import CLAIMS, findings
from pages.common.links import LANDS_AT
from pages.common.registry import PAGES
from tests.browser.conftest import settle, still
from tests.browser.first_screen import in_sight

pytestmark = pytest.mark.browser

PAGE = {page.id: page for page in PAGES}
LINKED = [claim.id for claim in CLAIMS.values() if claim.link]
QUICK = ("F2", "T14", "C12", "M1")
"""One claim of each chapter, each on another page."""


def stands_in(wanted: str, text: str) -> bool:
    """Whether ``wanted`` stands in ``text`` by itself, wherever lines break: 4 does not stand in 41 or in 4.5."""
    parts = re.findall(r"\w+|[^\w\s]", wanted)
    found = r"\s*".join(map(re.escape, parts))
    return re.search(rf"(?<![\w.,]){found}(?!\w|[.,]\d)", text) is not None


def missing(page: Page, server: str, claim_id: str) -> list[str]:
    """What the claim's link should show and does not."""
    link = CLAIMS[claim_id].link
    assert link is not None
    spec = PAGE[link.page]
    fields = {f"{spec.prefix}_{name}": text for name, text in link.fields.items()}
    at = {LANDS_AT: f"{spec.prefix}_{link.at}"} if link.at else {}
    page.goto(f"{server}/{spec.url_path}?{query_of({**fields, **at})}")
    settle(page)
    still(page)
    text = in_sight(page)
    return [f"{claim_id}: {wanted}" for wanted in findings()[claim_id].shown if not stands_in(wanted, text)]


def _look(open_page: Callable[..., Page], server: str, claims: list[str]) -> None:
    page = open_page("lecture")
    page.set_viewport_size({"width": 1280, "height": 720})
    assert [text for claim in claims for text in missing(page, server, claim)] == []
    assert page.problems == []  # type: ignore[attr-defined]


def test_some_links_show_what_was_found(open_page: Callable[..., Page], server: str) -> None:
    _look(open_page, server, list(QUICK))


@pytest.mark.long
@pytest.mark.parametrize("chapter", sorted({claim[0] for claim in LINKED}))
def test_every_link_shows_what_was_found(open_page: Callable[..., Page], server: str, chapter: str) -> None:
    _look(open_page, server, [claim for claim in LINKED if claim.startswith(chapter)])


@pytest.mark.parametrize(
    ("wanted", "text", "stands"),
    [
        ("cell 6", "is storage cell 6 = 0", True),
        ("cell 6", "is storage cell 66", False),
        ("4 B", "= 64 B", False),
        ("(4, 1)", "strides (\n4\n, \n1\n)", True),
        ("1.5", "1.57", False),
        ("448", "448,000", False),
    ],
)
def test_a_number_stands_by_itself(wanted: str, text: str, stands: bool) -> None:
    assert stands_in(wanted, text) is stands
