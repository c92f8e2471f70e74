"""Decide, the matrix: every run on every offer, and what can be done with a cell."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.messages import message
from core.planning.comparison.comparison import with_saved_results
from core.planning.comparison.entry import entry_of
from core.planning.decide.decision import DecisionResult
from core.planning.decide.matrix import Cell
from core.views.decide import text
from core.views.decide.tables import matrix_board
from core.wording import plain
from pages.common import comparison_list, show
from pages.common.components import component
from pages.common.inputs import Inputs
from pages.common.registry import COMPUTE, MEMORY, PARALLEL
from pages.decide.tables import cell_here, take_cell

_BOARD, _REFUSED = "decide:matrix", "decide:refused"


def draw_matrix(inputs: Inputs, d: DecisionResult) -> None:
    """Draw the matrix, and the pages of the cell that is in the sidebar."""
    here = cell_here(d, inputs.reading.texts)

    def pick() -> None:
        chosen: Any = getattr(st.session_state.get(_BOARD), "pick", None)
        found = {f"{i}.{j}": cell for (i, j), cell in d.matrix.cells.items()}
        if isinstance(chosen, str) and chosen in found:
            take_cell(inputs, d, found[chosen])

    component("matrix")(data=matrix_board(d, here), key=_BOARD, on_pick_change=pick)
    with st.container(key="decide_cell", horizontal=True, vertical_alignment="center", gap="small"):
        _pages(inputs, d, here)
    if refused := st.session_state.pop(_REFUSED, ""):
        show.error(refused)


def _pages(inputs: Inputs, d: DecisionResult, here: tuple[int, int] | None) -> None:
    """The cell of the sidebar on other pages, and in the comparison."""
    if here is None:
        show.note(message("decide.page.matrix_hint"))
        return
    cell, own = d.matrix.at(*here), [one for (i, _), one in d.matrix.cells.items() if i == here[0]]
    links = " · ".join(show.link(page.title, page, cell.texts) for page in (COMPUTE, PARALLEL, MEMORY))
    show.note(text.run_on(cell), show.Html(links))

    def add(cells: list[Cell]) -> None:
        named = [entry_of(plain(text.run_on(one)), {**inputs.reading.texts, **one.texts}) for one in cells]
        problems = [comparison_list.offer(with_saved_results(entry)) for entry in named]
        st.session_state[_REFUSED] = next(filter(None, problems), "")

    st.button(message("decide.page.compare"), key=inputs.key("compare"), on_click=add, args=([cell],), type="tertiary")
    if len(own) > 1:
        label = message("decide.page.compare_all")
        st.button(label, key=inputs.key("compare_all"), on_click=add, args=(own,), type="tertiary")
