"""Calendar and cost, the bill: the same calendar rented, reserved and owned, line by line."""

from __future__ import annotations

import streamlit as st

from core.fields import Field
from core.planning.cost import form
from core.planning.cost.form import prices_of
from core.planning.cost.pool_bill import pool_costs
from core.views.cost import text
from pages.calendar.inputs import CalendarAnswer
from pages.common import show
from pages.common.inputs import Inputs

_RENTED = (form.HELD, form.RESERVED, form.TERM)
_OWNED = (form.CAPITAL, form.YEARS, form.STAFF, form.SPACE, form.KWH)


def bill(inputs: Inputs, a: CalendarAnswer) -> None:
    """Prices, and the table of lines."""
    pooled = bool(a.schedule.fleet.pools)
    _row(inputs, (form.HELD,) if pooled else _RENTED)
    show.draw_problems(inputs, *(field.id for field in _RENTED))
    with show.more(inputs, "More: what owning takes", *_OWNED, key="fold_bill") as more:
        if more.open:
            _row(inputs, (form.STAFF, form.SPACE, form.KWH) if pooled and not _cluster_owned(a) else _OWNED)
    show.takeaway(text.compared(a.ways))
    if pooled:
        show.small_table(
            [show.Column(heading, numeric=i > 1) for i, heading in enumerate(text.POOLS)],
            [
                [show.remarked(*cell) for cell in row]
                for row in text.pool_rows(pool_costs(a.schedule, prices_of(inputs.reading)))
            ],
            caption=text.POOLED_BILL,
        )
    else:
        show.note(text.OWNED)
    show.small_table(
        [show.Column(heading, numeric=i > 0) for i, heading in enumerate(text.heading(a.ways))],
        [[show.remarked(*cell) for cell in row] for row in text.rows(a.ways)],
        caption="In the middle of the range, and under it the range: every run early, or every run late",
    )


def _cluster_owned(a: CalendarAnswer) -> bool:
    """Whether a run is on a cluster of the plan's own, at a price of 0."""
    runs = () if a.schedule.fleet.source else a.question.runs
    return any(run.pool is None and run.plan.owned for run in runs)


def _row(inputs: Inputs, fields: tuple[Field, ...]) -> None:
    """Fields side by side."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for field in fields:
            inputs.draw(field)
