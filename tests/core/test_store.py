"""Saved plans: what was saved is what is read, no change is lost, and the history tells all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import insert

from core.limits import LIMITS, Limit, limit
from core.planning.comparison.entry import Entry, entry_of
from core.store.errors import Conflict, StoreError
from core.store.plans import ARCHIVED, NAME, NOTE, RESULT, TAGS, SavedPlan
from core.store.rows import as_of, cleaned, folded, tags_of
from core.store.store import Store
from core.store.tables import COMMENTS
from core.views.report.data import read_json, saved_as_json
from tests.core import store_cases as cases
from tests.core.store_cases import said

PLAIN = entry_of("A plan", {"n": "8B"})


@pytest.fixture
def store() -> Iterator[Store]:
    with cases.fresh() as made:
        yield made


@pytest.fixture(scope="module")
def shared() -> Iterator[Store]:
    with cases.fresh() as made:
        yield made


@given(entry=cases.ENTRIES, note=cases.NOTES, tags=cases.TAGS, owner=cases.NAMES)
def test_what_was_saved_is_what_is_read(shared: Store, entry: Entry, note: str, tags: Any, owner: str) -> None:
    saved = shared.save(entry, note, tags, owner)
    assert (saved.entry, saved.note, saved.tags, saved.owner) == (entry, note, tags, owner)
    assert (saved.revision, saved.archived, saved.problems) == (1, False, ())
    assert shared.get(saved.id) == saved == shared.find().plans[0]


# ------------------------------------------------------------------------------------------ any sequence of operations


@dataclass
class _Model:
    """What the store should hold, kept as plainly as can be."""

    plans: dict[str, SavedPlan] = field(default_factory=dict)
    firsts: dict[str, dict[str, str]] = field(default_factory=dict)
    were: dict[tuple[str, int], SavedPlan] = field(default_factory=dict)

    def put(self, plan: SavedPlan) -> None:
        self.firsts.setdefault(plan.id, _state(plan))
        self.plans[plan.id] = self.were[plan.id, plan.revision] = plan


def _state(plan: SavedPlan) -> dict[str, str]:
    """A plan as its history names it, empty texts aside."""
    results = {RESULT + name: repr(value) for name, value in plan.entry.results.items()}
    own = {NAME: plan.entry.name, NOTE: plan.note, TAGS: ", ".join(plan.tags), ARCHIVED: str(plan.archived).lower()}
    return {name: text for name, text in {**plan.entry.texts, **results, **own}.items() if text}


OPERATION = st.one_of(
    st.tuples(st.just("save"), cases.ENTRIES),
    st.tuples(st.just("change"), cases.ENTRIES),
    st.tuples(st.just("late"), cases.ENTRIES),
    st.tuples(st.just("name"), cases.NAMES),
    st.tuples(st.just("note"), cases.NOTES),
    st.tuples(st.just("tags"), cases.TAGS),
    st.tuples(st.sampled_from(["duplicate", "archive", "restore", "forget"]), st.none()),
)


@settings(max_examples=25)
@given(st.lists(st.tuples(OPERATION, st.integers(0, 5)), min_size=1, max_size=15))
def test_any_sequence_of_operations_keeps_a_history_that_leads_back(steps: list[tuple[tuple[str, Any], int]]) -> None:
    model = _Model()
    with cases.fresh() as store:
        for (what, given_), which in steps:
            _do(store, model, what, given_, which)
        for archived in (False, True):
            here = {one.id for one in model.plans.values() if one.archived == archived}
            found = store.find(archived=archived, per_page=100)
            assert {one.id for one in found.plans} == here
            assert found.total == len(here)
            assert list(found.plans) == sorted(found.plans, key=lambda one: (one.changed, one.id), reverse=True)
        for plan in model.plans.values():
            assert store.get(plan.id) == plan
            history = store.history(plan.id)
            assert [one.revision for one in history] == list(range(plan.revision, 0, -1))
            assert [one.when for one in history] == sorted((one.when for one in history), reverse=True)
            state = _state(plan)
            for edit in (edit for change in history for edit in change.edits):
                assert state.get(edit.field, "") == edit.new != edit.old
                state[edit.field] = edit.old
            assert {name: text for name, text in state.items() if text} == model.firsts[plan.id]
            for revision in range(1, plan.revision + 1):
                then, was = as_of(plan, history, revision), model.were[plan.id, revision]
                assert then is not None
                assert (then.entry, then.note, then.tags) == (was.entry, was.note, was.tags)
                assert as_of(plan, history[1:], revision) is None or revision == plan.revision
            back = as_of(plan, history, 1)
            assert back is not None
            undone = store.change(plan.id, plan.revision, entry=back.entry, note=back.note, tags=back.tags)
            assert (undone.entry, undone.note, undone.tags) == (back.entry, back.note, back.tags)


def _do(store: Store, model: _Model, what: str, value: Any, which: int) -> None:
    plan = list(model.plans.values())[which % len(model.plans)] if model.plans else None
    if what == "save":
        model.put(store.save(value))
    elif plan is None:
        return
    elif what == "change":
        model.put(store.change(plan.id, plan.revision, entry=value))
    elif what == "late":
        with pytest.raises(Conflict) as raised:
            store.change(plan.id, plan.revision - 1, entry=value)
        assert raised.value.newer == plan
    elif what in ("name", "note", "tags"):
        model.put(store.change(plan.id, plan.revision, **{what: value}))
    elif what == "duplicate":
        model.put(store.duplicate(plan.id))
    elif what == "archive":
        model.put(store.archive(plan.id))
    elif what == "restore":
        model.put(store.restore(plan.id))
    elif not plan.archived:
        with pytest.raises(StoreError):
            store.forget(plan.id)
    else:
        store.forget(plan.id)
        del model.plans[plan.id]
        assert not store.history(plan.id)


# ------------------------------------------------------------------------------------------ two people, one plan


def test_of_two_who_change_one_plan_the_second_is_told(store: Store) -> None:
    first = store.save(PLAIN)
    mine = store.change(first.id, first.revision, note="mine", who="Ada")
    with pytest.raises(Conflict) as raised:
        store.change(first.id, first.revision, name="theirs", who="Bo")
    assert raised.value.newer == mine == store.get(first.id)
    over = store.change(first.id, mine.revision, name="theirs", who="Bo")
    assert (over.note, over.entry.name) == ("mine", "theirs")
    assert [change.who for change in store.history(first.id)] == ["Bo", "Ada", ""]


def test_of_many_who_change_a_plan_at_once_each_is_in_its_history(store: Store) -> None:
    saved = store.save(PLAIN)
    acts = [store.archive if i % 2 else store.restore for i in range(8)]
    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(lambda act: act(saved.id, "Bo"), acts))
    made = store.get(saved.id).revision
    assert {plan.revision for plan in done} <= set(range(1, made + 1))
    assert [change.revision for change in store.history(saved.id)] == list(range(made, 0, -1))


def test_a_change_of_nothing_is_none(store: Store) -> None:
    saved = store.save(PLAIN, "note", ["a"])
    assert store.change(saved.id, 1, entry=PLAIN, note=" note ", tags=["A", "a"][1:]) == saved
    assert store.restore(saved.id) == saved


def test_an_order_of_changes_survives_a_clock_that_is_set_back() -> None:
    with cases.fresh() as made:
        times = iter([10_000_000, 10_000_001, 5, 5, 5])
        store = Store(made._engine, lambda: next(times))
        old, young = store.save(PLAIN), store.save(PLAIN)
        for _ in range(2):
            old = store.change(old.id, old.revision, note=f"{old.revision}")
        whens = [one.when for one in store.history(old.id)]
        assert whens == sorted(whens, reverse=True)
        assert store.find().plans == (old, young)


def test_the_first_plan_of_a_deleted_one_is_missed(store: Store) -> None:
    saved = store.archive(store.save(PLAIN).id)
    store.forget(saved.id)
    for act in (store.get, store.archive, store.duplicate, store.forget, lambda one: store.change(one, 2, name="x")):
        with said("store.error.missing"):
            act(saved.id)


# ------------------------------------------------------------------------------------------ finding


def test_a_search_wants_every_word_and_every_tag_in_any_case(store: Store) -> None:
    a = store.save(entry_of("Überlauf 100%", {"model": "Mixtral 8x7B"}), "with_offload", ["final", "Q3"])
    b = store.save(entry_of("Second", {"gpu": "H200"}), tags=["Q3"])
    wanted = {"": [b, a], "ÜBERLAUF": [a], "überlauf mixtral": [a], "überlauf h200": [], "100%": [a], "1%0": []}
    for text, found in {**wanted, "h_offload": [a], "hxoffload": [], "h200": [b], "final": [a], "\\": []}.items():
        assert store.find(text).plans == tuple(found), text
        assert store.find(text).total == len(found)
    assert store.find(tags=["Q3"]).total == 2
    assert store.find(tags=["Q3", "final"]).plans == (a,)
    assert store.find(tags=["Q"]).total == 0
    assert (store.find(tags=["q3"]).total, store.find(tags=["FINAL"]).plans) == (2, (a,))
    assert store.tags() == ("final", "Q3")
    store.archive(a.id)
    assert (store.find("mixtral").total, store.find("mixtral", archived=True).total) == (0, 1)
    assert (store.tags(), store.tags(archived=True)) == (("Q3",), ("final", "Q3"))


@given(name=cases.NAMES, count=st.integers(1, 10**6))
def test_a_plan_is_like_the_one_of_its_name_and_texts_alone(shared: Store, name: str, count: int) -> None:
    entry = entry_of(name, {"count": str(count)})
    saved = shared.save(entry)
    assert shared.like(entry) == saved
    assert shared.like(entry_of(name, {"count": str(count + 10**6)})) is None
    shared.archive(saved.id)
    assert shared.like(entry) != saved


@given(name=cases.NAMES, note=cases.NOTES)
def test_a_plan_is_found_by_each_of_its_own_words(shared: Store, name: str, note: str) -> None:
    saved = shared.save(entry_of(name, {}), note)
    text = " ".join(folded(f"{name} {note}")[: limit("search_chars")].split()[:-1])
    found = shared.find(text, per_page=1)
    assert found.plans == (saved,)


def test_pages_are_all_plans_once(store: Store) -> None:
    saved = [store.save(PLAIN).id for _ in range(7)][::-1]
    pages = [[one.id for one in store.find(page=page, per_page=3).plans] for page in (1, 2, 3)]
    assert pages == [saved[:3], saved[3:6], saved[6:]]
    assert [one.id for one in store.find(page=99, per_page=3).plans] == saved[6:]
    assert [one.id for one in store.find(page=-1, per_page=3).plans] == saved[:3]


# ------------------------------------------------------------------------------------------ what is too much


def test_caps_are_said_and_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with said("store.error.name"):
        store.save(entry_of(" \u0000 ", {}))
    saved = store.save(entry_of("n" * 500, {}), "x" * 9999, [f"{i}{'t' * 99}" for i in range(99)], "o" * 999)
    assert len(saved.entry.name) == limit("plan_name")
    assert len(saved.note) == limit("plan_note")
    assert (len(saved.tags), max(map(len, saved.tags))) == (limit("plan_tags"), limit("tag_chars"))
    assert len(saved.owner) == limit("plan_owner")
    with said("store.error.name"):
        store.change(saved.id, 1, name="\n")
    with said("store.error.long"):
        store.save(Entry("long", {**PLAIN.texts, "n": "7" * 30_000}))
    monkeypatch.setitem(LIMITS, "saved_plans", Limit(1, "plans", "a test"))
    with said("store.error.many"):
        store.duplicate(saved.id)
    assert store.find().total == 1


def test_comments_of_an_older_napkin_are_in_the_export_that_compare_reads(store: Store) -> None:
    plan, other = store.save(PLAIN, "a note", ["ours"]), store.save(PLAIN)
    rows = [(2, "<b>second</b>\nline", "Ada"), (1, "first", "")]
    with store._engine.begin() as connection:
        for made, text, who in rows:
            row = {"id": text[:9], "plan": plan.id, "made": made, "text": text, "who": who}
            connection.execute(insert(COMMENTS), row)
    text = saved_as_json(plan, store.comments(plan.id))
    (written,) = json.loads(text)["plans"]
    assert [(one["text"], one["who"]) for one in written["comments"]] == [row[1:] for row in rows[::-1]]
    assert (written["note"], written["tags"]) == ("a note", ["ours"])
    assert read_json(text) == ((plan.entry,), ())
    assert store.comments(other.id) == ()
    store.forget(store.archive(plan.id).id)
    assert store.comments(plan.id) == ()


def test_half_a_character_spoils_nothing_else(store: Store) -> None:
    saved = store.save(
        entry_of("a\ud800b", {"n": "8\ud800B", "gpu": "H200", "tokens": "1\x00T"}), "\ud800", ["\ud800t"]
    )
    assert (saved.entry.name, saved.note, saved.tags, saved.problems) == ("ab", "", ("t",), ())
    assert {name: saved.entry.texts[name] for name in ("n", "gpu", "tokens")} == {
        "n": "8?B",
        "gpu": "H200",
        "tokens": "1\x00T",
    }
    assert store.find("\ud800h200").plans == (saved,)


@given(st.text(max_size=40))
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    once = cleaned(text, 20, lines=True)
    assert cleaned(once, 20, lines=True) == once
    assert len(once) <= 20
    assert "\x00" not in once
    assert once.encode().decode() == once
    assert tags_of(tags_of(text)) == tags_of(text)
