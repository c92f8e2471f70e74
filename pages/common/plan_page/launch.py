"""The lines that start a program, as pages show them."""

from __future__ import annotations

import streamlit as st

from core.search.launch import Launch
from pages.common import show


def draw_launch(launch: Launch) -> None:
    """Draw launch lines with their notes and source; only the notes if the program cannot run the plan."""
    if launch.text:
        st.code(launch.text, language=launch.language)
    for remark in launch.notes:
        show.note(remark)
    show.source(launch.source)
