"""Decide, the assignment: its alternatives, the one that was chosen, and why, by whom, and when."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from core.messages import message
from core.planning.decide.assignment import Assignment
from core.planning.decide.decision import BECAUSE, BY, CHOSEN, ON, DecisionResult
from core.views.decide import text
from core.views.decide.tables import Table, assignments_table
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.server.sign_in import who


def draw_table(table: Table, key: str, here: int | None = None) -> None:
    """Draw a table of a decision."""
    with st.container(key=key):
        columns = [show.Column(head, numeric=i >= table.words) for i, head in enumerate(table.heads)]
        show.small_table(columns, [[show.remarked(*cell) for cell in row] for row in table.rows], here=here)


def draw_choice(inputs: Inputs, d: DecisionResult) -> None:
    """Draw the best assignment with its alternatives, a button to choose each, and the record of the choice."""
    best, others, key = d.answer.best, d.answer.alternatives, d.chosen_key
    if best is None:
        return
    with show.question(message("decide.title.assignments")):
        here = next((i for i, one in enumerate(d.options) if one.key == key), None)
        draw_table(assignments_table(best, others), "decide_assignments", here)
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            st.html(f'<span class="np-ask">{message("decide.record.choose")}</span>', width="content")
            for i, one in enumerate(d.options):
                label = message("decide.record.other", number=float(i)) if i else message("decide.record.best")
                kind = "primary" if i == here else "secondary"
                st.button(label, key=inputs.key(f"choose{i}"), type=kind, on_click=_choose, args=(inputs, one))
            if key:
                label = message("decide.record.clear")
                st.button(label, key=inputs.key("choose"), type="tertiary", on_click=_choose, args=(inputs, None))
        if not key:
            return
        with st.container(key="decide_record", horizontal=True, vertical_alignment="bottom"):
            for field in (BECAUSE, BY, ON):
                inputs.draw(field)
        show.takeaway(text.record(d, inputs.reading.texts) or "")


def _choose(inputs: Inputs, assignment: Assignment | None) -> None:
    """In a callback: record that an assignment is chosen, today and by the user, or that none is."""
    texts = {CHOSEN.id: assignment.key if assignment else ""}
    if assignment:
        texts |= {ON.id: inputs.now(ON.id) or str(datetime.now(UTC).date()), BY.id: inputs.now(BY.id) or who()}
    plan_sidebar.take_with_undo(inputs, texts)
