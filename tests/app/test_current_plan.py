"""One current plan: a change on one page shows on every other, whatever page lies between."""

from __future__ import annotations

import math
from itertools import count

import pytest
from streamlit.testing.v1 import AppTest

from core.messages import message
from core.planning.form.plan_form import FIND, PLAN_FIELDS, PLAN_FORM
from core.planning.plan import OWN_SHAPE
from core.store.store import Store
from core.views.plan.text import NO_MODEL
from pages.common.registry import COMPARE, COMPUTE, DECIDE, HOME, MEMORY, PAGES, PARALLEL, WHAT_IF, PageSpec
from tests.app.plan_pages import CONFIG, bodies, fold, linked, next_pages, opened, shown, stripped
from tests.app.test_saved import only, save

PLAN_PAGES = tuple(page for page in PAGES if page.plans)
"""Pages that ask of the current plan."""


def plan_on(app: AppTest, page: PageSpec) -> dict[str, str]:
    """The plan that the page's own link carries."""
    link = {name.partition("_")[2]: text for name, text in linked(app).items()}
    return {field.id: link[field.id] for field in PLAN_FIELDS if field.id in link}


def change(app: AppTest, count: int) -> dict[str, str]:
    """Gives the fields that are others now."""
    changed = {"count": str(count), "gpu": ("H200 SXM", "B200")[count % 2]}
    app.text_input(key="p_count").set_value(changed["count"])
    app.selectbox(key="p_gpu").set_value(changed["gpu"]).run()
    assert not app.exception
    return changed


def go(app: AppTest, page: PageSpec) -> AppTest:
    """By the menu, which leaves nothing of the former page in the address."""
    app.query_params.clear()
    app.switch_page(page.path).run()
    assert not app.exception
    return app


@pytest.mark.parametrize("page", PLAN_PAGES, ids=lambda page: page.id)
def test_every_page_opens_on_the_same_plan(page: PageSpec) -> None:
    assert plan_on(opened(page, {}), page) == plan_on(opened(COMPUTE, {}), COMPUTE)


