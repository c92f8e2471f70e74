"""Saved plans, one of them: what it comes to then and now, where to open it, what is kept about it, its history."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from core.limits import limit
from core.planning.comparison.comparison import compare_plan, with_results
from core.store.errors import Conflict, StoreError
from core.store.locations import plan_store
from core.store.plans import NAME, NOTE, TAGS, SavedPlan
from core.store.rows import as_of, edits_between, tags_of
from core.units import format_exact
from core.views.common.rows import row_label
from core.views.comparison.text import plan_name
from core.views.report.data import saved_as_json
from core.views.store import text as store_text
from core.wording import unmarked
from pages.common import comparison_list, show
from pages.common.inputs import Inputs
from pages.common.registry import CALENDAR, COMPUTE, MEMORY, PARALLEL
from pages.common.saving import conflict, link_to, refusals
from pages.common.server.sign_in import who
from pages.common.takeaway import stem_of
from pages.saved.form import PLAN

_MESSAGE, _UNDO, _WRONG, _MINE = "saved:message", "saved:undo", "saved:wrong", "saved:mine"


def messages(inputs: Inputs) -> None:
    """What came of the last click, once, with the way back from an archived plan."""
    if text := st.session_state.pop(_MESSAGE, ""):
        show.note(show.typed(text))
    if wrong := st.session_state.pop(_WRONG, ""):
        show.error(wrong)
    if archived := st.session_state.get(_UNDO):
        with st.container(horizontal=True, vertical_alignment="center"):
            show.note(show.typed(f"“{archived.entry.name}” is archived."))
            st.button("Undo", key=inputs.key("undo"), on_click=_do, args=(partial(_restore, inputs, archived.id),))


def about(inputs: Inputs, plan: SavedPlan) -> None:
    """All about one plan or calendar: what it comes to, what can be done with it, what is kept, and its history."""
    calendar = plan.entry.kind == "calendar"
    item = None if calendar else compare_plan(plan.entry)
    with show.question(plan_name(item) if item else unmarked(plan.entry.name)):
        show.takeaway(store_text.answered(item) if item else store_text.calendar(plan))
        show.note(show.typed(f"{store_text.state(plan)}."))
        for line in plan.problems:
            show.error(line)
        if item and (moved := store_text.since(plan)):
            show.note("Data or formulas have changed since it was saved:")
            rows = [(row_label(name), *both) for name, both in moved.items()]
            show.small_table(("Result", "When saved", "Now"), rows)
        links = (link_to(page, plan) for page in ((CALENDAR,) if calendar else (COMPUTE, MEMORY, PARALLEL)))
        show.note("Open on", show.Html(" · ".join(links)))
        _buttons(inputs, plan)
        if not plan.archived:
            _details(inputs, plan)
        with show.fold("Change history", key=f"saved:history:{plan.id}", icon=":material/history:") as opened_:
            if opened_.open:
                with refusals():
                    _history(inputs, plan)


def _buttons(inputs: Inputs, plan: SavedPlan) -> None:
    """What can be done with the plan as a whole."""

    def act(label: str, name: str, what: Callable[[], None]) -> None:
        st.button(label, key=inputs.key(f"{name}_{plan.id}"), on_click=_do, args=(what,))

    with st.container(horizontal=True, vertical_alignment="center"):
        with refusals():
            st.download_button(
                "Export as JSON",
                partial(saved_as_json, plan, plan_store().comments(plan.id)),
                f"{stem_of(plan.entry.name)}.json",
                "application/json",
                key=inputs.key(f"export_{plan.id}"),
                on_click="ignore",
            )
        if plan.archived:
            act("Put it back on the list", "restore", partial(_restore, inputs, plan.id))
            with st.popover("Delete for good"):
                show.note("The plan and its history are gone then, for everybody.")
                act("Delete it", "forget", partial(_forget, inputs, plan))
            return
        if plan.entry.kind == "plan":
            st.button("Add to comparison", key=inputs.key(f"add_{plan.id}"), on_click=_compare, args=(plan,))
        act("Duplicate", "duplicate", partial(_duplicate, inputs, plan.id))
        act("Archive", "archive", partial(_archive, inputs, plan.id))
        comparison_list.way_there()


def _details(inputs: Inputs, plan: SavedPlan) -> None:
    """Name, tags and note; both sides where somebody else has changed them meanwhile."""
    own = st.session_state.get(_MINE)
    if own and own["id"] == plan.id:
        theirs = {NAME: plan.entry.name, TAGS: ", ".join(plan.tags), NOTE: plan.note}
        rows = [(store_text.label(field), text, own[field]) for field, text in theirs.items() if text != own[field]]
        conflict(
            inputs,
            plan,
            rows,
            copy=partial(_do, partial(_copy, inputs, plan.id, own)),
            take=_forget_mine,
            over=partial(_do, partial(_change, plan.id, plan.revision, own)),
        )
        return

    def field(name: str) -> str:
        return inputs.key(f"{name}_{plan.id}_{plan.revision}")

    def submit() -> None:
        typed = {name: str(st.session_state.get(field(name)) or "") for name in (NAME, TAGS, NOTE)}
        _do(partial(_change, plan.id, plan.revision, {"id": plan.id, **typed}))

    with st.form(inputs.key(f"kept_{plan.id}"), border=False):
        cells = st.columns([2, 1.4])
        cells[0].text_input("Name", plan.entry.name, key=field(NAME), max_chars=limit("plan_name"))
        many = limit("plan_tags") * (limit("tag_chars") + 2)
        cells[1].text_input(
            "Tags", ", ".join(plan.tags), key=field(TAGS), max_chars=many, placeholder="final, Q3, with commas between"
        )
        st.text_area("Note", plan.note, key=field(NOTE), max_chars=limit("plan_note"), height=80)
        st.form_submit_button("Save name, tags and note", on_click=submit)


def _history(inputs: Inputs, plan: SavedPlan) -> None:
    """All changes, and the way back to what the plan was before any of them."""
    history = plan_store().history(plan.id)
    columns = (show.Column("Revision", numeric=True), show.Column("When", whole=True), "By", "What")
    rows = [
        [
            format_exact(change.revision),
            store_text.moment(change.when),
            show.typed(change.who),
            show.typed(store_text.change(change)),
        ]
        for change in history
    ]
    show.small_table(columns, rows, words=None)
    earlier = [change.revision for change in history if change.revision < plan.revision]
    if plan.archived or not earlier:
        return
    key = inputs.key(f"back_{plan.id}_{plan.revision}")
    revision = st.selectbox("Go back to revision", earlier, key=key, width=200)
    then = as_of(plan, history, revision)
    if then is None:
        show.note(store_text.no_way_back(revision))
        return
    calendar = plan.entry.kind == "calendar"
    show.takeaway(store_text.calendar(then) if calendar else store_text.answered(compare_plan(then.entry)))
    if differs := store_text.back_to(edits_between(then, plan)):
        cells = [[show.typed(cell) for cell in row] for row in differs]
        show.small_table(("Differs", f"Revision {revision}", "Now"), cells, words=None)
    act = partial(_do, partial(_go_back, plan, then))
    st.button(f"Restore revision {revision}", key=f"{key}_do", icon=":material/history:", on_click=act)


# ------------------------------------------------------------------------------------------ clicks


def _do(what: Callable[[], None]) -> None:
    """Do what a click asks for; what is wrong with it is said at the next run."""
    st.session_state.pop(_UNDO, None)
    try:
        what()
    except StoreError as problem:
        st.session_state[_WRONG] = str(problem)


def _change(id: str, revision: int, fields: dict[str, str]) -> None:
    try:
        changed = plan_store().change(
            id, revision, name=fields[NAME], note=fields[NOTE], tags=tags_of(fields[TAGS]), who=who()
        )
    except Conflict:
        st.session_state[_MINE] = fields
        return
    _forget_mine()
    st.session_state[_MESSAGE] = f"“{changed.entry.name}” is saved, at revision {changed.revision}."


def _go_back(plan: SavedPlan, then: SavedPlan) -> None:
    now = plan_store().change(
        plan.id, plan.revision, entry=with_results(then.entry), note=then.note, tags=then.tags, who=who()
    )
    text = f"“{now.entry.name}” is as it was at revision {then.revision}, and at revision {now.revision} now."
    st.session_state[_MESSAGE] = text


def _copy(inputs: Inputs, id: str, fields: dict[str, str]) -> None:
    copy = plan_store().duplicate(id, who())
    _change(copy.id, copy.revision, {**fields, "id": copy.id})
    inputs.put(PLAN.id, copy.id)


def _forget_mine() -> None:
    st.session_state.pop(_MINE, None)


def _compare(plan: SavedPlan) -> None:
    st.session_state[_WRONG] = comparison_list.offer(plan.entry)


def _duplicate(inputs: Inputs, id: str) -> None:
    inputs.put(PLAN.id, plan_store().duplicate(id, who()).id)


def _archive(inputs: Inputs, id: str) -> None:
    st.session_state[_UNDO] = plan_store().archive(id, who())
    inputs.put(PLAN.id, "")


def _restore(inputs: Inputs, id: str) -> None:
    restored = plan_store().restore(id, who())
    inputs.put(PLAN.id, id)
    st.session_state[_MESSAGE] = f"“{restored.entry.name}” is back on the list."


def _forget(inputs: Inputs, plan: SavedPlan) -> None:
    plan_store().forget(plan.id)
    inputs.put(PLAN.id, "")
    st.session_state[_MESSAGE] = f"“{plan.entry.name}” is deleted."
