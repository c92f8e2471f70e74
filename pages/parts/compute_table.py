"""Compute budget, to take away: the plan as a table, as CSV and as Markdown."""

from __future__ import annotations

import streamlit as st

from core.planning.export import as_csv, as_markdown, plan_lines
from core.planning.words import answer
from pages.parts import show
from pages.parts.compute_inputs import Asked
from pages.parts.inputs import Inputs


def table(inputs: Inputs, asked: Asked) -> None:
    """The panel's content; drawn last, when every field is known to the link."""
    origin = f"median of {len(asked.seen.peers.rows)} comparable published runs" if asked.published else "typed"
    lines = plan_lines(
        asked.outlook,
        asked.model,
        asked.shape,
        asked.device,
        asked.dtype,
        asked.seq_len,
        asked.attention,
        origin if asked.outlook.find != "MFU" else "found",
    )
    show.small_table(
        [
            show.Column("quantity"),
            *(show.Column(heading, numeric=True) for heading in ("value", "low", "high")),
        ],
        [(show.remarked(line.name, line.note), *line.cells()[1:-1]) for line in lines],
        caption="Low and high are P10 and P90 where the MFU is that of published runs",
    )
    said = answer(asked.outlook, asked.model, asked.device, "P10–P90" if asked.published else "")
    link = f"{inputs.page.url_path}?{inputs.query()}"
    with st.container(horizontal=True):
        st.download_button("Download as CSV", as_csv(lines), "compute-budget.csv", "text/csv", on_click="ignore")
        st.download_button(
            "Download as Markdown",
            as_markdown(lines, said, link),
            "compute-budget.md",
            "text/markdown",
            on_click="ignore",
        )
