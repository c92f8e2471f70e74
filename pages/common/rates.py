"""Rates that a plan carries: what they are, beside the accelerator, and the way back to the datasheet’s."""

from __future__ import annotations

import streamlit as st

from core.benchmark import device
from core.planning.form.rates import MEASURED_FIELDS
from core.planning.plan import Plan
from core.planning.rates import is_here, rates_origin
from core.views.plan import text_rates
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import MEASURE


def rates_note(inputs: Inputs, plan: Plan) -> None:
    """The plan's rates in a line, those that are not used with the reason; nothing where it has none."""
    origin = rates_origin(plan)
    if origin == "none":
        return

    def clear() -> None:
        for field in MEASURED_FIELDS:
            inputs.put(field.id, "")

    left, back = st.columns([3.5, 1], vertical_alignment="center")
    with left:
        (show.error if origin == "other" else show.note)(text_rates.rates_sentence(plan))
    with back:
        st.button("Use the datasheet again", key=inputs.key("datasheet"), type="tertiary", on_click=clear)


def measure_here(plan: Plan) -> None:
    """The way to measure the plan's accelerator, where this machine has one."""
    here = device.machine()
    if here.kind == "cuda" and is_here(plan.accelerator, here.gpus[0]):
        show.onwards("Measure on this GPU", MEASURE, {})
