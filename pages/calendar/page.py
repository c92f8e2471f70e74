"""Calendar and cost: when several runs on one fleet end, and what that costs rented, reserved or owned."""

from __future__ import annotations

import streamlit as st

from core.planning.calendar.form import texts_of
from core.planning.calendar.presets import SOURCES
from core.planning.cost.bill import explain
from core.planning.form.plan_form import link_texts
from core.views.calendar import text
from core.views.calendar.charts import calendar
from core.views.calendar.ics import as_ics
from core.views.cost.text import fleet_text
from pages.calendar.bill import bill
from pages.calendar.form import CHIPS, FORM
from pages.calendar.inputs import CalendarInputs, draw, read_inputs
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.plan_presets import plan_chips
from pages.common.registry import CALENDAR, COMPUTE, MEMORY
from pages.common.shape import adopt_built
from pages.common.theme import TOKENS


def _runs(inputs: Inputs, a: CalendarInputs) -> None:
    """The table of runs, each with a link to its budget, and the calendar as a file."""
    s = a.schedule
    rows = [
        [show.remarked(cell, remark) for cell, remark in zip(*row, strict=True)]
        for row in zip(text.rows(s), text.remarks(s), strict=True)
    ]
    for row, run, under in zip(rows, s.runs, text.remarks(s), strict=True):
        name = show.link(run.run.name, COMPUTE, texts_of(inputs.reading, run.run))
        row[0] = show.Html(name + show.remarked("", under[0]))
    show.small_table(
        [show.Column(heading, numeric=i in (2, 6, 7, 8), whole=i in (3, 4, 5)) for i, heading in enumerate(text.TABLE)],
        rows,
        caption="Days in UTC. A run’s name leads to its budget, where its days and dollars are the same",
    )
    st.download_button(
        "Download the calendar (.ics)",
        lambda: as_ics(s).encode(),
        "calendar.ics",
        "text/calendar",
        on_click="ignore",
        key="y:ics",
    )


def page() -> None:
    """Inputs, the answer, the calendar, and the bill."""
    adopt_built(CALENDAR)
    inputs = Inputs(CALENDAR, FORM)
    chips = show.slot()
    a = read_inputs(inputs)
    draw(inputs)
    story = plan_chips(inputs, CHIPS, into=chips)
    s, rented = a.schedule, a.ways[0]

    with show.guarded("The answer"):
        show.answer(text.sentence(s, rented), text.detail(s, rented, fleet_text(s)))
        lost, saved = text.unfitting(s)
        for wrong in (text.missed(s), *text.impossible(s), *lost):
            if wrong:
                show.error(wrong)
        for line in (*saved, *text.queued(s)):
            show.note(line)
        for source in SOURCES.get(story or "", ()):
            show.source(source)
    with show.guarded("The calendar"):
        show.chart(calendar(s, TOKENS), alt=text.picture(s), key="calendar:bars")
        _runs(inputs, a)
    with show.question("What does it cost?"):
        bill(inputs, a)

    show.how(
        lambda: [
            "When it ends",
            *(step for run in s.runs for step in run.explain()),
            "What it costs",
            *explain(a.ways),
        ],
        key="calendar:how",
        notes=[text.METHOD],
    )
    show.onwards("FLOPs, days and dollars of the plan alone", COMPUTE, link_texts(inputs.reading.texts))
    show.onwards("What each accelerator has to hold", MEMORY, link_texts(inputs.reading.texts))
    show.footer(inputs)


show.body(page)
