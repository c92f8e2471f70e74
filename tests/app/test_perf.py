"""``make perf`` in its smallest mode: what drives visitors over pages drives them over all of them."""

from __future__ import annotations

import logging
import os
from collections import Counter

import pytest

from core import glossary
from pages.common.registry import GLOSSARY, PAGES, PageSpec
from tests.loops import run
from tests.perf.__main__ import main
from tests.perf.addresses import AddressWalk
from tests.perf.crowd import left
from tests.perf.visitors import EDITS, Tally
from tests.perf.walk import observed


def test_every_page_has_an_edit() -> None:
    assert set(EDITS) == {page.id for page in PAGES}


@pytest.mark.long
@pytest.mark.parametrize("suite", ["pages", "crowd", "soak", "walk", "addresses"])
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


@pytest.mark.parametrize("seed", range(4))
def test_no_address_ends_in_an_error(seed: int) -> None:
    with observed():
        walk = AddressWalk(seed)
        steps = [walk.step() for _ in range(2 * len(PAGES))]
        again = AddressWalk(seed)
        assert [address for address, _ in steps[:3]] == [again.step()[0] for _ in range(3)]
    assert [wrong for _, wrong in steps if wrong] == []
    assert walk.visited == Counter({page.id: 2 for page in PAGES})


def test_a_planted_error_is_found(monkeypatch: pytest.MonkeyPatch, failures: list[logging.LogRecord]) -> None:
    monkeypatch.setattr(glossary, "matching", lambda _: 1 / 0)
    with observed():
        walk = AddressWalk(0)
        found = {address.partition("?")[0]: wrong for address, wrong in (walk.step() for _ in PAGES)}
    assert [page for page, wrong in found.items() if wrong] == [GLOSSARY.url_path]
    assert "ZeroDivisionError" in found[GLOSSARY.url_path]
