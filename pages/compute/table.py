"""Compute budget, to take away: the plan as a table, as CSV and as Markdown."""

from __future__ import annotations

import streamlit as st

from core.planning.answer.answer import Answer
from core.planning.answer.export import HEADINGS, as_csv, as_markdown, plan_lines
from core.planning.answer.words import sentence
from pages.parts import show
from pages.parts.inputs import Inputs


def table(inputs: Inputs, a: Answer) -> None:
    """The panel's content."""
    lines = plan_lines(a)
    show.small_table(
        [show.Column("quantity"), *(show.Column(heading, numeric=True) for heading in HEADINGS[1:4])],
        [(show.remarked(line.name, line.note), *line.cells()[1:-1]) for line in lines],
        caption="Scenarios: in each column MFU, price and all that follows belong together. With the MFU of published "
        "runs they are its P10, median and P90",
    )
    link = f"{(st.context.url or inputs.page.url_path).partition('?')[0]}?{inputs.query()}"
    with st.container(horizontal=True):
        for label, made, name, kind in (
            ("Download as CSV", as_csv(lines), "compute-budget.csv", "text/csv"),
            ("Download as Markdown", as_markdown(lines, sentence(a), link), "compute-budget.md", "text/markdown"),
        ):
            st.download_button(label, made, name, kind, on_click="ignore")
