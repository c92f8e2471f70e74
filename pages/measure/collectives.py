"""Collectives over several devices: the command that measures them, and what kept files of them say."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from core.benchmark.collectives import commands
from core.benchmark.collectives.result import read_result
from core.benchmark.collectives.result_fields import ResultFields
from core.benchmark.record import Record
from core.limits import limit
from core.planning.form.measured_rates import promised, with_measured_links
from core.store.errors import StoreError
from core.store.locations import opened
from core.views.benchmark.plain_text import in_sentences
from core.views.collectives import charts, text
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.measure.panels import offered

_FRESH_S = 15.0
_FILE, _WRONG, _LIST, _SHOWN, _FOUND = (f"device:links:{item}" for item in ("file", "wrong", "list", "shown", "found"))


def several(inputs: Inputs, record: Record | None) -> None:
    """How collectives are measured, and what a file of them says. shown: the measurement of one device above."""
    show.note(
        "Over several devices a page cannot measure: run this in Napkin’s folder on the cluster, and bring the file "
        "here. It times all-reduce, all-gather, reduce-scatter, all-to-all and point to point over message sizes."
    )
    gpus, nodes = (int(inputs.reading.values[name]) for name in ("gpus", "nodes"))
    row = st.columns([1, 1, 3])
    for place, name in zip(row, ("nodes", "gpus"), strict=False):
        with place:
            inputs.draw(inputs.form[name])
    if nodes * gpus < 2:
        show.note("A collective needs two devices at least.")
    else:
        st.code(commands.local_command(gpus) if nodes == 1 else commands.slurm_script(nodes, gpus), language="bash")
    most = limit("upload_bytes") >> 20
    st.file_uploader("Bring in its result.json", type="json", max_upload_size=most, key=_FILE, on_change=_brought)
    listing = _chosen()
    if wrong := st.session_state.get(_WRONG):
        show.error(wrong)
    if (result := _result(listing)) is not None:
        _said(in_sentences(result), record)


def _said(result: ResultFields, record: Record | None) -> None:
    """One result: what it found, and the way into a plan."""
    link = promised(result)
    sentence, detail = text.answer(result, link)
    show.takeaway(sentence)
    show.note(detail)
    if result.points:
        show.chart(charts.bandwidths(result, TOKENS, link), alt=text.chart_alt(result, link), key="device:links:chart")
        _table(text.top_rows(result), text.CAPTION)
    for remark in text.remarks(result):
        show.note(remark)
    if texts := with_measured_links(result, record):
        offered(texts, (text.link_line(result),))
    if len(result.points) > len(text.top_rows(result)):
        with show.fold("Every size in numbers", key="device:links:numbers") as numbers:
            if numbers.open:
                _table(text.rows(result), "")
    show.how(text.explanations(result), key="device:links:how", label="How bus bandwidth is computed")


def _table(rows: Sequence[text.Row], caption: str) -> None:
    columns = [show.Column(name, numeric=i > 0, whole=i == 0) for i, name in enumerate(text.HEADINGS)]
    show.small_table(columns, [row.cells for row in rows], caption=caption)


def _chosen() -> str:
    """The id of the kept file that is shown, empty for none; a list to choose from where there are several."""
    request, names, why = st.session_state.get(_LIST, (0.0, {}, ""))
    if not request or time.monotonic() - request > _FRESH_S:
        try:
            names, why = {links.id: links.name for links in opened().links.all()}, ""
        except StoreError as problem:
            why = str(problem)
        st.session_state[_LIST] = (time.monotonic(), names, why)
    if why:
        show.error(why)
    here, result = st.session_state.get(_FOUND, ("", None))
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
        st.button("Remove it", key="device:links:remove", on_click=_remove, args=(picked,))
    return picked


def _result(wanted: str) -> ResultFields | None:
    """The file of that id, else the one brought in that could not be kept; None without one."""
    here, result = st.session_state.get(_FOUND, ("", None))
    if wanted and here != wanted:
        try:
            result = opened().links.get(wanted)
            st.session_state[_FOUND] = (wanted, result)
        except StoreError as problem:
            show.error(str(problem))
            return None
    return result


def _brought() -> None:
    file = st.session_state.get(_FILE)
    for item in (_WRONG, _LIST):
        st.session_state.pop(item, None)
    if file is None:
        return
    try:
        result = read_result(file.getvalue())
    except ValueError as problem:
        st.session_state[_WRONG] = str(problem)
        return
    selected = ""
    try:
        selected = opened().links.keep(result, text.named(result))
    except StoreError as problem:
        st.session_state[_WRONG] = f"It is shown, and not kept. {problem}"
    st.session_state[_FOUND], st.session_state[_SHOWN] = (selected, result), selected


def _remove(wanted: str) -> None:
    try:
        opened().links.remove(wanted)
    except StoreError as problem:
        st.session_state[_WRONG] = str(problem)
    for item in (_SHOWN, _FOUND, _LIST):
        st.session_state.pop(item, None)
