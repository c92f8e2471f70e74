"""Compute budget, what moves the answer: the tornado over each input's range."""

from __future__ import annotations

import streamlit as st

from core.planning.estimate import PlanEstimate
from core.planning.sensitivity import plan_as_answered, swings
from core.views.sensitivity.charts import tornado
from core.views.sensitivity.text import moved, moved_alt, named, unrented
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.compute.form import MOVED, SWING


def sensitivity_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """Draw the result over the range of each input."""
    head = show.slot()
    with st.container(horizontal=True):
        inputs.draw(MOVED)
        inputs.draw(SWING)
    dollars = inputs.reading.values[MOVED.id] == "dollars"
    if dollars and (instead := unrented(a)):
        show.note(instead)
        dollars = False
    plan = plan_as_answered(a)
    labels = named(swings(plan, inputs.reading.values[SWING.id] / 100), dollars=dollars)
    text = moved(labels, dollars=dollars)
    with head:
        show.takeaway(text)
    if labels:
        show.chart(
            tornado(labels, a.middle.dollars if dollars else a.middle.days, dollars, TOKENS),
            alt=plain(moved_alt(text)),
            key="compute:tornado",
        )
