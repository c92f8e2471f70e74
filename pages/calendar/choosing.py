"""Calendar and cost, which pool: the runs on each over its nodes, with a button that makes one the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st

from core.planning.calendar.form import CLUSTER_POOL, MOST, pool_texts
from core.planning.comparison.entry import entry_of
from core.planning.cost.choose_pools import NO_POOL, PoolChoice, compare_pools
from core.planning.form.plan_form import ACCELERATOR, COUNT, plan_as_given
from core.planning.form.whole_run import BUDGET
from core.views.calendar import text_pools as text
from core.views.common.markup import markdown_text
from core.wording import dollars
from pages.calendar.form import WHICH
from pages.calendar.inputs import CalendarAnswer
from pages.common import comparison_list, field_changes, plan_sidebar, show
from pages.common.inputs import Inputs

_MOVED = "calendar:moved"
"""Where session state has what the last choice of a pool changed, in words and as texts."""

_NOT_ADDED = "calendar:not_added"
"""Where session state has why a pool was not put into the comparison."""


def choosing(inputs: Inputs, a: CalendarAnswer) -> None:
    """The fold. Nothing is worked out before it is opened."""
    with inputs.panel(WHICH.id, WHICH.label) as panel:
        if panel.open:
            _choices(inputs, a)
    show.draw_problems(inputs, MOST.id)


def _choices(inputs: Inputs, a: CalendarAnswer) -> None:
    limit = inputs.reading.values[BUDGET.id]
    with st.columns([1, 3])[0]:
        inputs.draw(MOST, placeholder="any" if math.isnan(limit) else dollars(limit))
    found = compare_pools(inputs.reading, a.question)
    if not found:
        show.note("Type a deadline: without one, the fewest accelerators are not known.")
        return
    plan, lines = found.plan, found.lines
    show.takeaway(text.sentence(lines, plan))
    headings = text.headings(plan)
    show.small_table(
        [show.Column(heading, numeric=0 < i < len(headings) - 1) for i, heading in enumerate(headings)],
        [[show.remarked(*cell) for cell in row] for row in text.rows(lines, plan)],
        caption=text.caption(found.due),
    )
    if terms := text.terms(lines, plan):
        show.note(terms)
    show.note(text.notes(lines, plan))
    show.note("Make one the plan:")
    first = sorted(lines, key=lambda line: line.best is None)
    ways = [line.nearest for line in first if line.nearest.schedule]
    with st.container(horizontal=True):
        for i, choice in enumerate(ways):
            if choice.pool != a.question.fleet.cluster:
                label = markdown_text(text.name(choice))
                st.button(label, key=inputs.key(f"choose_{i}"), on_click=_take, args=(inputs, choice))
        st.button("Compare them", key=inputs.key("choose_all"), on_click=_compare, args=(inputs, ways), type="tertiary")
        comparison_list.way_there()
    if problem := st.session_state.pop(_NOT_ADDED, ""):
        show.error(problem)


def moved(inputs: Inputs) -> str:
    """What the last choice of a pool changed; empty once something of that is another."""
    said, texts = st.session_state.get(_MOVED, ("", {}))
    return said if all(inputs.reading.texts[name] == typed for name, typed in texts.items()) else ""


def _texts(inputs: Inputs, choice: PoolChoice, owned_price: float = 0.0) -> dict[str, str]:
    """What a plan on so many of a pool has otherwise."""
    texts = pool_texts(choice.pool, inputs.now(ACCELERATOR.id), owned_price)
    return {**texts, COUNT.id: f"{choice.accelerators:,}"}


def _compare(inputs: Inputs, ways: Sequence[PoolChoice]) -> None:
    """The plan by itself on each of these, in Compare's columns, an owned pool with what an hour of it comes to."""
    entries = [
        entry_of(text.name(choice), {**inputs.reading.texts, **_texts(inputs, choice, choice.hourly)})
        for choice in ways
    ]
    problems = [comparison_list.offer(entry) for entry in entries]  # all of them, whatever is said of the first
    st.session_state[_NOT_ADDED] = next(filter(None, problems), "")


def _take(inputs: Inputs, choice: PoolChoice) -> None:
    """In a callback: the plan, and every run, on so many of a pool. The list of pools stays, and Undo brings back the
    plan before and the pools of its runs."""
    source = "" if choice.pool.in_catalogue else choice.pool.name
    texts = {**_texts(inputs, choice), **NO_POOL, CLUSTER_POOL.id: source}
    field_changes.replaced(inputs, texts)
    plan_sidebar.take_with_undo(inputs, texts)
    st.session_state[_MOVED] = (text.moved(choice, plan_as_given(inputs.reading)), texts)
