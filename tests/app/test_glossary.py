"""The Glossary page: every term with its link, and a search that leaves those that match."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.glossary import TERMS, Term
from pages.common.registry import GLOSSARY
from tests.app.test_lecture_links import set_up
from tests.patience import PATIENCE_S

APP = str(Path(__file__).parents[2] / "app.py")


def opened(**fields: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S).run()
    app.switch_page(GLOSSARY.path)
    app.query_params.update({f"{GLOSSARY.prefix}_{name}": text for name, text in fields.items()})
    return app.run()


def listed(app: AppTest) -> str:
    return "\n".join(one.proto.body for one in app.get("html") if 'class="np-glossary"' in one.proto.body)


def test_every_term_has_a_place_and_a_link_to_it() -> None:
    shown = listed(opened())
    places = re.findall(r'<dt id="([^"]+)">', shown)
    assert places == [f"g_{term.id}" for term in TERMS]
    assert re.findall(r'<dt id="[^"]+"><a href="[^"]*?at=([\w-]+)', shown) == places


def test_a_search_leaves_what_matches() -> None:
    app = opened(q="MFU")
    shown = listed(app)
    assert re.findall(r'<dt id="g_([^"]+)">', shown)[0] == "mfu"
    assert "g_stride" not in shown
    assert not app.exception


PLACES = {(term.shown.page, *term.shown.fields.items(), term.shown.at): term for term in TERMS if term.shown}
"""A term for every place that any is shown at."""


@pytest.mark.sweep(8)
@pytest.mark.parametrize("term", PLACES.values(), ids=lambda term: term.id)
def test_the_page_that_shows_a_term_has_what_its_link_sets(term: Term) -> None:
    """Each field exists and takes its value, nothing is refused, and the part that the link lands at is open."""
    assert term.shown
    assert set_up(term.shown)
