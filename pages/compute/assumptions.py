"""Compute budget, what the answer rests on: parameters by component, and the accelerator's peak."""

from __future__ import annotations

import streamlit as st

from core.messages import message
from core.planning.estimate import PlanEstimate
from core.planning.plan import OWN_SHAPE
from core.views.common.rows import cited, known
from core.views.flops import text
from core.views.hardware import text as hardware_text
from pages.common import show
from pages.common.inputs import Inputs


def assumptions_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """Draw the parameters by component and the peaks of the accelerator, with their sources."""
    model, device = a.shape, a.device
    if a.stands_in:
        show.note(text.proxy_text(model))
    for notice in text.active_counts(model):
        show.note(notice)
    headings, rows = text.parameter_rows(model)
    show.small_table(headings, rows, caption=message("flops.parameters.caption", model=model.name))
    if not a.stands_in and a.plan.model != OWN_SHAPE:
        show.note(text.model_origin(model))
        show.source(cited(model.source, model.confidence))
    with st.container(key=inputs.key("peaks")):
        show.small_table(
            *hardware_text.peak_table(device),
            caption=message("flops.peaks.caption", device=device.name, known=known(device.confidence)),
            here=[name for name, _ in device.peaks].index(a.dtype),
        )
        for line in (*hardware_text.peak_origin(device, a.dtype), " ".join(hardware_text.datasheet(device))):
            show.note(line)
        show.source(device.source)
