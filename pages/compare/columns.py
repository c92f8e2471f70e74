"""Compare: every plan's fields in a column of its own, to change in place, and what can be done with a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from core.fields import Field
from core.limits import limit
from core.planning.comparison.comparison import ComparedPlan, with_saved_results
from core.planning.comparison.differences import differing_fields, effective_fields
from core.planning.comparison.entry import entry_of
from core.planning.comparison.names import suggested
from core.planning.form.layout import CONTEXT, EXPERT, MICRO_BATCH, PIPELINE, RECOMPUTE, TENSOR, ZERO
from core.planning.form.plan_form import (
    ACCELERATOR,
    COUNT,
    DTYPE,
    FIND,
    MFU,
    MODEL_NAME,
    OPTIMIZER,
    PACE,
    PARAMETERS,
    PLAN_FORM,
    POLICY,
    PRICE,
    SEQ_LEN,
    SHAPE,
    TRAINED,
    WITHIN,
)
from core.planning.form.search import BATCH
from core.views.comparison import text as comparison_text
from core.wording import price
from pages.common import comparison_list, show
from pages.common.inputs import Inputs
from pages.compare.form import BASE, MORE

_MAIN = (MODEL_NAME, PARAMETERS, TRAINED, ACCELERATOR, COUNT, MFU, PRICE, SEQ_LEN, BATCH, MICRO_BATCH)
_MORE = (FIND, WITHIN, PACE, DTYPE, OPTIMIZER, POLICY, ZERO, TENSOR, PIPELINE, CONTEXT, EXPERT, RECOMPUTE)

PIN, LEFT, RIGHT, COPY, REMOVE = "Make it the baseline", "Move left", "Move right", "Duplicate", "Remove"


def columns(inputs: Inputs, plans: Mapping[int, ComparedPlan], base: int) -> None:
    """The fields of every plan. base: the place of the baseline."""
    with st.container(key="compare_columns"):
        for at, (cell, (number, plan)) in enumerate(zip(st.columns(len(plans)), plans.items(), strict=True)):
            with cell:
                _head(inputs, number, plan, at, pinned=at == base)
                _fields(inputs, number, plan, _MAIN)
    with inputs.panel(MORE.id, MORE.label) as opened:
        if opened.open:
            fields = _more(tuple(plans.values()))
            for cell, (number, plan) in zip(st.columns(len(plans)), plans.items(), strict=True):
                with cell:
                    _fields(inputs, number, plan, fields)


def _more(plans: Sequence[ComparedPlan]) -> tuple[Field, ...]:
    """The fields that are folded: some always, a shape and types of one's own, and those in which plans differ."""
    apart = {row.field.id for row in differing_fields([plan.reading for plan in plans])}
    parts = {
        field.id for field in PLAN_FORM.fields if any(field.id in effective_fields(plan.reading) for plan in plans)
    }
    own = {field.id for field in PLAN_FORM.part(POLICY.part)} | {SHAPE.id}
    wanted = {field.id for field in _MORE} | ((apart | own) & parts)
    return tuple(field for field in PLAN_FORM.fields if field.id in wanted - {main.id for main in _MAIN})


def _head(inputs: Inputs, number: int, plan: ComparedPlan, at: int, *, pinned: bool) -> None:
    """Which plan it is, what can be done with it, its name, and what it comes to."""
    label = f"Plan {at + 1}, the baseline" if pinned else f"Plan {at + 1}"
    key = inputs.key(f"do_{number}")
    st.menu_button(
        label, (PIN, LEFT, RIGHT, COPY, REMOVE), key=key, on_click=partial(_do, inputs, key, number), width="stretch"
    )
    name = inputs.key(f"name_{number}")
    st.session_state.setdefault(name, plan.name)
    st.text_input("Name", key=name, max_chars=limit("plan_name"), on_change=_rename, args=(name, number))
    show.takeaway(comparison_text.in_short(plan))


def _fields(inputs: Inputs, number: int, plan: ComparedPlan, fields: Sequence[Field]) -> None:
    """Fields of one plan; those that do not count in it are shown and cannot be changed."""
    counts = effective_fields(plan.reading)
    for field in fields:
        key = inputs.key(f"{field.id}_{number}")
        if field.id not in counts:
            st.session_state[f"{key}_still"] = comparison_text.given_instead(plan, field)
            st.text_input(field.label, disabled=True, key=f"{key}_still")
            continue
        text = plan.entry.texts[field.id]
        st.session_state.setdefault(key, text == "true" if field.kind == "switch" else text)
        change = partial(_change, inputs, key, number, field)
        if field.options:
            st.selectbox(field.label, field.options, key=key, on_change=change)
        elif field.kind == "switch":
            st.toggle(field.label, key=key, on_change=change)
        else:
            usual = price(*plan.answer.plan.price_range) if field == PRICE and plan.answer else field.placeholder
            st.text_input(field.label, key=key, on_change=change, max_chars=field.max_chars, placeholder=usual or None)
            if (typed := st.session_state[key]) != text:
                for message in PLAN_FORM.parse({**plan.entry.texts, field.id: typed}, plan.entry.texts).messages_about(
                    (field.id,)
                ):
                    show.error(message)


def _change(inputs: Inputs, key: str, number: int, field: Field) -> None:
    """Take over what was typed or chosen, if it can be read; what follows from it in other fields too."""
    content = st.session_state[key]
    text = str(content).lower() if isinstance(content, bool) else str(content or "")
    entry = comparison_list.held().get(number)
    if entry is None:
        return
    reading = PLAN_FORM.parse({**entry.texts, field.id: text}, entry.texts)
    for led in reading.derived:
        st.session_state.pop(inputs.key(f"{led}_{number}"), None)
    if not reading.messages_about((field.id,)):
        comparison_list.change(number, with_saved_results(entry_of(entry.name, reading.texts)))


def _rename(key: str, number: int) -> None:
    """Give a plan another name; one without gets the suggested one back."""
    entry = comparison_list.held().get(number)
    if entry is not None:
        others = [entry for n, entry in comparison_list.held().items() if n != number]
        typed = entry_of(st.session_state[key] or "", entry.texts).name
        comparison_list.change(number, replace(entry, name=typed or suggested(entry.texts, others)))
        st.session_state[key] = comparison_list.held()[number].name


def _do(inputs: Inputs, key: str, number: int) -> None:
    """What was chosen from a plan's menu; the baseline stays the plan that it was, or becomes the first."""
    order = list(comparison_list.held())
    if number not in order:
        return
    base = order[min(int(inputs.now(BASE.id)), len(order)) - 1]
    chosen = st.session_state[key]
    if chosen == PIN:
        base = number
    elif chosen in (LEFT, RIGHT):
        comparison_list.move(number, -1 if chosen == LEFT else 1)
    elif chosen == COPY:
        comparison_list.insert(comparison_list.held()[number], order.index(number) + 1)
    elif chosen == REMOVE:
        comparison_list.remove(number)
    order = list(comparison_list.held())
    inputs.put(BASE.id, str(order.index(base) + 1 if base in order else 1))
    # A browser that moves a field to another column may forget what was typed there, so all are told again.
    for key in (inputs.key(f"{field.id}_{n}") for n in order for field in PLAN_FORM.fields):
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]
