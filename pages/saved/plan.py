"""Saved plans, one of them: what it comes to then and now, where to open it, what is kept about it, its history."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from core.limits import limit
from core.planning.comparison.comparison import compare_plan
from core.store.errors import Conflict, StoreError
from core.store.locations import opened
from core.store.plans import NAME, NOTE, TAGS, SavedPlan
from core.store.rows import tags_of
from core.units import format_exact
from core.views.comparison.text import KEPT_AS, plan_name
from core.views.store import text as store_text
from pages.common import show
from pages.common.compare_button import open_comparison, put
from pages.common.inputs import Inputs
from pages.common.registry import COMPUTE, MEMORY, PARALLEL
from pages.common.saving import allowed, conflict, link_to, refusals
from pages.common.server.sign_in import who
from pages.saved.form import PLAN

_SAID, _UNDO, _WRONG, _MINE = "saved:said", "saved:undo", "saved:wrong", "saved:mine"


def messages(inputs: Inputs) -> None:
    """What came of the last click, once, with the way back from an archived plan."""
    if text := st.session_state.pop(_SAID, ""):
        show.paragraph(text)
    if wrong := st.session_state.pop(_WRONG, ""):
        show.error(wrong)
    if archived := st.session_state.get(_UNDO):
        with st.container(horizontal=True, vertical_alignment="center"):
            show.paragraph(f"“{archived.entry.name}” is archived.")
            st.button("Undo", key=inputs.key("undo"), on_click=_do, args=(partial(_restore, inputs, archived.id),))


def about(inputs: Inputs, plan: SavedPlan) -> None:
    """All about one plan."""
    item = compare_plan(plan.entry)
    with show.question(plan_name(item)):
        show.takeaway(store_text.answered(item))
        show.paragraph(f"{store_text.state(plan)}.")
        for line in plan.problems:
            show.error(line)
        if moved := store_text.since(plan):
            show.note("Data or formulas have changed since it was saved:")
            columns = [show.Column("Result"), show.Column("When saved", numeric=True), show.Column("Now", numeric=True)]
            show.small_table(columns, [(KEPT_AS[name], *both) for name, both in moved.items()])
        links = " · ".join(link_to(page, plan) for page in (COMPUTE, MEMORY, PARALLEL))
        show.paragraph("Open on", show.Html(links))
        _buttons(inputs, plan)
        if not plan.archived:
            _details(inputs, plan)
        with show.fold("Change history", key=f"saved:history:{plan.id}", icon=":material/history:") as opened_:
            if opened_.open:
                with refusals():
                    _history(plan)


def _buttons(inputs: Inputs, plan: SavedPlan) -> None:
    """What can be done with the plan as a whole."""

    def act(label: str, name: str, what: Callable[[], None]) -> None:
        st.button(label, key=inputs.key(f"{name}_{plan.id}"), on_click=_do, args=(what,))

    with st.container(horizontal=True, vertical_alignment="center"):
        if plan.archived:
            act("Put it back on the list", "restore", partial(_restore, inputs, plan.id))
            with st.popover("Delete for good"):
                show.note("The plan and its history are gone then, for everybody.")
                act("Delete it", "forget", partial(_forget, inputs, plan))
            return
        st.button("Add to comparison", key=inputs.key(f"add_{plan.id}"), on_click=_compare, args=(plan,))
        act("Duplicate", "duplicate", partial(_duplicate, inputs, plan.id))
        act("Archive", "archive", partial(_archive, inputs, plan.id))
        open_comparison()


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


def _history(plan: SavedPlan) -> None:
    columns = [show.Column("Revision", numeric=True), show.Column("When", whole=True), show.Column("By")]
    rows = [
        [
            format_exact(change.revision),
            store_text.moment(change.when),
            show.typed(change.who),
            show.typed(store_text.change(change)),
        ]
        for change in opened().history(plan.id)
    ]
    show.small_table([*columns, show.Column("What")], rows)


# ------------------------------------------------------------------------------------------ clicks


def _do(what: Callable[[], None]) -> None:
    """Do what a click asks for; what is wrong with it is said at the next run."""
    st.session_state.pop(_UNDO, None)
    try:
        allowed()
        what()
    except StoreError as problem:
        st.session_state[_WRONG] = str(problem)


def _change(id: str, revision: int, fields: dict[str, str]) -> None:
    try:
        changed = opened().change(
            id, revision, name=fields[NAME], note=fields[NOTE], tags=tags_of(fields[TAGS]), who=who()
        )
    except Conflict:
        st.session_state[_MINE] = fields
        return
    _forget_mine()
    st.session_state[_SAID] = f"“{changed.entry.name}” is saved, at revision {changed.revision}."


def _copy(inputs: Inputs, id: str, fields: dict[str, str]) -> None:
    copy = opened().duplicate(id, who())
    _change(copy.id, copy.revision, {**fields, "id": copy.id})
    inputs.put(PLAN.id, copy.id)


def _forget_mine() -> None:
    st.session_state.pop(_MINE, None)


def _compare(plan: SavedPlan) -> None:
    st.session_state[_WRONG] = put(plan.entry)


def _duplicate(inputs: Inputs, id: str) -> None:
    inputs.put(PLAN.id, opened().duplicate(id, who()).id)


def _archive(inputs: Inputs, id: str) -> None:
    st.session_state[_UNDO] = opened().archive(id, who())
    inputs.put(PLAN.id, "")


def _restore(inputs: Inputs, id: str) -> None:
    restored = opened().restore(id, who())
    inputs.put(PLAN.id, id)
    st.session_state[_SAID] = f"“{restored.entry.name}” is back on the list."


def _forget(inputs: Inputs, plan: SavedPlan) -> None:
    opened().forget(plan.id)
    inputs.put(PLAN.id, "")
    st.session_state[_SAID] = f"“{plan.entry.name}” is deleted."
