"""Compute budget, a running job: what its logger says, drawn over the plan's range."""

from __future__ import annotations

import streamlit as st

from core.budget.errors import BudgetError
from core.limits import limit
from core.planning.actuals.log import LoggedRun, parse_log
from core.planning.actuals.progress import progress
from core.planning.evaluation import Answer
from core.planning.form.known import OWN_RUNS
from core.units import QuantityError
from core.views.actuals import text
from core.views.actuals.charts import tokens_over_days
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.compute.form import LOG

_FILE, _TEXT, _WRONG, _KEPT = (f"compute:log:{item}" for item in ("file", "text", "wrong", "kept"))


def actuals(inputs: Inputs, a: Answer) -> None:
    """The panel's content."""
    in_link: LoggedRun | None = inputs.reading.values[LOG.id]
    log: LoggedRun | None = in_link or st.session_state.get(_KEPT)
    show.problems(inputs, LOG.id)
    if log is None:
        show.note(text.INVITATION)
        _ask(inputs, a)
        if wrong := st.session_state.get(_WRONG):
            show.error(wrong)
        return
    _compare(inputs, a, log)
    show.note(text.IN_LINK if in_link else text.KEPT_HERE)
    with show.fold("Bring in another log, or remove it", key="compute:log:other") as other:
        if other.open:
            _ask(inputs, a)
            st.button("Remove the log", key="compute:log:remove", on_click=_bring, args=(inputs, ""))
    if wrong := st.session_state.get(_WRONG):
        show.error(wrong)


def _compare(inputs: Inputs, a: Answer, log: LoggedRun) -> None:
    """The job over the plan's range, and what changed."""
    try:
        p = progress(log, a)
    except BudgetError as problem:
        show.error(str(problem))
        return
    verdict = text.verdict(p)
    show.takeaway(verdict)
    show.chart(tokens_over_days(p, TOKENS), alt=f"{text.chart_alt(p)} {plain(verdict)}", key="compute:log:chart")
    show.small_table(
        [show.Column(heading, numeric=i > 0) for i, heading in enumerate(text.HEADINGS)],
        text.changed(p),
        caption="What changed",
    )
    for line in text.read(p):
        show.note(line)
    if a.published:
        before = inputs.reading.texts[OWN_RUNS.id]
        after = text.with_own_run(p, before)
        show.note(text.own(p))
        if p.own and after != before and len(after) <= OWN_RUNS.max_chars:
            st.button(
                "Count it among your own runs", key="compute:log:own", on_click=inputs.put, args=(OWN_RUNS.id, after)
            )
    show.how(p.explain, key="compute:log:how")


def _ask(inputs: Inputs, a: Answer) -> None:
    """Where a log is pasted, chosen, or made up."""
    most = limit("upload_bytes")
    st.text_area(
        "Paste the CSV of its logger", key=_TEXT, height=120, max_chars=most, placeholder="days,tokens\n1.5,90B",
        on_change=lambda: _bring(inputs, st.session_state.get(_TEXT) or ""),
    )  # fmt: skip
    st.file_uploader(
        "Or choose the file", type=["csv", "tsv", "txt"], max_upload_size=most >> 20, key=_FILE,
        on_change=lambda: _uploaded(inputs),
    )  # fmt: skip
    st.button("Show an example", key="compute:log:example", on_click=_bring, args=(inputs, text.example(a)))


def _uploaded(inputs: Inputs) -> None:
    if (file := st.session_state.get(_FILE)) is not None:
        _bring(inputs, file.getvalue().decode("utf-8", "replace"))


def _bring(inputs: Inputs, log: str) -> None:
    """Take a log in place of the one there; one that cannot be read leaves it. Empty: none."""
    st.session_state.pop(_WRONG, None)
    try:
        run = parse_log(log) if log.strip() else None
    except QuantityError as problem:
        st.session_state[_WRONG] = f"{problem} Nothing has changed."
        return
    st.session_state.pop(_KEPT, None)
    short = len(log) <= LOG.max_chars
    inputs.put(LOG.id, log if short else "")
    if run and not short:
        st.session_state[_KEPT] = run
