"""Compute budget: the roofline of one layer on the chosen accelerator."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from core.hardware.cluster import Rates
from core.messages import message
from core.planning.estimate import PlanEstimate
from core.planning.measured import rates_of
from core.step_time.layer_roofline import (
    ELEMENT_BYTES,
    LayerOperation,
    layer_roofline,
    peaks_of,
    wide_dtype,
)
from core.views.roofline import text
from core.views.roofline.charts import roofline
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.compute.form import FUSED, MICRO_BATCH

_TRAIL = np.exp2(np.arange(16, dtype=np.float64))
_TRAILED = ("up", "experts_up", "shared_up", "other")


def layer_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """Draw the roofline of one layer."""
    device, spec, dtype, seq_len = a.device, a.shape.spec, a.dtype, a.plan.seq_len
    head = show.slot()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        inputs.draw(MICRO_BATCH)
        inputs.draw(FUSED)
    tokens, fused = 2 ** inputs.reading.values[MICRO_BATCH.id], inputs.reading.values[FUSED.id]
    rates = rates_of(a.plan)
    bandwidth = (rates or Rates()).of("memory", device.bandwidth)
    if dtype not in ELEMENT_BYTES or not bandwidth > 0:
        show.note(message("roofline.unknown", dtype=dtype, device=device.name))
        return
    layer = partial(layer_roofline, spec, device, dtype=dtype, seq_len=seq_len, rates=rates)
    either = {way: layer(tokens=float(tokens), fused_attention=way) for way in (True, False)}
    operations = either[fused]
    trail = next(o for o in layer(tokens=_TRAIL) if o.row in _TRAILED and o.phase == "forward")
    takeaways = text.layer_text(operations, text.device_name(device.name, a.plan), tokens)
    with head:
        show.takeaway(" ".join(takeaways))
    operations_shown: list[LayerOperation] = [o for o in operations if o.phase != "backward" and o.row != "head_update"]
    wide = wide_dtype(device, dtype)
    peaks = peaks_of(device, dtype, rates)
    vector = device.peak("fp32")
    show.chart(
        roofline(
            operations_shown,
            trail,
            _TRAIL,
            peaks,
            vector if vector > 0 else peaks[wide],
            bandwidth,
            TOKENS,
            (peaks_of(device, dtype), device.bandwidth) if rates else None,
        ),
        alt=text.chart_alt(device.name, takeaways[0]),
        key="compute:roofline",
    )
    show.note(message("roofline.caption_measured" if rates else "roofline.caption"))
    if divided := text.below_16bit(dtype, wide, mixture=spec.experts is not None):
        show.note(divided)
        show.source(text.LOW_PRECISION_SOURCE)
    headings, rows = text.operation_table(operations)
    show.small_table(
        [show.Column(heading, numeric=i not in (0, 4)) for i, heading in enumerate(headings)],
        rows,
        caption=message("roofline.table.caption", model=a.shape.name, layers=float(spec.layers)),
    )
    show.note(text.fused_text(either[True], either[False]))
    show.how(
        lambda: [step for o in operations if o.row in (*_TRAILED, "norms") for step in o.explanations],
        key="compute:roof:how",
        notes=text.method_notes(),
    )
