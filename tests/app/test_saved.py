"""Saving a plan where it is worked out, and all that can be done with it on Saved plans, by one or by two visitors."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from core.messages import message
from core.planning.comparison.comparison import with_saved_results
from core.planning.comparison.entry import entry_of, examples
from core.store.errors import StoreError
from core.store.opened_plan import on_page, with_changes
from core.store.plans import SavedPlan
from core.store.store import Store
from pages.common.registry import COMPARE, COMPUTE, MEMORY, PARALLEL, SAVED, PageSpec
from pages.compare.columns import EDIT
from tests.app.plan_pages import bodies, fold, linked, opened, stripped, words
from tests.app.test_compare import with_plans
from tests.app.test_pages import APP, ROOT
from tests.patience import PATIENCE_S


def followed(app: AppTest, page: PageSpec, at: int = 0) -> AppTest:
    """The link to ``page`` that ``app`` shows, opened by another visitor."""
    links = re.findall(rf'href="{page.url_path}\?([^"]+)"', "\n".join(one.proto.body for one in app.get("html")))
    new = AppTest.from_file(APP, default_timeout=PATIENCE_S).run().switch_page(page.path)
    for name, text in parse_qsl(html.unescape(links[at]), keep_blank_values=True):
        new.query_params[name] = text
    new.run()
    assert not new.exception
    return new


def press(app: AppTest, key: str) -> None:
    app.button(key=key).click().run()
    assert not app.exception


def only(store: Store) -> SavedPlan:
    (plan,) = store.find().plans
    return plan


def save(app: AppTest, page: PageSpec, name: str = "") -> None:
    fold(app, f"{page.id}:saving", open=True)
    if name:
        app.text_input(key=f"{page.prefix}_save_name").set_value(name).run()
    press(app, f"{page.prefix}_save")


# ------------------------------------------------------------------------------------------ where it is worked out


@pytest.mark.parametrize("page", [COMPUTE, MEMORY, PARALLEL], ids=lambda page: page.id)
def test_a_plan_saved_on_a_page_is_the_plan_of_its_link(store: Store, page: PageSpec) -> None:
    app = opened(page, {"seq": "4,096"})
    assert store.find().total == 0
    save(app, page)
    plan = only(store)
    link = {name.partition("_")[2]: text for name, text in linked(app).items()}
    mine = with_changes(plan.entry, link, fill_answer=page != COMPUTE).texts
    laid = {"tp", "pp", "cp", "ep", "vpp", "mbs", "acc", "zero", "rc", "sp", "off", "hsdp"}
    other = {name for name, text in plan.entry.texts.items() if text != mine[name]}
    assert other <= (laid if page == PARALLEL else set())
    assert plan.entry.texts["seq"] == "4,096"
    assert plan.entry.name
    assert plan.entry.results.keys() >= {"days", "mfu"}
    assert plan.entry.name in words(app)


def test_a_saved_plan_opens_as_it_was_saved_and_takes_changes(store: Store) -> None:
    app = opened(COMPUTE, {"n": "8B"})
    save(app, COMPUTE, "Ours <b>**now**</b>")
    plan = only(store)
    assert plan.entry.name == "Ours <b>**now**</b>"
    assert "Ours <b>**now**</b>" in words(app).replace("\u2060", "")  # as text: the words are unescaped once
    app.text_input(key="p_tokens").set_value("3T").run()
    press(app, "c_save_changes")
    changed = store.get(plan.id)
    assert (changed.revision, changed.entry.texts["tokens"]) == (2, "3T")
    assert [edit.field for edit in store.history(plan.id)[0].edits if edit.field[0] != "_"] == ["tokens"]
    assert "c_save_changes" not in {button.key for button in app.button}
    assert (app.query_params["r_plan"], app.query_params["r_rev"]) == (plan.id, "2")
    there = followed(app, SAVED)
    assert "3T tokens" in re.sub("<[^>]*>", "", words(there))


@pytest.mark.parametrize("page", [COMPUTE, MEMORY, PARALLEL], ids=lambda page: page.id)
def test_a_plan_that_finds_something_is_not_changed_by_looking_at_it(store: Store, page: PageSpec) -> None:
    """Training memory and Parallel plan ask for a number of accelerators where the plan finds it."""
    texts = {"find": "accelerators", "within": "60 days", "n": "8B", "model": "Llama 3.1 8B", "mfu": "40%"}
    plan = store.save(entry_of("Finds", texts))
    app = followed(opened(SAVED, {}), page)
    fold(app, f"{page.id}:saving", open=True)
    assert "Finds" in words(app)
    if page != PARALLEL:  # which lays the plan out anew
        assert "c_save_changes" not in {button.key for button in app.button}
        now = on_page(plan.entry, fill_answer=page != COMPUTE)
        assert with_changes(plan.entry, {**now, "seq": "2048"}, fill_answer=page != COMPUTE).texts == {
            **plan.entry.texts,
            "seq": "2048",
        }


@pytest.mark.parametrize("way", ["take", "over", "copy"])
def test_of_two_visitors_neither_loses_a_change(store: Store, way: str) -> None:
    plan = store.save(entry_of("Both", {"n": "8B"}))
    listed = opened(SAVED, {})
    ada, bo = followed(listed, COMPUTE), followed(listed, COMPUTE)
    for app, tokens in ((ada, "1T"), (bo, "2T")):
        fold(app, "compute:saving", open=True)
        app.text_input(key="p_tokens").set_value(tokens).run()
    press(ada, "c_save_changes")
    press(bo, "c_save_changes")
    assert store.get(plan.id).entry.texts["tokens"] == "1T"
    assert len(bodies(bo, "np-error")) == 1
    table = words(bo)
    assert "1T" in table
    assert "2T" in table
    press(bo, {"take": "c_save_theirs", "over": "c_save_over", "copy": "c_save_copy"}[way])
    theirs, total = store.get(plan.id), store.find().total
    assert bo.text_input(key="p_tokens").value == ("1T" if way == "take" else "2T")
    assert theirs.entry.texts["tokens"] == ("2T" if way == "over" else "1T")
    assert (theirs.revision, total) == (3 if way == "over" else 2, 2 if way == "copy" else 1)
    assert bodies(bo, "np-error") == []
    kept = {one.entry.texts["tokens"] for one in store.find().plans}
    assert kept == {"take": {"1T"}, "over": {"2T"}, "copy": {"1T", "2T"}}[way]


def test_a_comparison_is_saved_whole_and_no_plan_of_it_twice(store: Store) -> None:
    app = with_plans(examples())
    fold(app, f"{COMPARE.id}:saving_all", open=True)
    press(app, "k_save_all")
    kept = {one.entry.name: one for one in store.find().plans}
    assert {name: one.entry.texts for name, one in kept.items()} == {one.name: one.texts for one in examples()}
    assert all(one.entry.results == with_saved_results(one.entry).results for one in kept.values())
    assert all(f"r_plan={one.id}" in words(app) for one in kept.values())
    press(app, "k_save_all")
    assert store.find().total == len(kept)
    # One that is changed is one more.
    app.menu_button[0].set_value(EDIT).run()
    app.text_input(key="p_count").set_value("64").run()
    press(app, "k_save_all")
    assert store.find().total == len(kept) + 1
    assert store.find().plans[0].entry.texts["count"] == "64"


@pytest.mark.parametrize("page", [COMPUTE, SAVED], ids=lambda page: page.id)
def test_a_database_that_is_away_leaves_the_rest_of_the_page(page: PageSpec) -> None:
    with patch.dict(os.environ, {"DATABASE_URL": "postgresql://user:secret@127.0.0.1:1/plans"}):
        app = opened(page, {})
        if page == COMPUTE:
            save(app, page)
            assert bodies(app, "np-answer")
        (wrong,) = set(bodies(app, "np-error"))
    assert message("store.error.away") in stripped(wrong)
    assert "secret" not in words(app)


@pytest.mark.process
def test_nothing_of_the_database_is_loaded_before_it_is_needed(tmp_path: Path) -> None:
    """In a process of its own: the app, Home and the pages that could save."""
    code = f"""
