"""``make perf`` in its smallest mode: what drives visitors over pages drives them over all of them."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from pages.common.registry import GLOSSARY, PAGES, PageSpec
from tests.loops import run
from tests.perf.__main__ import main
from tests.perf.crowd import left
from tests.perf.visitors import EDITS, Tally


def test_every_page_has_an_edit() -> None:
    assert set(EDITS) == {page.id for page in PAGES}


@pytest.mark.long
@pytest.mark.parametrize("suite", ["pages", "crowd", "soak", "walk"])
def test_a_suite_sees_every_page(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It fails by itself where a page is missed, lacks the box that its visitors change, or shows an error."""
    main([suite, "--quick"])
    said = capsys.readouterr().out
    if suite == "pages":
        assert all(f"\n{page.title:<22}" in said for page in PAGES)


@pytest.mark.parametrize(
    ("unseen", "errors", "said"),
    [
        (GLOSSARY, [], "0 errors on pages; seen by nobody: Glossary"),
        (None, ["home: KeyError", "TimeoutError: "], "1 errors on pages; seen by nobody: none"),
    ],
)
def test_a_page_that_nobody_sees_or_that_shows_an_error_fails(
    unseen: PageSpec | None, errors: list[str], said: str
) -> None:
    tally = Tally(pages=Counter({page.id: 1 for page in PAGES if page is not unseen}), errors=errors)
    with pytest.raises(SystemExit, match=said):
        run(left(tally, os.getpid(), 0))
