"""Saved plans, the selected plan: its results, actions, details, and history."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from core.limits import limit
from core.messages import message
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
from pages.common.registry import COMPUTE, DECIDE, MEMORY, PARALLEL
from pages.common.saving import conflict, link_to, refusals
from pages.common.server.sign_in import who
from pages.common.takeaway import stem_of
from pages.saved.form import PLAN

_MESSAGE, _UNDO, _WRONG, _MINE = "saved:message", "saved:undo", "saved:wrong", "saved:mine"


def draw_messages(inputs: Inputs) -> None:
    """Draw what came of the last click, once, with the way back from an archived plan."""
    if text := st.session_state.pop(_MESSAGE, ""):
        show.note(text)
    if wrong := st.session_state.pop(_WRONG, ""):
        show.error(wrong)
    if archived := st.session_state.get(_UNDO):
        with st.container(horizontal=True, vertical_alignment="center"):
            show.note(message("saved.done.archived", plan=archived.entry.name))
            st.button(
                message("saved.undo"),
                key=inputs.key("undo"),
                on_click=_do,
                args=(partial(_restore, inputs, archived.id),),
            )


def about(inputs: Inputs, plan: SavedPlan) -> None:
    """Draw a plan or a decision: its result, the actions, its saved fields, and its history."""
    decision = plan.entry.kind == "decision"
    item = None if decision else compare_plan(plan.entry)
    with show.question(plan_name(item) if item else unmarked(plan.entry.name)):
        show.takeaway(store_text.answer(item) if item else store_text.decision_answer(plan))
        show.note(" ".join(store_text.state_text(plan)))
        for line in plan.problems:
            show.error(line)
        if item and (moved := store_text.changes_since(plan)):
            rows = [(row_label(name), *both) for name, both in moved.items()]
            heads = (message("saved.moved.result"), message("saved.moved.then"), message("saved.moved.now"))
            show.small_table(heads, rows, caption=message("saved.moved"))
        links = (link_to(page, plan) for page in ((DECIDE,) if decision else (COMPUTE, MEMORY, PARALLEL)))
        show.note(message("saved.open"), show.Html(" · ".join(links)))
        _buttons(inputs, plan)
        if not plan.archived:
            _details(inputs, plan)
        with show.fold(message("saved.history"), key=f"saved:history:{plan.id}", icon=":material/history:") as opened_:
            if opened_.open:
                with refusals():
                    _history(inputs, plan)


def _buttons(inputs: Inputs, plan: SavedPlan) -> None:
    """Draw what can be done with the plan as a whole."""

    def act(label: str, name: str, what: Callable[[], None]) -> None:
        st.button(label, key=inputs.key(f"{name}_{plan.id}"), on_click=_do, args=(what,))

    with st.container(horizontal=True, vertical_alignment="center"):
        with refusals():
            st.download_button(
                message("saved.export"),
                partial(saved_as_json, plan, plan_store().comments(plan.id)),
                f"{stem_of(plan.entry.name)}.json",
                "application/json",
                key=inputs.key(f"export_{plan.id}"),
                on_click="ignore",
            )
        if plan.archived:
            act(message("saved.restore"), "restore", partial(_restore, inputs, plan.id))
            with st.popover(message("saved.delete")):
                show.note(message("saved.delete_detail"))
                act(message("saved.delete_confirm"), "forget", partial(_forget, inputs, plan))
            return
        if plan.entry.kind == "plan":
            label = message("saved.compare")
            st.button(label, key=inputs.key(f"add_{plan.id}"), on_click=_compare, args=(plan,))
        act(message("saved.duplicate"), "duplicate", partial(_duplicate, inputs, plan.id))
        act(message("saved.archive"), "archive", partial(_archive, inputs, plan.id))
        comparison_list.way_there()


def _details(inputs: Inputs, plan: SavedPlan) -> None:
    """Draw name, tags, and note, with both versions if another user has changed them."""
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
        cells[0].text_input(message("saved.name"), plan.entry.name, key=field(NAME), max_chars=limit("plan_name"))
        many = limit("plan_tags") * (limit("tag_chars") + 2)
        tags, example = ", ".join(plan.tags), message("saved.tags_placeholder")
        cells[1].text_input(message("saved.field.tags"), tags, key=field(TAGS), max_chars=many, placeholder=example)
        st.text_area(message("saved.note"), plan.note, key=field(NOTE), max_chars=limit("plan_note"), height=80)
        st.form_submit_button(message("saved.submit"), on_click=submit)


def _history(inputs: Inputs, plan: SavedPlan) -> None:
    """Draw all changes, and the way back to what the plan was before any of them."""
    history = plan_store().history(plan.id)
    columns = (
        show.Column(message("saved.history.revision"), numeric=True),
        show.Column(message("saved.history.when"), whole=True),
        message("saved.history.who"),
        message("saved.history.changes"),
    )
    rows = [
        [
            format_exact(change.revision),
            store_text.moment_text(change.when),
            show.typed(change.who),
            store_text.change_text(change),
        ]
        for change in history
    ]
    show.small_table(columns, rows, words=None)
    earlier = [change.revision for change in history if change.revision < plan.revision]
    if plan.archived or not earlier:
        return
    key = inputs.key(f"back_{plan.id}_{plan.revision}")
    revision = st.selectbox(message("saved.history.select"), earlier, key=key, width=200)
    then = as_of(plan, history, revision)
    if then is None:
        show.note(message("saved.history.lost", revision=float(revision)))
        return
    decision = plan.entry.kind == "decision"
    show.takeaway(store_text.decision_answer(then) if decision else store_text.answer(compare_plan(then.entry)))
    if differs := store_text.changed_fields(edits_between(then, plan)):
        cells = [[show.typed(cell) for cell in row] for row in differs]
        then_head = message("saved.history.numbered", revision=float(revision))
        show.small_table((message("saved.history.field"), then_head, message("saved.moved.now")), cells, words=None)
    act = partial(_do, partial(_go_back, plan, then))
    label = message("saved.history.revert", revision=float(revision))
    st.button(label, key=f"{key}_do", icon=":material/history:", on_click=act)


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
    revised = float(changed.revision)
    st.session_state[_MESSAGE] = message("saved.done.changed", plan=changed.entry.name, revision=revised)


def _go_back(plan: SavedPlan, then: SavedPlan) -> None:
    now = plan_store().change(
        plan.id, plan.revision, entry=with_results(then.entry), note=then.note, tags=then.tags, who=who()
    )
    earlier, revision = float(then.revision), float(now.revision)
    text = message("saved.done.reverted", plan=now.entry.name, earlier=earlier, revision=revision)
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
    st.session_state[_MESSAGE] = message("saved.done.restored", plan=restored.entry.name)


def _forget(inputs: Inputs, plan: SavedPlan) -> None:
    plan_store().forget(plan.id)
    inputs.put(PLAN.id, "")
    st.session_state[_MESSAGE] = message("saved.done.deleted", plan=plan.entry.name)
