"""Calendar and cost, to take away: a report as one file, and Markdown, made when somebody asks for one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial

import streamlit as st

from core.limits import limit
from core.planning.comparison.names import suggested
from core.planning.cost.compared_pools import compare_pools
from core.views.report.calendar import CalendarReport, calendar_html, calendar_markdown
from core.wording import cleaned
from pages.calendar.form import WHICH
from pages.calendar.inputs import CalendarAnswer
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.takeaway import stem_of

_FILES: tuple[tuple[str, str, str, Callable[[CalendarReport], str]], ...] = (
    ("Report as HTML", "html", "text/html", calendar_html),
    ("Markdown", "md", "text/markdown", calendar_markdown),
)


def take_away(inputs: Inputs, a: CalendarAnswer) -> None:
    """The fold."""
    with show.fold("Take it away: report, Markdown", key=inputs.key("fold_take"), icon=":material/download:") as fold:
        if not fold.open:
            return
        likely = f"{suggested(inputs.reading.texts)}, calendar"
        typed = st.text_input(
            "Name of the calendar", key=inputs.key("take_name"), max_chars=limit("plan_name"), placeholder=likely
        )
        name = cleaned(typed or "", limit("plan_name")) or likely
        link = f"{(st.context.url or inputs.page.url_path).partition('?')[0]}?{inputs.query()}"
        found = compare_pools(inputs.reading, a.question) if inputs.reading.values[WHICH.id] else None
        report = CalendarReport(name, inputs.reading, a.schedule, a.ways, link, date.today(), found)
        with st.container(horizontal=True):
            for label, ending, kind, write in _FILES:
                st.download_button(
                    label,
                    partial(_written, write, report),
                    f"{stem_of(name)}.{ending}",
                    kind,
                    key=inputs.key(f"take_{ending}"),
                    on_click="ignore",
                )
        show.note("The report opens without a network and prints: answer, runs, pools, bill, and the link back.")


def _written(write: Callable[[CalendarReport], str], report: CalendarReport) -> bytes:
    return write(report).encode()
