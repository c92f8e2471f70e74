"""Calendar and cost, which pool: the plan on each, and on the fewest to rent, with a button that makes one the plan."""

from __future__ import annotations

import math

import streamlit as st

from core.dates import format_day
from core.planning.calendar.form import MOST, POOLS, pool_texts
from core.planning.cost.choose_pools import PoolChoice, choose_pools, other_terms
from core.planning.cost.form import prices_of
from core.planning.form.plan_form import ACCELERATOR, COUNT, named_plan
from core.views.calendar import text_pools as text
from core.views.common.markup import markdown_text
from core.wording import dollars
from pages.calendar.inputs import CalendarInputs
from pages.common import show
from pages.common.inputs import Inputs

_SHOWN = 9
"""Ways in the table; the catalogue alone has twice as many."""


def choosing(inputs: Inputs, a: CalendarInputs) -> None:
    """The fold. Nothing is worked out before it is opened."""
    title = "Which of ours, or how many to rent: the plan on each pool, by deadline and money"
    with show.more(inputs, title, MOST, key="fold_choice") as more:
        if more.open:
            with st.columns([1, 3])[0]:
                inputs.draw(MOST)
            _choices(inputs, a)


def _choices(inputs: Inputs, a: CalendarInputs) -> None:
    reading, request = inputs.reading, a.question
    v = reading.values
    due = request.due
    if not due:
        show.note("Type a deadline: without one, the fewest accelerators are not known.")
        return
    most: float = v[MOST.id]
    plan = named_plan(reading)
    choices = choose_pools(plan, request.fleet, request.start, due, most, prices_of(reading))
    limits = format_day(due)
    limits += "" if math.isnan(most) else f" and {dollars(most)}"
    limits += " and the plan’s limits" if plan.keeps.typed else ""
    show.takeaway(text.sentence(choices, limits))
    show.small_table(
        [show.Column(heading, numeric=i in (1, 4, 5, 6), whole=i == 2) for i, heading in enumerate(text.CHOICES)],
        [[show.remarked(*cell) for cell in row] for row in text.rows(choices[:_SHOWN])],
        caption=f"Of {len(choices)} ways the best {_SHOWN}" if len(choices) > _SHOWN else "",
    )
    if found := other_terms(choices, plan, request.fleet, request.start, due, prices_of(reading)):
        show.note(text.terms(found))
    yours = "" if v[POOLS.id].pools else " Type pools above to have yours among them."
    show.note(text.NOTE + yours)
    show.note("Make one the plan:")
    with st.container(horizontal=True):
        for i, choice in enumerate(choices[:_SHOWN]):
            if choice.schedule and choice.pool != request.fleet.cluster:
                label = markdown_text(text.way(choice))
                st.button(label, key=inputs.key(f"choose_{i}"), on_click=_take, args=(inputs, choice))


def _take(inputs: Inputs, choice: PoolChoice) -> None:
    """The plan on the accelerators of a way, at its price."""
    texts = pool_texts(choice.pool, inputs.now(ACCELERATOR.id))
    for name, typed in {**texts, COUNT.id: f"{choice.accelerators:,}"}.items():
        inputs.put(name, typed)
