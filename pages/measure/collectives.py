"""Collectives over several devices: the command that measures them, and what its output says."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from core.benchmark.collectives import Collectives
from core.benchmark.nccl_tests import command, read_output
from core.benchmark.record import Record
from core.planning.form.measured_rates import promised, with_measured_links
from core.store.errors import StoreError
from core.store.locations import plan_store
from core.views.benchmark.plain_text import in_sentences
from core.views.collectives import charts, text
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.common.widgets import bring_text
from pages.measure.panels import offered

_WRONG, _SHOWN, _READ = (f"measure:links:{item}" for item in ("wrong", "shown", "read"))


def several(inputs: Inputs, record: Record | None) -> None:
    """How collectives are measured, and what the output says. record: the measurement of one device above."""
    show.note(
        "Over several devices a page cannot measure: run NVIDIA’s nccl-tests there, and bring its output here. They "
        "time all-reduce, all-gather, reduce-scatter, all-to-all and send and receive over message sizes."
    )
    gpus, nodes = (int(inputs.reading.values[name]) for name in ("gpus", "nodes"))
    row = st.columns([1, 1, 3])
    for place, name in zip(row, ("nodes", "gpus"), strict=False):
        with place:
            inputs.draw(inputs.form[name])
    try:
        st.code(command(nodes, gpus), language="bash")
    except ValueError as problem:
        show.note(str(problem))
    show.note(
        "In the folder of nccl-tests (github.com/NVIDIA/nccl-tests), built with “make”"
        + (", and for several nodes with “make MPI=1”." if nodes > 1 else ".")
    )
    bring_text("Paste its output", "Or bring in its nccl-tests.txt", ("txt", "log"), _bring, key="measure:links")
    listing = _chosen()
    if wrong := st.session_state.get(_WRONG):
        show.error(wrong)
    if (result := _result(listing)) is not None:
        _describe(in_sentences(result), record)


def _describe(result: Collectives, record: Record | None) -> None:
    """One result: its answer, chart and table, and the way into a plan."""
    link = promised(result)
    sentence, detail = text.answer(result, link)
    show.takeaway(sentence)
    show.note(detail)
    show.chart(charts.bandwidths(result, TOKENS, link), alt=text.chart_alt(result, link), key="measure:links:chart")
    columns = [show.Column(text.HEADINGS[0], whole=True), *text.HEADINGS[1:]]
    show.small_table(columns, text.rows(result, result.largest.values()), caption=text.CAPTION)
    for remark in text.remarks(result):
        show.note(remark)
    if texts := with_measured_links(result, record):
        offered(texts, (text.link_line(result),))
    show.how(text.explanations(result), key="measure:links:how", label="How bus bandwidth is computed")


def _chosen() -> str:
    """The id of the kept result that is shown, empty for none; a list to choose from where there are several."""
    names: dict[str, str] = {}
    try:
        names = {links.id: links.name for links in plan_store().links.all()}
    except StoreError as problem:
        show.error(str(problem))
    here, result = st.session_state.get(_READ, ("", None))
    if result is not None and not here:
        names = {"": f"{text.named(result)} (not kept)", **names}
    if not names:
        return ""
    if st.session_state.get(_SHOWN) not in names:
        st.session_state.pop(_SHOWN, None)
    choice, gone = st.columns([5.2, 1], vertical_alignment="bottom")
    with choice:
        picked: str = st.selectbox("Shown", list(names), format_func=names.__getitem__, key=_SHOWN)
    with gone:
        st.button("Remove it", key="measure:links:remove", on_click=_remove, args=(picked,))
    return picked


def _result(wanted: str) -> Collectives | None:
    """The result of that id, else the one brought in that could not be kept; None without one."""
    here, result = st.session_state.get(_READ, ("", None))
    if wanted and here != wanted:
        try:
            result = plan_store().links.get(wanted)
            st.session_state[_READ] = (wanted, result)
        except StoreError as problem:
            show.error(str(problem))
            return None
    return result


def _bring(output: str) -> None:
    """Read the output of nccl-tests, and keep what it says."""
    if not output:
        return
    st.session_state.pop(_WRONG, None)
    try:
        result = read_output(output, datetime.now(UTC).date())
    except ValueError as problem:
        st.session_state[_WRONG] = str(problem)
        return
    key = ""
    try:
        key = plan_store().links.keep(result, text.named(result))
    except StoreError as problem:
        st.session_state[_WRONG] = f"It is shown, and not kept. {problem}"
    st.session_state[_READ], st.session_state[_SHOWN] = (key, result), key


def _remove(wanted: str) -> None:
    try:
        plan_store().links.remove(wanted)
    except StoreError as problem:
        st.session_state[_WRONG] = str(problem)
    for item in (_SHOWN, _READ):
        st.session_state.pop(item, None)
