"""Decide, the schedule: the runs over time, their power, the bill, and the log of a running job."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import streamlit as st

from core.budget.equations import BudgetError, Interval
from core.dates import format_day
from core.messages import message
from core.number_text import QuantityError
from core.planning.actuals.log import parse_log
from core.planning.actuals.logged_run import LoggedRun
from core.planning.actuals.progress import progress
from core.planning.decide.assignment import Assignment
from core.planning.decide.decision import DecisionResult
from core.planning.decide.schedule import Schedule, Span, bill, schedule
from core.views.decide.charts import gantt, gantt_alt
from core.views.decide.tables import bill_table, schedule_table
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.common.widgets import bring_text
from pages.decide.choice import draw_table

_LOGS, _WRONG = "decide:logs", "decide:log:wrong"


def actual_schedule(d: DecisionResult, one: Assignment) -> Schedule:
    """Return the schedule of an assignment, in which running jobs keep the times of their logs."""
    spans = {i: span for i, run in enumerate(one.schedule.runs) if (span := _span(d, one, i, run.cell.run.row))}
    return schedule(d.matrix, one.placements, spans) if spans else one.schedule


def _span(d: DecisionResult, one: Assignment, i: int, row: int) -> Span | None:
    """When the job of a run began and will end, in days from the start of the schedule; None without a log."""
    log: LoggedRun | None = st.session_state.get(_LOGS, {}).get(row)
    a = one.placements[i].cell.answer
    if log is None or a is None:
        return None
    try:
        job = progress(log, a)
    except BudgetError:
        return None
    begin = one.schedule.runs[i].begin.mid
    if math.isfinite(log.began):
        start = datetime(d.start.year, d.start.month, d.start.day, tzinfo=UTC).timestamp()
        begin = (log.began - start) / 86400 - job.lead
    low, high = (job.day, job.day) if job.done else job.ends
    if not math.isfinite(high):
        return None
    middle = job.day if job.done else min(max(job.implied, low), high)
    return Span(begin, Interval(begin + low, begin + middle, begin + high))


def draw_schedule(inputs: Inputs, d: DecisionResult, planned: Schedule) -> None:
    """Draw the chart, its table, the bill, and where a log is given."""
    with show.question(message("decide.title.schedule")):
        figure = gantt(planned, d.matrix.limits.watts, TOKENS)
        show.chart(figure, alt=plain(gantt_alt(planned)), key="decide:gantt")
        draw_table(schedule_table(planned), "decide_schedule")
        _log(inputs, planned)
    with show.question(message("decide.title.bill")):
        draw_table(bill_table(bill(planned)), "decide_bill")


def _log(inputs: Inputs, planned: Schedule) -> None:
    """Where the log of a running job is given, which then moves the bar of its run."""
    logs: dict[int, LoggedRun] = st.session_state.setdefault(_LOGS, {})
    for run in planned.runs:
        if run.cell.run.row in logs:
            first, last = (format_day(planned.day(at)) for at in (run.begin.mid, run.end.mid))
            show.note(message("decide.page.log_used", run=run.cell.run.name, first=first, last=last))
    with show.fold(message("decide.page.log"), key="decide:log:fold", icon=":material/monitoring:") as fold:
        if not fold.open:
            return
        rows = {run.cell.run.row: run.cell.run.name for run in planned.runs}
        row = st.selectbox(
            message("decide.page.log_run"), list(rows), format_func=rows.__getitem__, key="decide:log:run"
        )

        def take(content: str) -> None:
            st.session_state.pop(_WRONG, None)
            try:
                logs[row] = parse_log(content)
            except QuantityError as problem:
                st.session_state[_WRONG] = str(problem)

        def remove() -> None:
            logs.pop(row, None)

        kinds = ("csv", "tsv", "txt", "log", "json", "jsonl")
        bring_text(
            message("decide.page.log_paste"),
            message("decide.page.log_file"),
            kinds,
            take,
            key="decide:log",
            placeholder="days,tokens\n1.5,90B",
        )
        if row in logs:
            st.button(message("decide.page.log_remove"), key=inputs.key("log_remove"), on_click=remove)
        if wrong := st.session_state.get(_WRONG):
            show.error(wrong)
