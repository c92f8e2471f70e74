"""Calendars as documents: saved, opened where they were, changed, found on Saved plans."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from core.planning.comparison.comparison import calendar_result, with_results
from core.planning.comparison.entry import entry_of
from core.store.locations import plan_store as store_opened
from core.store.opened_plan import on_page, with_changes
from core.store.plans import SavedPlan
from pages.calendar.form import FORM
from pages.common.registry import CALENDAR, SAVED
from tests.app.plan_pages import bodies, downloads, fold, linked, opened, stripped
from tests.app.plan_pages import words as said_on

SMALL = {"n": "1B", "tokens": "8T", "count": "64", "seq": "4,096", "runs": "2", "r2t": "1T", "price": "2"}
SMALL |= {"pools": "burst: 128 H200 rented $2.60/h", "r2p": "burst"}


pytestmark = pytest.mark.usefixtures("store")


def saved() -> list[SavedPlan]:
    return list(store_opened().find(kind="calendar").plans)


def save(app: AppTest, name: str) -> None:
    fold(app, "calendar:saving", open=True)
    app.text_input(key="y_save_name").set_value(name).run()
    app.button(key="y_save").click().run()
    assert not app.exception


def test_a_calendar_is_saved_with_all_its_texts_and_opens_to_them() -> None:
    app = opened(CALENDAR, SMALL)
    save(app, "Ours")
    (plan,) = saved()
    assert (plan.entry.name, plan.entry.kind) == ("Ours", "calendar")
    assert {name: plan.entry.texts[name] for name in SMALL} == SMALL
    assert store_opened().find().total == 0  # no list of plans has it
    again = opened(CALENDAR, on_page(plan.entry, fill_answer=True))
    assert bodies(again, "np-answer") == bodies(app, "np-answer")
    assert {name: linked(again)[FORM.key(name)] for name in SMALL} == SMALL
    item = calendar_result(plan.entry)
    assert item.schedule is not None
    assert plan.entry.results["days"] == item.schedule.ends.mid
    assert plan.entry.results["dollars"] == item.dollars


def test_its_changes_are_saved_as_a_revision() -> None:
    app = opened(CALENDAR, SMALL)
    save(app, "Ours")
    app.text_input(key="y_r2t").set_value("2T").run()
    app.button(key="y_save_changes").click().run()
    (plan,) = saved()
    assert (plan.revision, plan.entry.texts["r2t"]) == (2, "2T")
    assert with_changes(plan.entry, plan.entry.texts, fill_answer=True) == plan.entry


def test_saved_plans_lists_it_and_says_what_it_comes_to() -> None:
    plan = store_opened().save(with_results(entry_of("Ours", SMALL, "calendar")))
    app = opened(SAVED, {"plan": plan.id})
    text = stripped(said_on(app))
    assert "Ours" in text
    assert "Both runs end on" in text
    assert not [button for button in app.button if button.label == "Add to comparison"]


def test_the_name_of_a_saved_calendar_is_no_markup() -> None:
    name = "a **bold** `code` 2^k"
    plan = store_opened().save(with_results(entry_of(name, SMALL, "calendar")))
    app = opened(SAVED, {"plan": plan.id})
    (heading,) = bodies(app, "np-question")
    assert stripped(heading).replace("\u2060", "") == name
    assert "<b>" not in heading
    assert not [button for button in app.button if button.label == "Add to comparison"]


def test_a_calendar_can_be_reported() -> None:
    texts = {**SMALL, "r1n": "<b>bold</b> | $x$", "due": "2027-01-16"}
    with downloads() as files:
        app = opened(CALENDAR, texts)
        fold(app, "y_fold_take", open=True)
        html, markdown = (files[ending]().decode() for ending in ("html", "md"))
    assert "<b>bold</b>" not in html
    for part in ("burst", "y_r2p=burst"):
        assert part in html
        assert part in markdown
    assert html.count(" data-figure=") == 1


def test_an_earlier_revision_of_a_calendar_comes_back() -> None:
    store = store_opened()
    plan = store.save(with_results(entry_of("Ours", SMALL, "calendar")))
    store.change(plan.id, 1, entry=with_results(entry_of("Ours", {**SMALL, "r2t": "2T"}, "calendar")))
    app = opened(SAVED, {"plan": plan.id})
    fold(app, f"saved:history:{plan.id}", open=True)
    app.button(key=f"r_back_{plan.id}_2_do").click().run()
    assert not app.exception
    assert (store.get(plan.id).entry, store.get(plan.id).revision) == (plan.entry, 3)
