"""Training memory, fine-tuning: what is trained, how long the data take and cost, and the largest that fits."""

from __future__ import annotations

import streamlit as st

from core.planning.fine_tuning import Fitting, fine_tuning_time, largest_fitting
from core.planning.form.layout import MICRO_BATCH
from core.planning.memory_estimate import MemoryEstimate
from core.planning.sensitivity import made_own
from core.views.plan import text_finetuning as text
from pages.common import show
from pages.common.inputs import Inputs


def finetuning(inputs: Inputs, h: MemoryEstimate) -> None:
    """Below the picture: minutes and money, then one button for each largest that fits."""
    show.takeaway(text.taken(h, fine_tuning_time(h.plan)))
    for line in (text.likely(h), text.what_is_trained(h), text.not_stored(h)):
        if line:
            show.note(line)
    fitting = [one for one in largest_fitting(h.plan) if one.text]
    if not fitting:
        return

    def put(one: Fitting) -> None:
        texts = made_own(h.plan, h.layout) if one.field == MICRO_BATCH.id else {}
        for name, typed in {**texts, one.field: one.text}.items():
            inputs.put(name, typed)

    show.note(f"{text.fitting(h)}:")
    with st.container(horizontal=True, gap="small"):
        for one in fitting:
            st.button(
                f"{one.label} {one.text}",
                key=inputs.key(f"fit_{one.field}"),
                on_click=put,
                args=(one,),
            )
