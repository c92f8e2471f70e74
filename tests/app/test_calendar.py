"""Calendar and cost as a visitor sees it: every preset and control, bad input, links both ways."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from core.planning.calendar.form import calendar_request
from core.planning.calendar.pools import OWN_CLUSTER
from core.planning.calendar.presets import PRESETS
from core.planning.cost.form import prices_of
from core.planning.cost.pool_bill import ways_to_pay
from core.views.calendar import text as calendar_text
from core.views.plan import text as plan_text
from core.wording import rent
from pages.calendar.form import FORM
from pages.common.registry import CALENDAR, COMPARE, COMPUTE
from tests.app.plan_pages import bodies, fold, linked, opened, opens_to_itself, shown, stripped
from tests.app.plan_pages import words as said_on
from tests.app.test_current_plan import go as gone_to
from tests.core.plan_walk import NO_NUMBER

SMALL = {"n": "1B", "tokens": "8T", "count": "64", "seq": "4,096"}
BILL = {"held": "true", "rprice": "2", "capital": "35,000", "staff": "2M", "space": "1M"}


def told(app: AppTest) -> str:
    return stripped(bodies(app, "np-answer")[0].partition("<small>")[0])


def expected(texts: Mapping[str, str]) -> str:
    """The answer's sentence from the form alone."""
    reading = FORM.parse(texts)
    s = calendar_request(reading).schedule()
    return shown(calendar_text.sentence(s, ways_to_pay(s, prices_of(reading))[0]))


@pytest.mark.parametrize("bill", [{}, BILL], ids=["rent alone", "every price"])
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_told_by_the_form_alone(name: str, bill: dict[str, str]) -> None:
    texts = {**PRESETS[name], **bill}
    app = opened(CALENDAR, texts)
    assert told(app) == expected(texts)
    assert not [error for error in bodies(app, "np-error") if "missed" not in error]
    assert len(app.get("plotly_chart")) == 1
    for chart in app.get("plotly_chart"):
        go.Figure(json.loads(chart.proto.spec))
    text = stripped(said_on(app))
    wrong = NO_NUMBER.search(text)
    assert not wrong, text[max(0, wrong.start() - 80) :][:160]
    assert ("unknown" in text) == (not bill)


CHANGES = {
    "start": "2027-03-01",
    "due": "2027-12-31",
    "spare": "1",
    "closed": "2027-01-16",
    "mhours": "8",
    "pools": "ours: 64 H100 SXM owned $30,000 over 4 years",
    "cpool": "ours",
    "runs": "2",
    "r1n": "first",
    "r1m": "8B",
    "r1t": "40B",
    "r1s": "131,072",
    "r1c": "50%",
    "r1d": "2027-02-01",
    **BILL,
    "term": "2 years",
    "years": "4",
    "kwh": "0.2",
    "gpu": "H800 SXM",
    "price": "9",
    "mfu": "40%",
}
"""Field → another text for it, by which what the calendar or the bill says is another."""


@pytest.mark.sweep(9)
@pytest.mark.parametrize("field", CHANGES)
def test_every_control_changes_what_is_said(field: str) -> None:
    others = {**SMALL, **BILL, "due": "2027-06-30"}
    if field == "cpool":
        others |= {"pools": CHANGES["pools"], "price": "0"}
    before = {**others, field: FORM[field].default} if field in BILL else others
    same, changed = (
        stripped(said_on(opened(CALENDAR, texts))) for texts in (before, {**before, field: CHANGES[field]})
    )
    assert same != changed


def test_the_last_calendar_stays_where_the_next_cannot_be_made() -> None:
    app = opened(CALENDAR, SMALL)
    before = told(app)
    app.text_input(key="p_tokens").set_value("1e18").run()
    assert told(app) == before
    assert "shows the last valid result" in stripped("\n".join(bodies(app, "np-error")))
    app.text_input(key="p_tokens").set_value("8T").run()
    app.text_input(key="y_start").set_value("2027-02-30").run()
    assert told(app) == before
    assert "uses 2027-01-15" in stripped("\n".join(bodies(app, "np-error")))


def test_a_runs_name_leads_to_its_budget() -> None:
    texts = PRESETS["Llama 3 405B: 8k, then 128k"]
    app = opened(CALENDAR, texts)
    links = [html.unescape(link) for link in re.findall(r'<td[^>]*><a href="([^"]+)"', said_raw(app))]
    s = calendar_request(FORM.parse(texts)).schedule()
    assert len(links) == len(s.runs) == 2
    for link, one in zip(links, s.runs, strict=True):
        fields = dict(parse_qsl(link.partition("?")[2], keep_blank_values=True))
        there = opened(COMPUTE, {name.partition("_")[2]: text for name, text in fields.items() if name != "v"})
        assert told(there) == shown(plan_text.headline(one.answer))


