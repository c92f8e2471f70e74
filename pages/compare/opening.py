"""Compare, import: plans of an exported JSON file, added to the comparison."""

from __future__ import annotations

import streamlit as st

from core.limits import limit
from core.messages import message
from core.planning.comparison.entry import Entry
from core.views.comparison import text
from core.views.report.data import PlansFileError, read_json
from pages.common import comparison_list
from pages.common.inputs import Inputs


def file_of_plans(inputs: Inputs) -> tuple[str, ...]:
    """Where a file is chosen; what is to be said about the one that is."""
    key = inputs.key("file")
    about = f"{key}:about"

    def taken() -> None:
        file = st.session_state.get(key)
        st.session_state[about] = _taken(file.getvalue().decode("utf-8", errors="replace")) if file else ()

    with st.popover(message("comparison.import"), icon=":material/upload_file:"):
        most = limit("upload_bytes") >> 20
        label = message("comparison.file")
        st.file_uploader(label, type="json", max_upload_size=most, key=key, on_change=taken)
    return st.session_state.get(about, ()) if st.session_state.get(key) else ()


def _taken(content: str) -> tuple[str, ...]:
    """Put the plans of a file behind those that are compared; what is to be said about that."""
    try:
        entries, sentences = read_json(content)
    except PlansFileError as problem:
        return (str(problem),)
    parts, left = [*sentences, *comparison_list.problems(entries)], list[Entry]()
    for entry in entries:
        there = comparison_list.same(entry)
        if there:
            parts.append(text.already_in(there))
        elif not comparison_list.add(entry):
            left.append(entry)
    return tuple(filter(None, (*parts, text.left_out(left))))
