"""Training memory, activations: what recomputation saves, and every tensor that forward saves of one layer."""

from __future__ import annotations

import streamlit as st

from core.messages import message
from core.planning.memory_estimate import MemoryEstimate
from core.views.training import text
from pages.common import show
from pages.common.inputs import Inputs
from pages.memory.form import LAYER


def activations_panel(inputs: Inputs, h: MemoryEstimate) -> None:
    """The panel's content."""
    kind = "experts" if h.spec.experts else "dense"
    if h.spec.experts and h.spec.dense_layers:
        inputs.draw(LAYER)
        kind = "experts" if inputs.reading.values[LAYER.id] == "with experts" else "dense"
    tensors = h.tensors(kind)
    show.takeaway(text.activations_text(tensors))
    with st.container(key="memory_tensors"):
        show.small_table(
            [
                show.Column(heading, numeric=2 <= i <= 4, whole=i < 2)
                for i, heading in enumerate(text.tensor_headings())
            ],
            text.tensor_rows(h, tensors),
            caption=message("memory.activations.caption"),
        )