import sys
from streamlit.testing.v1 import AppTest
app = AppTest.from_file({APP!r}, default_timeout={PATIENCE_S}).run()
for path in {[COMPUTE.path, MEMORY.path, PARALLEL.path]!r}:
    app.switch_page(path).run()
    assert not app.exception, app.exception
print(sorted(name for name in sys.modules if name in ("sqlalchemy", "alembic", "psycopg", "sqlite3", "pydantic")))
"""
    env = {**os.environ, "NAPKIN_DATA": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    assert not (tmp_path / "data").exists()


# ------------------------------------------------------------------------------------------ Saved plans


def test_a_plan_is_found_renamed_tagged_and_noted(store: Store) -> None:
    one, other = store.save(entry_of("One", {"gpu": "H200"})), store.save(entry_of("Other", {}), tags=["final"])
    app = opened(SAVED, {"q": "h200"})
    assert "Other" not in words(app)
    assert app.selectbox(key="r_chosen").value == one.id
    app.text_input(key=f"r_name_{one.id}_1").set_value("=One")
    app.text_input(key=f"r_tags_{one.id}_1").set_value("b, a , B")
    app.text_area(key=f"r_note_{one.id}_1").set_value("line 1\nline 2")
    (submit,) = (button for button in app.button if button.label == message("saved.submit"))
    submit.click().run()
    assert not app.exception
    now = store.get(one.id)
    assert (now.entry.name, now.tags, now.note, now.revision) == ("=One", ("a", "b"), "line 1\nline 2", 2)
    assert "line 1" in words(app)
    app.text_input(key="r_q").set_value("").run()
    app.pills[0].set_value(["final"]).run()
    assert (app.selectbox(key="r_chosen").value, linked(app)["r_tags"]) == (other.id, "final")
    again = opened(SAVED, {"tags": "final"})
    assert again.pills[0].value == ["final"]
    assert "=One" not in words(again)


@pytest.mark.parametrize("way", ["take", "over", "copy"])
def test_of_two_who_rename_a_plan_neither_loses_a_change(store: Store, way: str) -> None:
    plan = store.save(entry_of("Both", {}), "first")
    ada, bo = opened(SAVED, {}), opened(SAVED, {})
    for app, name in ((ada, "Ada’s"), (bo, "Bo’s")):
        app.text_input(key=f"r_name_{plan.id}_1").set_value(name)
        next(button for button in app.button if button.label == message("saved.submit")).click().run()
        assert not app.exception
    assert store.get(plan.id).entry.name == "Ada’s"
    assert "Bo’s" in words(bo)
    press(bo, {"take": "r_save_theirs", "over": "r_save_over", "copy": "r_save_copy"}[way])
    names = {one.entry.name for one in store.find().plans}
    assert names == {"take": {"Ada’s"}, "over": {"Bo’s"}, "copy": {"Ada’s", "Bo’s"}}[way]
    assert bodies(bo, "np-error") == []


def test_archiving_can_be_undone_and_deleting_needs_the_archive(store: Store) -> None:
    plan = store.save(entry_of("Kept", {}))
    app = opened(SAVED, {})
    press(app, f"r_archive_{plan.id}")
    assert store.get(plan.id).archived
    press(app, "r_undo")
    assert not store.get(plan.id).archived
    press(app, f"r_duplicate_{plan.id}")
    (copy,) = (one for one in store.find().plans if one.id != plan.id)
    assert app.selectbox(key="r_chosen").value == copy.id
    press(app, f"r_archive_{copy.id}")
    archive = opened(SAVED, {"old": "true"})
    press(archive, f"r_forget_{copy.id}")
    with pytest.raises(StoreError):
        store.get(copy.id)
    assert only(store).id == plan.id


def test_an_earlier_revision_is_shown_and_comes_back_as_a_new_one(store: Store) -> None:
    plan = store.save(with_saved_results(entry_of("First", {})), "<b>was</b>", ["final"])
    now = store.change(plan.id, 1, entry=with_saved_results(entry_of("Second", {"tokens": "3T"})), note="", tags=[])
    app, late = opened(SAVED, {}), opened(SAVED, {})
    for one in (app, late):
        fold(one, f"saved:history:{plan.id}", open=True)
        said = words(one)
        assert all(f"<td>{text}" in said.replace(' class="num"', "") for text in ("Tokens", "15T", "3T", "First"))
        assert "<b>was</b>" in stripped(said) or "&lt;b&gt;" in "".join(b.proto.body for b in one.get("html"))
    press(app, f"r_back_{plan.id}_2_do")
    back = store.get(plan.id)
    assert (back.entry, back.note, back.tags, back.revision) == (plan.entry, plan.note, plan.tags, 3)
    told = message("saved.done.reverted", plan="First", earlier=1.0, revision=3.0)
    assert any(told in stripped(body) for body in bodies(app, "np-note"))
    press(late, f"r_back_{plan.id}_2_do")  # who has not seen revision 3
    assert len(bodies(late, "np-error")) == 1
    assert store.get(plan.id) == back
    press(app, f"r_back_{plan.id}_3_do")  # an undo is one more
    undone = store.get(plan.id)
    assert (undone.entry, undone.note, undone.revision) == (now.entry, "", 4)


def test_results_that_moved_since_saving_stand_beside_those_of_now(store: Store) -> None:
    entry = with_saved_results(entry_of("Old", {}))
    off = {**entry.results, "days": entry.results["days"] * 1.1, "mfu": entry.results["mfu"] * 1.0001}
    with patch("core.store.store.data_version", lambda: "before"):
        store.save(type(entry)(entry.name, entry.texts, off))
    said = words(opened(SAVED, {}))
    assert message("saved.moved") in said
    assert "<td>End-to-end time" in said
    assert "<td>MFU" not in said


def test_a_list_of_many_is_turned_page_by_page(store: Store) -> None:
    ids = [store.save(entry_of(f"Plan {i}", {})).id for i in range(23)]
    app = opened(SAVED, {})
    assert "Plan 22" in words(app)
    assert ">Plan 1<" not in words(app)
    press(app, "r_older")
    assert ">Plan 1<" in words(app)
    assert linked(app)["r_page"] == "2"
    assert opened(SAVED, {"page": "2"}).selectbox(key="r_chosen").value == ids[2]
    assert app.button(key="r_older").disabled


@pytest.mark.parametrize("page", [SAVED, COMPARE], ids=lambda page: page.id)
def test_several_saved_plans_go_into_the_comparison_under_their_names(store: Store, page: PageSpec) -> None:
    ids = [store.save(with_saved_results(entry_of(f"Plan {n}", {"n": n}))).id for n in ("7B", "8B", "9B")]
    app = opened(page, {})
    fold(app, f"{page.id}:several", open=True)
    for _ in range(2):
        app.multiselect(key=f"{page.prefix}_several").set_value(ids[:2]).run()
        press(app, f"{page.prefix}_several_add")
        held = app.session_state["compared:plans"].values()
        assert [(one.name, one.texts["n"]) for one in held] == [("Plan 7B", "7B"), ("Plan 8B", "8B")]
    assert any("already" in body for body in bodies(app, "np-error"))


@pytest.mark.parametrize("method", ["tags", "find", "get", "comments", "history"])
def test_a_database_that_goes_away_within_a_run_is_said(store: Store, method: str) -> None:
    """The plan that is looked at is not of the list, so that it is asked for by itself."""
    plan = store.archive(store.save(entry_of("Gone", {})).id)
    app = opened(SAVED, {"plan": plan.id})
    fold(app, f"saved:history:{plan.id}", open=True)

    def away(*_: object, **__: object) -> None:
        raise StoreError("It went away.")

    with patch.object(Store, method, away):
        app.run()
    assert not app.exception
    assert any("It went away." in body for body in bodies(app, "np-error"))
    assert [one.key for one in app.text_input].count("r_q") == 1
