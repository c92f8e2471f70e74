"""Training memory, activations: what checkpointing saves and costs, and every tensor that a layer saves."""

from __future__ import annotations

import streamlit as st

from core.messages import message
from core.planning.memory_estimate import MemoryEstimate, checkpointing
from core.views.training import text
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.memory.form import LAYER


def activations_panel(inputs: Inputs, h: MemoryEstimate) -> None:
    """Draw the saved activations of one layer, and what recomputation saves."""
    rows = checkpointing(h)
    takeaway = text.checkpointing_text(h, rows)
    show.takeaway(takeaway)
    bars = text.checkpointing_bars(rows)
    show.chart(
        device_bars(bars, h.usable, TOKENS),
        alt=plain(message("memory.picture.alt_bars", rows=[name for name, _ in bars], takeaway=takeaway)),
        key="memory:checkpointing",
    )
    kind = "experts" if h.spec.experts else "dense"
    if h.spec.experts and h.spec.dense_layers:
        inputs.draw(LAYER)
        kind = "experts" if inputs.reading.values[LAYER.id] == "with experts" else "dense"
    tensors, total = text.tensor_rows(h, kind)
    with st.container(key="memory_tensors"):
        show.small_table(
            [
                show.Column(heading, numeric=2 <= i <= 4, whole=i < 2)
                for i, heading in enumerate(text.tensor_headings())
            ],
            tensors,
            foot=total,
            caption=message("memory.activations.caption"),
        )
