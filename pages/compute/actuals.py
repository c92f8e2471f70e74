"""Compute budget, a running job: what its logger says, drawn over the plan's range."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.budget.equations import BudgetError
from core.messages import message
from core.number_text import QuantityError
from core.planning.actuals.log import parse_log
from core.planning.actuals.logged_run import LoggedRun
from core.planning.actuals.progress import progress
from core.planning.estimate import PlanEstimate
from core.planning.form.whole_run import OWN_RUNS
from core.views.actuals import text
from core.views.actuals.charts import tokens_over_days
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.common.widgets import bring_text
from pages.compute.form import LOG

_WRONG, _KEPT = "compute:log:wrong", "compute:log:kept"


def actuals_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """Draw the panel of a running job: its log, and its progress compared with the plan."""
    in_link: LoggedRun | None = inputs.reading.values[LOG.id]
    log: LoggedRun | None = in_link or st.session_state.get(_KEPT)
    show.draw_problems(inputs, LOG.id)
    if log is None:
        show.note(message("actuals.invitation"))
        _ask(inputs, a)
        if wrong := st.session_state.get(_WRONG):
            show.error(wrong)
        return
    _compare(inputs, a, log)
    show.note(message("actuals.in_link" if in_link else "actuals.kept_here"))
    with show.fold(message("actuals.other"), key="compute:log:other") as other:
        if other.open:
            _ask(inputs, a)
            st.button(message("actuals.remove"), key="compute:log:remove", on_click=_bring, args=(inputs, ""))
    if wrong := st.session_state.get(_WRONG):
        show.error(wrong)


def _compare(inputs: Inputs, a: PlanEstimate, log: LoggedRun) -> None:
    """Draw the job over the plan's range, and what changed."""
    try:
        p = progress(log, a)
    except BudgetError as problem:
        show.error(str(problem))
        return
    show.takeaway(" ".join(text.verdict(p)))
    show.chart(tokens_over_days(p, TOKENS), alt=text.chart_alt(p), key="compute:log:chart")
    show.small_table(text.headings(), text.changed(p), caption=message("actuals.table.caption"))
    for line in text.read(p):
        show.note(line)
    if a.plan.expects_mfu:
        before = inputs.reading.texts[OWN_RUNS.id]
        after = text.with_own_run(p, before)
        show.note(text.own(p))
        if p.own and after != before and len(after) <= OWN_RUNS.max_chars:
            st.button(
                message("actuals.custom.add"),
                key="compute:log:own",
                on_click=inputs.put,
                args=(OWN_RUNS.id, after),
            )
    show.how(p.explain, key="compute:log:how")


def _ask(inputs: Inputs, a: PlanEstimate) -> None:
    """Draw the box for pasting or choosing a log, and the button for an example."""
    bring_text(
        message("actuals.paste"),
        message("actuals.file"),
        ("csv", "tsv", "txt", "log", "out", "err", "json", "jsonl"),
        partial(_bring, inputs),
        key="compute:log",
        placeholder="days,tokens\n1.5,90B",
    )
    st.button(message("actuals.example"), key="compute:log:example", on_click=_bring, args=(inputs, text.example(a)))


def _bring(inputs: Inputs, log: str) -> None:
    """Take a log in place of the one there; one that cannot be read leaves it. Empty: none."""
    st.session_state.pop(_WRONG, None)
    try:
        run = parse_log(log) if log.strip() else None
    except QuantityError as problem:
        st.session_state[_WRONG] = message("actuals.rejected", problem=str(problem))
        return
    st.session_state.pop(_KEPT, None)
    short = len(log) <= LOG.max_chars
    inputs.put(LOG.id, log if short else "")
    if run and not short:
        st.session_state[_KEPT] = run
