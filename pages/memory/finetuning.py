"""Training memory, fine-tuning: the largest model, rank, sequence length, and micro-batch that fit."""

from __future__ import annotations

import streamlit as st

from core.messages import message
from core.planning.fine_tuning import Fitting, largest_fitting
from core.planning.form.layout import MICRO_BATCH
from core.planning.memory_estimate import MemoryEstimate
from core.planning.sensitivity import made_own
from core.views.plan.text_finetuning import fitting_label
from pages.common import show
from pages.common.inputs import Inputs


def draw_largest(inputs: Inputs, h: MemoryEstimate) -> None:
    """Draw a button for each largest value that fits."""
    fitting = [one for one in largest_fitting(h.plan) if one.text]
    if not fitting:
        return

    def put(one: Fitting) -> None:
        texts = made_own(h.plan, h.layout) if one.field == MICRO_BATCH.id else {}
        for name, typed in {**texts, one.field: one.text}.items():
            inputs.put(name, typed)

    show.note(message("memory.fitting.label"))
    with st.container(horizontal=True, gap="small"):
        for one in fitting:
            st.button(fitting_label(one), key=inputs.key(f"fit_{one.field}"), on_click=put, args=(one,))
