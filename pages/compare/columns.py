"""Compare, its columns: the name and menu of each plan, and the plan that the sidebar edits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import streamlit as st

from core.limits import limit
from core.messages import message
from core.planning.comparison.comparison import ComparedPlan, suggested, with_saved_results
from core.planning.comparison.entry import Entry, entry_of
from core.views.comparison import text as comparison_text
from pages.common import comparison_list, plan_sidebar, show
from pages.common.inputs import Inputs
from pages.compare.form import BASE

EDIT, PIN = message("comparison.do.edit"), message("comparison.do.base")
LEFT, RIGHT = message("comparison.do.left"), message("comparison.do.right")
COPY, REMOVE = message("comparison.do.copy"), message("comparison.do.remove")

_CHOSEN = "compare:chosen"
"""Where session state has the number of the plan that the sidebar changes; None where it holds another one."""


def chosen() -> int | None:
    """The number of the plan that the sidebar changes; None where what it holds is not among them."""
    number: int | None = st.session_state.get(_CHOSEN)
    return number if number in comparison_list.held() else None


def follow(inputs: Inputs) -> None:
    """Make the plan of the sidebar the chosen column's; who comes from another page chooses the column that is it."""
    here = entry_of("", inputs.reading.texts)
    if inputs.arrived:
        same = comparison_list.same(here)
        st.session_state[_CHOSEN] = next((n for n, one in comparison_list.held().items() if one is same), None)
    number = chosen()
    if number is None:
        return
    entry = comparison_list.held()[number]
    if entry.texts != here.reading.texts:
        comparison_list.change(number, with_saved_results(replace(here, name=entry.name)))


def where(held: Mapping[int, Entry]) -> None:
    """Which plan the sidebar changes."""
    number = chosen()
    if number is not None:
        show.note(message("comparison.sidebar.plan", number=float(list(held).index(number) + 1)))
    elif held:
        show.note(message("comparison.sidebar.none"))


def columns(inputs: Inputs, plans: Mapping[int, ComparedPlan], base: int) -> None:
    """The name of every plan, what it comes to, and what can be done with it. base: the place of the baseline."""
    with st.container(key="compare_columns"):
        for at, (cell, (number, plan)) in enumerate(zip(st.columns(len(plans)), plans.items(), strict=True)):
            with cell:
                _head(inputs, number, plan, at, pinned=at == base)


def _head(inputs: Inputs, number: int, plan: ComparedPlan, at: int, *, pinned: bool) -> None:
    label = message("comparison.column.base" if pinned else "comparison.column", number=at + 1.0)
    label = message("comparison.column.edited", label=label) if number == chosen() else label
    key = inputs.key(f"do_{number}")
    st.menu_button(
        label,
        (EDIT, PIN, LEFT, RIGHT, COPY, REMOVE),
        key=key,
        on_click=partial(_do, inputs, key, number),
        width="stretch",
    )
    name = inputs.key(f"name_{number}")
    st.session_state.setdefault(name, plan.name)
    label, most = message("comparison.column.name"), limit("plan_name")
    st.text_input(label, key=name, max_chars=most, on_change=_rename, args=(name, number))
    show.takeaway(comparison_text.in_short(plan))


def _rename(key: str, number: int) -> None:
    """Give a plan another name; one without gets the suggested one back."""
    entry = comparison_list.held().get(number)
    if entry is not None:
        others = [entry for n, entry in comparison_list.held().items() if n != number]
        typed = entry_of(st.session_state[key] or "", entry.texts).name
        comparison_list.change(number, replace(entry, name=typed or suggested(entry.texts, others)))
        st.session_state[key] = comparison_list.held()[number].name


def choose(inputs: Inputs, number: int) -> None:
    """In a callback: have the sidebar hold this plan."""
    st.session_state[_CHOSEN] = number
    plan_sidebar.replace_plan(inputs, comparison_list.held()[number].texts)


def _do(inputs: Inputs, key: str, number: int) -> None:
    """What was chosen from a plan's menu; the baseline stays the plan that it was, or becomes the first."""
    order = list(comparison_list.held())
    if number not in order:
        return
    base = order[min(int(inputs.now(BASE.id)), len(order)) - 1]
    action = st.session_state[key]
    if action == EDIT:
        choose(inputs, number)
    elif action == PIN:
        base = number
    elif action in (LEFT, RIGHT):
        comparison_list.move(number, -1 if action == LEFT else 1)
    elif action == COPY:
        comparison_list.insert(comparison_list.held()[number], order.index(number) + 1)
    elif action == REMOVE:
        comparison_list.remove(number)
    order = list(comparison_list.held())
    inputs.put(BASE.id, str(order.index(base) + 1 if base in order else 1))
    # A browser that moves a field to another column may forget what was typed there, so all are told again.
    for name in (inputs.key(f"name_{n}") for n in order):
        if name in st.session_state:
            st.session_state[name] = st.session_state[name]
