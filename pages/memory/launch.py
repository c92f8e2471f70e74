"""Training memory, launch settings: the plan as fine-tuning programs are told it."""

from __future__ import annotations

import streamlit as st

from core.planning.fine_tuning.of_plan import fine_tuning_of, launches_of
from core.planning.memory_estimate import MemoryEstimate
from core.views.serving import text_launch as text
from pages.common import show
from pages.common.inputs import Inputs


def launch_panel(_: Inputs, h: MemoryEstimate) -> None:
    """The panel's content."""
    launches = launches_of(h)
    show.takeaway(text.takeaway(fine_tuning_of(h), launches, h.plan.device))
    for tab, item in zip(st.tabs([item.system for item in launches]), launches, strict=True):
        with tab:
            if item.text:
                st.code(item.text, language=item.language)
            for remark in item.notes:
                show.note(remark)
            show.source(item.source)
