"""Training memory, activations: every tensor that forward keeps of one layer."""

from __future__ import annotations

import streamlit as st

from core.planning.memory_estimate import MemoryEstimate
from core.views.plan import text_memory
from pages.common import show
from pages.common.inputs import Inputs
from pages.memory.form import LAYER


def activations_panel(inputs: Inputs, h: MemoryEstimate) -> None:
    """The panel's content."""
    kind = "dense"
    if h.spec.experts and h.spec.dense_layers:
        inputs.draw(LAYER)
        kind = "experts" if inputs.reading.values[LAYER.id] == "with experts" else "dense"
    elif h.spec.experts:
        kind = "experts"
    tensors = h.tensors(kind)
    show.takeaway(text_memory.kept(h, tensors))
    with st.container(key="memory_tensors"):
        show.small_table(
            [
                show.Column("Tensor", whole=True),
                show.Column("Part", whole=True),
                show.Column("B/token", numeric=True),
                show.Column("On each, one layer", numeric=True),
                show.Column("Share", numeric=True),
                show.Column("Split over"),
            ],
            text_memory.tensor_rows(h, tensors),
            caption="What one layer keeps of one micro-batch, in the order in which forward makes it.",
        )
