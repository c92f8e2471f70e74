"""One line at the top of every page of planning: the plan one works on, new, open, its limits, save, compare."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.budget.errors import BudgetError
from core.planning.comparison.comparison import with_saved_results
from core.planning.comparison.entry import Kind, entry_of
from core.planning.comparison.names import suggested
from core.planning.evaluation import answer
from core.planning.form.limits import LIMIT_FIELDS
from core.planning.form.plan_form import plan_of
from core.views.common.markup import safe_text
from core.views.plan import text_limits
from pages.common import comparison_list, show
from pages.common.inputs import Inputs
from pages.common.registry import SAVED
from pages.common.saving import Held, held, held_on, hold, name_of, saving

_TAKEN = "plan:taken"
"""Where session state counts the presets that were taken."""

_FORMER = "plan:former"
"""Where session state has the plan that was replaced last, and the saved one that it was."""


def plan_bar(
    inputs: Inputs,
    texts_by_preset: Mapping[str, Mapping[str, str]],
    texts: Mapping[str, str],
    *,
    into: DeltaGenerator,
    kind: Kind = "plan",
) -> str | None:
    """The bar of the plan of ``texts``; the preset that is lit, each of which names every field of a plan.

    kind: what “Save” keeps: the plan, or the calendar of the whole page.

    A new plan or preset replaces all of the plan and lets go of the saved one, so that nobody saves over it what is
    another plan. A plan of one’s own that it replaces comes back by a button, and the saved one with it.
    """
    saved = held_on(inputs, kind)
    begun = {name: inputs.form[name].default for name in inputs.form.shared}

    def replaces(now: Mapping[str, str]) -> None:
        chosen = any(preset.items() <= now.items() for preset in texts_by_preset.values())
        if held() or not (chosen or begun.items() <= now.items()):
            st.session_state[_FORMER] = (now, held())
        st.session_state[_TAKEN] = st.session_state.get(_TAKEN, 0) + 1
        for each in get_args(Kind):
            hold(None, each)

    def take(texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            inputs.put(name, text)

    def anew() -> None:
        replaces({name: inputs.now(name) for name in inputs.form.shared})
        take(begun)

    def back() -> None:
        former: tuple[Mapping[str, str], Held] = st.session_state.pop(_FORMER)
        names = {field.id for field in inputs.form.fields}
        take({name: text for name, text in former[0].items() if name in names})
        hold(former[1])

    error = ""
    with into, st.container(key="np-plan", horizontal=True, vertical_alignment="center", gap="small"):
        title = st.container(width="stretch")
        if _FORMER in st.session_state:
            st.button("Back to the plan before", key=inputs.key("former"), icon=":material/undo:", on_click=back)
        st.button("New", key=inputs.key("new"), icon=":material/note_add:", on_click=anew)
        # Under another key it is drawn anew, which is closed. Were it open or not by session state, each late answer
        # would open or close it under one's hand.
        with st.popover(
            "Open", key=f"{inputs.key('open')}{st.session_state.get(_TAKEN, 0)}", icon=":material/folder_open:"
        ):
            lit = inputs.presets("Presets", texts_by_preset, into=st.container(), replaces=replaces)
            st.page_link(SAVED.path, label="Saved plans", icon=SAVED.icon)
        name = name_of(saved) or name_of(held()) or lit or ""
        summary = suggested(texts).removeprefix(f"{name} · ")
        title.html(f'<p class="np-plan">{_bold(name)}{safe_text(summary)}</p>')
        with show.popover("Limits", key=inputs.key("limits"), icon=":material/flag:") as limits:
            if limits.open:
                for field in LIMIT_FIELDS:
                    inputs.draw(field)
        saving(inputs, inputs.reading.texts if kind == "calendar" else texts, kind)
        # The plan is taken where it is drawn: a callback would have that of before a field just changed.
        if st.button("Add to comparison", key=inputs.key("add"), icon=":material/add:"):
            entry = entry_of(name_of(held()) or suggested(texts, comparison_list.plans()), texts)
            error = comparison_list.offer(with_saved_results(entry))
        comparison_list.way_there()
    with into:
        show.problems(inputs, *(field.id for field in LIMIT_FIELDS))
        if error:
            show.error(error)
        if kept := _limits(inputs):
            show.note(kept)
    return lit


def _limits(inputs: Inputs) -> str:
    """Which limits the plan keeps and misses; empty where it has none, or no answer."""
    with suppress(BudgetError):
        return text_limits.sentence(answer(plan_of(inputs.reading)))
    return ""


def _bold(name: str) -> str:
    return f"<b>{safe_text(name)}</b> " if name else ""
