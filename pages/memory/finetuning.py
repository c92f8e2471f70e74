"""Training memory, fine-tuning: what is trained, how long the data take and cost, and the largest that fits."""

from __future__ import annotations

import streamlit as st

from core.planning.fine_tuning.estimate import largest_fitting, pace
from core.planning.memory_estimate import MemoryEstimate
from core.views.plan import text_finetuning as text
from pages.common import show
from pages.common.inputs import Inputs


def finetuning(inputs: Inputs, h: MemoryEstimate) -> None:
    """Below the picture: minutes and money, then one button for each largest that fits."""
    show.takeaway(text.taken(h, pace(h.plan)))
    for line in (text.likely(h), text.what_is_trained(h), text.not_stored(h)):
        if line:
            show.note(line)
    fitting = [one for one in largest_fitting(h.plan) if one.text]
    if not fitting:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        show.note(f"{text.fitting(h)}:")
        for one in fitting:
            st.button(
                f"{one.label} {one.text}",
                key=inputs.key(f"fit_{one.field}"),
                on_click=inputs.put,
                args=(one.field, one.text),
            )
