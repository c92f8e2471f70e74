"""Calendar and cost, the bill: the same calendar rented, reserved and owned, line by line."""

from __future__ import annotations

import streamlit as st

from core.fields import Field
from core.planning.cost import form
from core.planning.form.plan_form import PRICE
from core.views.cost import text
from core.views.cost.charts import bills
from core.wording import plain, price
from pages.calendar.inputs import CalendarInputs
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS

_ROWS: tuple[tuple[Field, ...], ...] = (
    (PRICE, form.HELD, form.RESERVED, form.TERM),
    (form.CAPITAL, form.YEARS, form.STAFF, form.SPACE, form.KWH),
    (form.KEPT, form.DATASET, form.GB_MONTH, form.SENT, form.GB_OUT),
)


def bill(inputs: Inputs, a: CalendarInputs) -> None:
    """Prices, the bars, and the table of lines."""
    usual = price(*a.question.runs[0].plan.price_range)
    for fields in _ROWS:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            for field in fields:
                inputs.draw(field, placeholder=usual if field == PRICE else "")
    show.problems(inputs, *(field.id for fields in _ROWS for field in fields))
    message = text.compared(a.ways)
    show.takeaway(message)
    show.chart(
        bills(a.ways, TOKENS), alt=f"Dollars of the calendar, each way of paying. {plain(message)}", key="calendar:bill"
    )
    show.note(text.OWNED)
    show.small_table(
        [show.Column(heading, numeric=i > 0) for i, heading in enumerate(text.TABLE)],
        [[show.remarked(*cell) for cell in row] for row in text.rows(a.ways)],
        caption="In the middle of the range, and under it the range: every run early, or every run late",
    )
