"""Compute budget, to take away: the plan as a table, as CSV and as Markdown."""

from __future__ import annotations

import streamlit as st

from core.planning.answer.export import HEADINGS, Context, as_csv, as_markdown, plan_lines
from core.planning.answer.words import answer
from core.planning.budget.solver import BudgetError
from pages.compute.inputs import Asked
from pages.compute.whole import circumstances, hours
from pages.parts import show
from pages.parts.inputs import Inputs


def table(inputs: Inputs, asked: Asked) -> None:
    """The panel's content; drawn last, when every field is known to the link."""
    origin = f"median of {len(asked.seen.peers.rows)} comparable published runs" if asked.published else "typed"
    context = Context(
        model=asked.model,
        shape=asked.shape,
        device=asked.device,
        dtype=asked.dtype,
        seq_len=asked.seq_len,
        attention=asked.attention,
        origin=origin if asked.outlook.find != "MFU" else "found",
    )
    try:
        wall = hours(asked, circumstances(inputs))
    except BudgetError:
        wall = None  # the panel of the whole run says why
    lines = plan_lines(asked.outlook, context, wall)
    show.small_table(
        [show.Column("quantity"), *(show.Column(heading, numeric=True) for heading in HEADINGS[1:4])],
        [(show.remarked(line.name, line.note), *line.cells()[1:-1]) for line in lines],
        caption="Scenarios: in each column MFU, price and all that follows belong together. With the MFU of published "
        "runs they are its P10, median and P90",
    )
    said = answer(asked.outlook, asked.model, asked.device, "P10–P90" if asked.published else "")
    with st.container(horizontal=True):
        st.download_button("Download as CSV", as_csv(lines), "compute-budget.csv", "text/csv", on_click="ignore")
        st.download_button(
            "Download as Markdown",
            as_markdown(lines, said, _address(inputs)),
            "compute-budget.md",
            "text/markdown",
            on_click="ignore",
        )


def _address(inputs: Inputs) -> str:
    """The whole address that opens the page as it is."""
    page = (st.context.url or inputs.page.url_path).partition("?")[0]
    return f"{page}?{inputs.query()}"
