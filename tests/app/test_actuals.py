"""Compute budget, a running job: pasted, made up, kept or removed, and counted among one's own runs."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from core.planning.measured import parse_own_runs
from pages.common.registry import COMPUTE
from tests.app.plan_pages import bodies, fold, linked, opened, said_by

OPENED = {"actuals": "true", "until": "200 days"}
SHORT = "days,tokens\n0,0\n20,1T\n40,2.2T"


def paste(app: AppTest, log: str) -> AppTest:
    app.text_area(key="compute:log:text").set_value(log).run()
    assert not app.exception
    return app


def verdict(app: AppTest) -> str:
    return said_by(app, "actuals.progress")


def test_an_example_is_drawn_and_counts_as_a_run_of_ones_own() -> None:
    app = opened(COMPUTE, OPENED)
    assert not verdict(app)
    app.button(key="compute:log:example").click().run()
    assert verdict(app)
    before = bodies(app, "np-answer")
    app.button(key="compute:log:own").click().run()
    (own,) = parse_own_runs(linked(app)["p_ownruns"])
    assert own.tokens == pytest.approx(0.45 * 15e12)
    assert bodies(app, "np-answer") != before
    assert not [button for button in app.button if button.key == "compute:log:own"]


def test_a_short_log_travels_in_the_link_and_a_long_one_stays() -> None:
    app = paste(opened(COMPUTE, OPENED), SHORT)
    assert linked(app)["c_log"] == SHORT
    assert verdict(opened(COMPUTE, OPENED | {"log": SHORT})) == verdict(app) != ""
    fold(app, "compute:log:other", open=True)
    paste(app, "\n".join(["days,tokens", *(f"{day / 10},{day * 6e9}" for day in range(500))]))
    assert "c_log" not in linked(app)
    app.button(key="compute:log:remove").click().run()
    assert not app.exception
    assert not verdict(app)


def test_a_bad_log_says_why_and_leaves_the_one_there() -> None:
    app = opened(COMPUTE, OPENED | {"log": SHORT})
    said = verdict(app)
    fold(app, "compute:log:other", open=True)
    paste(app, "days,loss\n0,3\n1,2")
    assert bodies(app, "np-error")
    assert verdict(app) == said
    assert bodies(opened(COMPUTE, OPENED | {"log": "nothing"}), "np-error")
