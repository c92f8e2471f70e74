"""Measurements that are kept: those of this machine, those of others, and how they go out and come in."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence

import streamlit as st

from core.benchmark.device import machine
from core.benchmark.exchange import read_record, written
from core.benchmark.record import Record
from core.limits import limit
from core.store.errors import StoreError
from core.store.locations import plan_store
from core.store.measured import StoredMeasurement, seen_from
from core.views.benchmark import history
from core.views.benchmark.plain_text import in_sentences
from pages.common import show
from pages.measure.running import measurement_writer

_FRESH_S = 15.0
_CACHE, _WHY = "measure:kept", "measure:kept:why"
_FILE, _WRONG = "measure:file", "measure:file:wrong"
_PICKED, _CHOICE = "measure:picked", "measure:shown"
"""What a visitor wants to see, which stays when the panel with the choice is folded, and the choice itself."""


def forget() -> None:
    """Have the database asked again at the next look."""
    st.session_state.pop(_CACHE, None)


def stored_measurements() -> Sequence[StoredMeasurement]:
    """The newest measurements of the database; none where it cannot be read, which the panel then says."""
    read_at, result = st.session_state.get(_CACHE, (0.0, ()))
    if time.monotonic() - read_at > _FRESH_S or not read_at:
        try:
            result = plan_store().measurements.history(per_page=limit("plans_listed")).measurements
            st.session_state.pop(_WHY, None)
        except StoreError as problem:
            st.session_state[_WHY] = str(problem)
        st.session_state[_CACHE] = (time.monotonic(), result)
    return result


def records() -> list[Record]:
    """Those of `stored_measurements` that can be read and have a result, the newest first."""
    seen = (seen_from(measurement, machine(), platform.node()) for measurement in stored_measurements())
    return [record for record in seen if record is not None and record.outcomes]


def unsaved() -> None:
    """What is measured and not in the database yet, and why the rest of it cannot be read."""
    if (waits := measurement_writer().unsaved) and waits.why:
        show.error(
            f"**{waits.results} results are not in the database yet**; they will be when it is back. {waits.why}"
        )
    if why := st.session_state.get(_WHY):
        show.error(why)


def past(record: Record | None) -> None:
    """Every measurement, which of them is shown, and two of them beside each other."""
    unreadable = [measurement for measurement in stored_measurements() if measurement.record is None]
    result = records()
    if unreadable:
        show.note(f"{len(unreadable)} measurements cannot be read: {'; '.join(unreadable[0].problems)}")
    if not result:
        show.note("There is none yet: measure something, or bring in a file that another Napkin has written.")
        return
    names = {record.id: history.named(record) for record in result}
    ids = list(names)
    rows = [[show.typed(cell) for cell in row] for row in history.rows(result)]
    show.small_table(history.HEADINGS, rows, caption="The newest first; times in UTC.", words=None)
    choice, gone = st.columns([5.2, 1], vertical_alignment="bottom")
    here = ids.index(record.id) if record is not None and record.id in ids else None
    with choice:
        st.selectbox(
            "Shown above", ids, format_func=names.__getitem__, key=_CHOICE, index=here, placeholder="Choose one",
            on_change=lambda: _show(st.session_state[_CHOICE] or ""),
        )  # fmt: skip
    others = [text for text in ids if record is None or text != record.id]
    second, _ = st.columns([5.2, 1])
    with second:
        against = st.selectbox(
            "Compared with", others, format_func=names.__getitem__, key="measure:against", index=None,
            placeholder="Choose another one",
        )  # fmt: skip
    with gone:
        if here is not None:
            st.button("Remove it", key="measure:remove", on_click=_remove, args=(ids[here],))
    if record is None or against is None:
        return
    other = in_sentences(next(record for record in result if record.id == against))
    show.takeaway(history.says(other, record))
    if doubt := history.comparable(other, record):
        show.error(doubt)
    if rows := history.compared(other, record):
        caption = f"First, compared with: {history.named(other)}. Second, shown: {history.named(record)}."
        show.small_table(("What", "First", "Second", "Second: times as fast"), rows, caption=caption)


def _remove(id: str) -> None:
    try:
        plan_store().measurements.remove(id)
    except StoreError as problem:
        st.session_state[_WHY] = str(problem)
    _show("")
    forget()


def chosen() -> str:
    """The id of the measurement that a visitor has chosen to see; empty for the newest."""
    return st.session_state.get(_PICKED, "")


def _show(id: str) -> None:
    """Have one shown from now on; the newest where ``id`` is empty."""
    st.session_state[_PICKED] = id
    st.session_state.pop(_CHOICE, None)


def files(record: Record | None) -> None:
    """The measurement shown as a file, and one of another machine."""
    if record is not None:
        st.download_button(
            "Download the measurement shown (JSON)",
            lambda: written(record).encode(),
            f"napkin-measurement-{record.id}.json",
            "application/json",
            on_click="ignore",
            key="measure:download",
        )
    most = limit("upload_bytes") >> 20
    st.file_uploader(
        "Bring in a measurement of another machine", type="json", max_upload_size=most, key=_FILE, on_change=_imported
    )
    if wrong := st.session_state.get(_WRONG):
        show.error(wrong)


def _imported() -> None:
    file = st.session_state.get(_FILE)
    st.session_state.pop(_WRONG, None)
    if file is None:
        return
    try:
        record = read_record(file.getvalue(), file.name)
        plan_store().measurements.keep(record)
        _show(record.id)
    except (ValueError, StoreError) as problem:
        st.session_state[_WRONG] = str(problem)
    forget()
