"""Calendar and cost, which pool: the runs on each over its nodes, with a button that makes one the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.planning.calendar.form import MOST, RUN_FIELDS, calendar_request, pool_texts
from core.planning.comparison.entry import entry_of
from core.planning.cost.choose_pools import PoolChoice, choose_pools
from core.planning.cost.form import CAPITAL, YEARS, prices_of
from core.planning.form.plan_form import ACCELERATOR, COUNT, named_plan
from core.views.calendar import text_pools as text
from core.views.calendar.pool_chart import pools
from core.views.common.markup import markdown_text
from core.wording import dollars
from pages.calendar.form import FORM, WHICH
from pages.calendar.inputs import CalendarInputs
from pages.common import comparison_list, show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS


def choosing(inputs: Inputs, a: CalendarInputs) -> None:
    """The fold. Nothing is worked out before it is opened."""
    with inputs.panel(WHICH.id, WHICH.label) as panel:
        if panel.open:
            _choices(inputs, a)
    show.problems(inputs, MOST.id)


def _choices(inputs: Inputs, a: CalendarInputs) -> None:
    reading, request = inputs.reading, a.question
    v = reading.values
    plan, due = named_plan(reading), request.due
    limit = plan.keeps.dollars
    with st.columns([1, 3])[0]:
        inputs.draw(MOST, placeholder="any" if math.isnan(limit) else dollars(limit))
    if not due:
        show.note("Type a deadline: without one, the fewest accelerators are not known.")
        return
    keeps = replace(plan.keeps, dollars=limit if math.isnan(v[MOST.id]) else v[MOST.id])
    plan = replace(plan, keeps=keeps)
    anywhere = calendar_request(FORM.parse({**reading.texts, **_on_no_pool()})).runs
    runs = tuple(replace(run, plan=replace(run.plan, keeps=keeps)) for run in anywhere)
    lines = choose_pools(runs, request.fleet, request.start, due, prices_of(reading))
    show.takeaway(text.sentence(lines))
    days = float((due - request.start).days + 1)
    show.chart(pools(lines, keeps, days, TOKENS), alt=text.picture(lines), key="calendar:pools")
    headings = text.headings(plan)
    show.small_table(
        [show.Column(heading, numeric=0 < i < len(headings) - 1) for i, heading in enumerate(headings)],
        [[show.remarked(*cell) for cell in row] for row in text.rows(lines, plan)],
        caption=text.caption(due),
    )
    if terms := text.terms(lines, plan):
        show.note(terms)
    show.note(text.notes(lines, plan))
    show.note("Make one the plan:")
    ways = [line.nearest for line in lines if line.nearest.schedule]
    with st.container(horizontal=True):
        for i, choice in enumerate(ways):
            if choice.pool != request.fleet.cluster:
                label = markdown_text(text.name(choice))
                st.button(label, key=inputs.key(f"choose_{i}"), on_click=_take, args=(inputs, choice))
        st.button("Compare them", key=inputs.key("choose_all"), on_click=_compare, args=(inputs, ways), type="tertiary")


def _on_no_pool() -> dict[str, str]:
    """The texts of runs that are on the plan's cluster, on all of it."""
    return {fields[name].id: "" for fields in RUN_FIELDS.values() for name in ("pool", "count")}


def _texts(inputs: Inputs, choice: PoolChoice) -> dict[str, str]:
    """What a plan on so many of a pool has otherwise."""
    return {**pool_texts(choice.pool, inputs.now(ACCELERATOR.id)), COUNT.id: f"{choice.accelerators:,}"}


def _compare(inputs: Inputs, ways: Sequence[PoolChoice]) -> None:
    """The plan by itself on each of these, in Compare's columns."""
    for choice in ways:
        comparison_list.offer(entry_of(text.name(choice), {**inputs.reading.texts, **_texts(inputs, choice)}))


def _take(inputs: Inputs, choice: PoolChoice) -> None:
    """The plan on so many of a pool, as it is held, and every run on it."""
    pool = choice.pool
    texts = {**_texts(inputs, choice), **_on_no_pool()}
    if pool.holding == "owned" and not math.isnan(pool.capital):
        texts |= {CAPITAL.id: f"{pool.capital:,.0f}", YEARS.id: f"{pool.years:g}"}
    for name, typed in texts.items():
        inputs.put(name, typed)