@pytest.mark.sweep(5)
@pytest.mark.parametrize("apart", range(1, len(PAGES)))
def test_a_plan_changed_on_one_page_shows_on_another(apart: int) -> None:
    """On the way round from each page to the one so many places behind it: the ways together take every page to every
    other. Pages without a plan let it pass.
    """
    app, counts = opened(COMPUTE, {}), count(90)
    changed = change(app, next(counts))
    circles = math.gcd(apart, len(PAGES))
    for first in range(circles):
        for place in range(first, first + apart * (len(PAGES) // circles) + 1, apart):
            page = PAGES[place % len(PAGES)]
            go(app, page)
            if page in PLAN_PAGES:
                assert plan_on(app, page).items() >= changed.items(), page.id
                changed = change(app, next(counts))
    assert plan_on(go(app, MEMORY), MEMORY).items() >= changed.items()


def test_what_was_found_is_the_plan_elsewhere_and_is_asked_for_no_more() -> None:
    app = opened(COMPUTE, {"find": "accelerators", "within": "60 days"})
    (way,) = (body for body in bodies(app, "np-note") if message("plan.link.decide") in body)
    assert "until=60+days" in way
    go(app, MEMORY)
    there = plan_on(app, MEMORY)
    assert there["count"] != PLAN_FORM["count"].default
    assert f"p_count={there['count']}&" in way.replace("%2C", ",").replace("&amp;", "&")
    go(app, COMPUTE)
    again = plan_on(app, COMPUTE)
    assert (again["find"], again["count"]) == (FIND.default, there["count"])


def test_a_link_opens_its_own_plan_and_nothing_of_the_one_before() -> None:
    app = opened(COMPUTE, {"count": "96", "tokens": "3T"})
    app.query_params.clear()
    app.query_params["p_n"] = "8B"
    app.switch_page(MEMORY.path).run()
    plan = plan_on(app, MEMORY)
    assert (plan["n"], plan["count"], plan["tokens"]) == ("8B", PLAN_FORM["count"].default, PLAN_FORM["tokens"].default)


def test_a_bad_text_stays_in_its_box() -> None:
    app = opened(COMPUTE, {})
    app.text_input(key="p_n").set_value("many").run()
    used = message("error.shown.field", field=PLAN_FORM["n"].label, text=PLAN_FORM["n"].default)
    for page in (MEMORY, HOME):  # nothing typed is lost, and it is said wherever the plan stands
        go(app, page)
        assert app.text_input(key="p_n").value == "many"
        assert any("many" in said for said in bodies(app, "np-error"))
        assert message("sidebar.last_valid", fields=[used]) in map(stripped, bodies(app, "np-note"))
        assert plan_on(app, page)["n"] == PLAN_FORM["n"].default


def test_new_begins_anew_and_back_returns() -> None:
    app = opened(COMPUTE, {"n": "8B", "tokens": "2T"})
    before = plan_on(app, COMPUTE)
    app.button(key="plan:new").click().run()
    assert plan_on(app, COMPUTE) == plan_on(opened(COMPUTE, {}), COMPUTE)
    go(app, PARALLEL)
    app.button(key="plan:undo").click().run()
    assert plan_on(app, PARALLEL) == before


@pytest.mark.parametrize("pressed", [DECIDE, COMPUTE])
def test_new_leaves_no_deadline_of_a_page_behind_and_undo_brings_it_back(pressed: PageSpec) -> None:
    app = opened(WHAT_IF, {})
    app.text_input(key="w_due").set_value("33 days").run()
    go(app, pressed)
    app.button(key="plan:new").click().run()
    go(app, WHAT_IF)
    assert linked(app)["w_due"] == ""
    assert app.text_input(key="w_due").value == ""
    app.button(key="plan:undo").click().run()
    assert linked(app)["w_due"] == app.text_input(key="w_due").value == "33 days"


def test_a_saved_plan_goes_along_with_its_name(store: Store) -> None:
    app = opened(COMPUTE, {"n": "8B"})
    save(app, COMPUTE, "Ours")
    plan = only(store)
    for page in (MEMORY, PARALLEL, WHAT_IF, DECIDE):
        go(app, page)
        assert stripped(bodies(app, "np-plan")[0]).startswith("Ours")
        if page != DECIDE:  # whose address names a saved decision
            assert plan.id in app.query_params["r_plan"]
    app.button(key="plan:new").click().run()
    assert "r_plan" not in app.query_params
    assert stripped(bodies(app, "np-plan")[0]).startswith("70B")


@pytest.mark.parametrize(("box", "field", "value"), [("limits", "p_sure", "P90"), ("layout", "p_lay", "own")])
def test_a_box_stays_open_when_its_first_field_changes(box: str, field: str, value: str) -> None:
    app = opened(COMPUTE, {})
    fold(app, f"plan:{box}", open=True)
    app.button_group(key=field).set_value(value).run()
    assert linked(app)[field] == value
    assert app.button_group(key=field)  # drawn only while it is open
    assert f"np-changed-{box}" in bodies(app, "np-plan")[0]


@pytest.mark.parametrize("page", PLAN_PAGES, ids=lambda page: page.id)
def test_page_without_a_model_has_no_answer_and_a_box_for_its_config(page: PageSpec) -> None:
    app = opened(page, {"model": OWN_SHAPE})
    assert app.text_area(key="plan:config").value == ""
    assert not app.get("plotly_chart")
    (said,) = bodies(app, "np-answer")
    assert (shown(NO_MODEL[0]) in said) == (page != COMPARE)
    app.button(key="plan:add").click().run()
    fold(app, f"{page.id}:saving", open=True)
    assert not app.exception
    go(app, COMPARE)
    assert app.text_input(key="k_name_1").value
    app.text_area(key="plan:config").set_value(CONFIG).run()
    assert bodies(go(app, page), "np-answer") != [said]
    assert plan_on(app, page)["shape"].startswith("layers=2 hidden=64")


def test_link_to_another_accelerators_memory_leaves_the_price_behind() -> None:
    app = opened(HOME, {"gpu": "H200 SXM", "price": "2.80", "mem": "MI355X"})
    (link,) = (link for link in next_pages(app, MEMORY) if link["gpu"] == "MI355X")
    assert link["price"] == ""