def said_raw(app: AppTest) -> str:
    return "\n".join(block.proto.body for block in app.get("html"))


def test_a_link_names_every_field_and_opens_to_the_same_page() -> None:
    opens_to_itself(CALENDAR, FORM, {**PRESETS["A year’s fleet with experiments"], **BILL, "kwh": "0.11"})


def test_rows_that_are_put_away_keep_their_fields() -> None:
    app = opened(CALENDAR, {**SMALL, "runs": "2", "r2t": "5B"})
    both = told(app)
    app.slider(key="y_runs").set_value(1).run()
    assert told(app) != both
    assert linked(app)["y_r2t"] == "5B"
    app.slider(key="y_runs").set_value(2).run()
    assert told(app) == both
    assert app.text_input(key="y_r2t").value == "5B"


FLEET = """ours: 64 H100 SXM owned $30,000 over 4 years
burst: 128 H200 rented $2.60/h
bad: 12 H900 rented"""


def test_a_bad_line_of_pools_is_said_and_the_good_ones_stay() -> None:
    app = opened(CALENDAR, {**SMALL, "pools": FLEET, "r1p": "burst"})
    errors = stripped("\n".join(bodies(app, "np-error")))
    assert "“bad: 12 H900 rented”" in errors
    assert len(bodies(app, "np-error")) == 1
    assert told(app) == expected({**SMALL, "pools": FLEET, "r1p": "burst"})
    assert linked(app)["y_pools"] == FLEET
    app.text_input(key="y_r1p").set_value("brust").run()
    assert "Did you mean burst" in stripped("\n".join(bodies(app, "np-error")))
    assert told(app) == expected({**SMALL, "pools": FLEET, "r1p": "burst"})


def test_small_fields_add_a_pool() -> None:
    app = opened(CALENDAR, SMALL)
    fold(app, "y_fold_pools", open=True)
    app.text_input(key="y_pool_name").set_value("mine").run()
    app.text_input(key="y_pool_price").set_value("2").run()
    app.button(key="y_pool_add").click().run()
    assert linked(app)["y_pools"] == "mine: H100 SXM rented, $2/h"
    app.text_input(key="y_pool_count").set_value("64").run()
    app.button(key="y_pool_add").click().run()
    assert linked(app)["y_pools"].splitlines()[1] == "mine: 64 H100 SXM rented, $2/h"
    assert "y_r1p" in {box.key for box in app.text_input}


def test_a_way_of_the_choice_becomes_the_plan() -> None:
    fleet = FLEET.replace("128 H200", "256 H200")
    texts = {**SMALL, "pools": fleet, "due": "2027-01-29", "most": "$1M"}
    app = opened(CALENDAR, texts)
    fold(app, "y_which", open=True)
    app.button(key="y_choose_all").click().run()
    (owned,) = (entry for entry in app.session_state["compared:plans"].values() if "ours" in entry.name)
    said = stripped(said_on(gone_to(app, COMPARE)))
    (burst,) = set(re.findall(r"[\d,]+ H200 SXM \(burst\)", said))
    assert rent(owned.answer.dollars.mid) in said
    gone_to(app, CALENDAR)
    fold(app, "y_which", open=True)
    held = app.session_state["compared:plans"]
    app.session_state["compared:plans"] = dict(list(held.items())[:1])
    app.button(key="y_choose_all").click().run()  # the first is there already, and the others are put beside it
    assert len(app.session_state["compared:plans"]) == len(held) > 1
    button = next(button for button in app.button if button.label == burst)
    button.click().run()
    link = linked(app)
    assert (link["p_gpu"], link["p_count"], link["p_price"]) == ("H200 SXM", burst.split()[0], "2.6")
    assert (link["y_pools"], link["y_cpool"]) == (fleet, "burst")


def test_a_pool_that_is_owned_is_not_held_twice_when_it_becomes_the_plan() -> None:
    app = opened(CALENDAR, {**SMALL, "pools": FLEET, "due": "2027-01-29"})
    fold(app, "y_which", open=True)
    button = next(button for button in app.button if button.label == "64 H100 SXM (ours)")
    button.click().run()
    link = linked(app)
    assert (link["p_gpu"], link["p_count"], link["p_price"]) == ("H100 SXM", "64", "0")
    assert link["y_pools"] == FLEET
    s = calendar_request(FORM.parse({name.partition("_")[2]: text for name, text in link.items()})).schedule()
    assert [(pool.name, pool.accelerators) for pool in s.pools] == [(OWN_CLUSTER, 64), ("burst", 128)]
