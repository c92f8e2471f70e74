"""Every stop of every tour opens on a projector without a message, where it says."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from pages.common.links import LANDS_AT
from pages.common.registry import EXERCISES, GROUPS, PAGES, PageSpec
from pages.common.theme import PROJECTOR
from pages.common.tours import ANSWER, TOUR, TOURS, hrefs, landing, row
from tests.app.plan_pages import words
from tests.app.test_pages import APP
from tests.patience import PATIENCE_S

TOURED = [page for page in PAGES if page not in GROUPS["Learn"]]
STOPS = [(page, number) for page in PAGES for number in range(1, 1 + len(TOURS[page.id]))]


def opened(page: PageSpec, address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=PATIENCE_S)
    app.query_params[PROJECTOR] = "true"
    if not page.default:
        app.run().switch_page(page.path)
    app.query_params.update(dict(parse_qsl(address, keep_blank_values=True)))
    return app.run()


def test_the_tour_stays_open_at_its_stop_and_brings_the_answer_into_sight() -> None:
    for page in TOURED:
        assert "open" not in row(page).split(">")[0]
        assert "aria-current" not in row(page, "6")
        at = row(page, "2")
        assert " open>" in at
        assert at.count("aria-current=step") == 1
        assert f"aria-current=step>{TOURS[page.id][1].says}<" in at
    assert landing({}) == ""
    assert landing({TOUR: "2"}) == ANSWER
    assert landing({TOUR: "2", LANDS_AT: "d_why"}) == "d_why"


def test_every_page_has_a_tour_of_five_or_leads_to_the_path() -> None:
    assert {page.id: len(TOURS[page.id]) for page in TOURED} == {page.id: 5 for page in TOURED}
    for page in GROUPS["Learn"]:
        (href,) = re.findall(r'href="([^"]+)"', row(page, "2"))
        assert "steps from a bit to 6ND" in words(opened(EXERCISES, html.unescape(href).partition("?")[2]))
    says = [stop.says for stops in TOURS.values() for stop in stops]
    assert len(set(says)) == len(says)
    assert all(len(one) <= 62 for one in says), "it stands on one line of a projector"


@pytest.mark.sweep(20)
@pytest.mark.parametrize(("page", "number"), STOPS, ids=[f"{page.id}-{number}" for page, number in STOPS])
def test_a_stop_opens_to_what_it_says(page: PageSpec, number: int) -> None:
    stop, href = TOURS[page.id][number - 1], hrefs(page)[number - 1]
    query = href.partition("?")[2]
    led = {urlsplit(urljoin(f"https://napkin.example/{other.url_path}", href)).path for other in PAGES}
    assert led == {f"/{page.url_path}"}, "it leads elsewhere from some page"
    asked = dict(parse_qsl(query, keep_blank_values=True))
    assert asked[TOUR] == str(number)
    app = opened(page, query)
    assert not app.exception
    said = words(app)
    assert 'class="np-error' not in said
    assert f'aria-live="polite">{stop.says}</p>' in said, "the bar names another preset, so a field was not taken up"
    assert 'class="np-answer' in said
    if stop.at and stop.at in stop.fields:
        assert asked[LANDS_AT] == f"{page.prefix}_{stop.at}"
        (panel,) = (one for one in app.expander if one.proto.id.endswith(f"-{asked[LANDS_AT]}"))
        assert panel.proto.expanded
