"""Decide, its tables: offers and runs, edited cell by cell, pasted from a spreadsheet, or typed as one line a row.

What counts is the text of the table's field. The editor holds edits on top of the rows that it was last given; it is
given new ones wherever those edits are not what counts: after Undo, a link, a line that filled a row, another page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import streamlit as st

from core.limits import limit
from core.messages import message
from core.planning.decide.offers import CellProblem, Cells
from core.views.decide import text

Rows: TypeAlias = "list[dict[str, str]]"

_CHECK = "check"
"""The column that marks rows."""

_WIDE = {
    "model": 115,
    "price": 110,
    "seq": 138,
    "batch": 112,
    "after": 106,
    "first": 94,
    "last": 94,
    "power": 108,
    "maintenance": 184,
}
WIDTHS: Mapping[str, int] = {"name": 84, "accelerator": 130, "contract": 96, "interruptions": 132, **_WIDE, _CHECK: 80}
WIDTH = 80
"""Pixels of columns, and of all others."""

_ROW, _SPARE = 35, 2
"""Pixels of a row, and empty rows that are in sight; a paste of more finds room under them."""


@dataclass
class _Editor:
    """The rows that an editor was given, those it was seen with last, and its number."""

    number: int
    given: Rows
    seen: Rows


def edit_table(
    name: str,
    columns: Sequence[str],
    rows: Sequence[Cells],
    problems: Sequence[CellProblem],
    take: Callable[[Rows], None],
) -> None:
    """Draw a table whose cells can be edited, with what is wrong with them under it.

    Args:
        rows: As they are now.
        take: Called in a callback with all rows, once a cell was changed.
    """
    wanted: Rows = [{column: row.get(column, "") for column in columns} for row in rows]
    wanted += [dict.fromkeys(columns, "") for _ in range(limit("calendar_runs") + 1 - len(wanted))]
    state = f"decide:{name}"
    editor: _Editor | None = st.session_state.get(state)
    if editor is None or _edited(editor, name) != wanted:
        editor = _Editor(editor.number + 1 if editor else 1, wanted, wanted)
        st.session_state[state] = editor
    st.data_editor(
        _frame(editor.given, columns, problems),
        key=_key(editor, name),
        hide_index=True,
        num_rows="fixed",
        disabled=[_CHECK],
        column_config=_config(columns),
        on_change=partial(_changed, editor, name, wanted, take),
        width="stretch",
        height=_ROW * (min(len(wanted), len(rows) + _SPARE) + 1) + 3,
        alt=message("decide.title.offers" if name == "offers" else "decide.title.runs"),
    )


def _key(editor: _Editor, name: str) -> str:
    return f"decide:{name}:{editor.number}"


def _edited(editor: _Editor, name: str) -> Rows:
    """The rows that an editor was given, with the edits that it holds."""
    held: Any = st.session_state.get(_key(editor, name)) or {}
    edits: Mapping[int, Mapping[str, object]] = held.get("edited_rows", {})
    rows = [dict(row) for row in editor.given]
    for at, cells in edits.items():
        if at < len(rows):
            rows[at] |= {name: "" if cell is None else str(cell) for name, cell in cells.items() if name in rows[at]}
    return rows


def _changed(editor: _Editor, name: str, rows: Rows, take: Callable[[Rows], None]) -> None:
    """In a callback: change the cells that an edit has changed, and no others, of the rows that count."""
    after = _edited(editor, name)
    changed = [dict(row) for row in rows]
    for at, (old, new) in enumerate(zip(editor.seen, after, strict=True)):
        cells = {column: cell for column, cell in new.items() if cell != old[column]}
        if at < len(changed):
            changed[at] |= cells
    editor.seen = after
    take(changed)


def _frame(rows: Rows, columns: Sequence[str], problems: Sequence[CellProblem]) -> Any:
    import pandas as pd

    wrong: dict[int, list[str]] = {}
    for problem in problems:
        wrong.setdefault(problem.row, []).append(text.column_label(problem.column))
    frame = pd.DataFrame(rows, columns=list(columns), dtype=str)
    marks = [message("decide.mark", columns=wrong[at]) if at in wrong else "" for at in range(len(rows))]
    frame.insert(0, _CHECK, [str(mark) for mark in marks])
    return frame


def _config(columns: Sequence[str]) -> dict[str, Any]:
    most = limit("config_chars")
    found = {
        column: st.column_config.TextColumn(
            str(text.column_label(column)),
            help=text.column_help(column),
            width=WIDTHS.get(column, WIDTH),
            max_chars=most if column == "model" else limit("offer_chars"),
        )
        for column in columns
    }
    check = st.column_config.TextColumn(str(message("decide.column.check")), width=WIDTHS[_CHECK], pinned=True)
    return {**found, _CHECK: check}
