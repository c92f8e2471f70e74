"""Calendar and cost: when several runs on one fleet end, and what that costs rented, reserved or owned."""

from __future__ import annotations

import streamlit as st

from core.planning.calendar.form import texts_of
from core.planning.calendar.presets import SOURCES
from core.planning.cost.bill import explain
from core.planning.cost.choose_pools import calendar_checks
from core.planning.cost.form import prices_of
from core.planning.form.links import link_texts, texts_as_given
from core.planning.form.plan_form import plan_as_given
from core.views.calendar import text
from core.views.calendar.charts import calendar
from core.views.calendar.text_fit import fits
from core.views.cost.text import fleet_text
from core.views.plan.text import typed_elsewhere
from pages.calendar.bill import bill
from pages.calendar.choosing import choosing, moved
from pages.calendar.inputs import CalendarAnswer, draw_question, draw_runs, read_calendar
from pages.calendar.take import download_panel
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.plan_page.published import repeated_notices
from pages.common.registry import COMPUTE, MEMORY, PARALLEL
from pages.common.theme import TOKENS


def _runs(inputs: Inputs, a: CalendarAnswer) -> None:
    """The table of runs, each with a link to its budget, and the calendar as a file."""
    s = a.schedule
    rows = [
        [show.remarked(cell, remark) for cell, remark in zip(*row, strict=True)]
        for row in zip(text.rows(s), text.remarks(s), strict=True)
    ]
    for row, run, under in zip(rows, s.runs, text.remarks(s), strict=True):
        name = show.link(run.run.name, COMPUTE, texts_of(inputs.reading, run.run))
        row[0] = show.Html(name + show.remarked("", under[0]))
        if not fits(run):
            row[3] = show.Html(row[3] + show.link("its layouts", PARALLEL, texts_of(inputs.reading, run.run)))
    numbers, days = ("accelerators", "memory", "trains", "paused", "rent"), ("begins", "ends", "quarter")
    with st.container(key="calendar_runs"):
        show.small_table(
            [show.Column(heading, numeric=heading in numbers, whole=heading in days) for heading in text.TABLE],
            rows,
            caption="Days in UTC. A run’s name leads to its budget, where its days and dollars are the same",
        )


def page(inputs: Inputs) -> None:
    """The answer, the calendar, and the bill."""
    a = read_calendar(inputs)
    draw_question(inputs)
    show.input_errors(inputs)
    preset = plan_sidebar.draw_actions(texts_as_given(inputs.reading.texts), "calendar")
    s, rented = a.schedule, a.ways[0]

    with show.guarded("The answer"):
        show.answer(text.sentence(s, rented), text.detail(s, rented, fleet_text(s, prices_of(inputs.reading))))
        for line in repeated_notices(run.answer for run in s.runs):
            show.note(line)
        for wrong in (text.missed(s), *text.beyond(s)[0], *text.impossible(s), *text.unfitting(s)[0]):
            if wrong:
                show.error(wrong)
        checks = calendar_checks(s, rented.total)
        show.note(text.limits(s, checks), plan_sidebar.which_pool(inputs, checks))
        if said := moved(inputs):
            show.note(said)
    with show.guarded("The calendar"):
        show.chart(calendar(s, TOKENS), alt=text.picture(s), key="calendar:bars")
        typed = typed_elsewhere(plan_as_given(inputs.reading), (run.run.plan.accelerator for run in s.runs))
        for line in filter(None, (typed, *text.unfitting(s)[1], *text.beyond(s)[1], *text.queued(s))):
            show.note(line)
        for source in SOURCES.get(preset or "", ()):
            show.source(source)
    with show.guarded("The runs"):
        draw_runs(inputs)
        _runs(inputs, a)
    with show.question("What does it cost?"):
        bill(inputs, a)
    choosing(inputs, a)

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
    download_panel(inputs, a)
    show.next_page("FLOPs, days and dollars of the plan alone", COMPUTE, link_texts(inputs.reading.texts))
    show.next_page("What each accelerator has to hold", MEMORY, link_texts(inputs.reading.texts))
    show.footer(inputs)


plan_sidebar.draw_page(page)
