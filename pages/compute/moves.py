"""Compute budget, what moves the answer: the tornado over each input's range, and the curves of equal days."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from core.planning.moves.figures import days_around, iso_days_figure, tornado
from core.planning.moves.sensitivity import iso_days
from core.planning.moves.words import assumed, moving, ordered, swings
from pages.compute.inputs import Asked
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS


def moves(inputs: Inputs, asked: Asked) -> None:
    """The panel's content."""
    head = show.slot()
    with st.container(horizontal=True):
        measure = inputs.choice("moved", "Answer", ["days", "dollars"], "days", segmented=True)
        share = inputs.slider("sway", "Tokens, parameters, accelerators: ± %", 5, 50, 20) / 100
    plan = asked.plan
    dollars = measure == "dollars"
    if dollars and math.isnan(plan.price_low):
        show.note(f"The price of {asked.device.name} is unknown: type one under More. These are days.")
        dollars = False
    typed = not asked.published and asked.outlook.find != "MFU"
    everything = swings(asked.outlook, asked.seen, asked.shape.spec, asked.seq_len, share, typed=typed)
    named = ordered(everything, dollars=dollars)
    with head:
        show.says(moving(everything, dollars=dollars))
    middle = assumed(asked.outlook)
    made = middle.solve()
    show.chart(
        tornado(named, float(made.dollars if dollars else made.days), dollars, TOKENS),
        alt=f"Tornado of {measure}. {moving(everything, dollars=dollars).replace('**', '')}",
        key="compute:tornado",
    )
    curves = iso_days(middle, days_around(float(made.days)), np.geomspace(plan.tokens / 30, plan.tokens * 30, 25))
    show.says(
        "**Equal days:** twice the tokens take twice the accelerators for the same time, if the MFU holds as they grow "
        "in number. Published runs lose some of it beyond a few thousand."
    )
    show.chart(
        iso_days_figure(curves, plan.tokens, plan.accelerators, TOKENS),
        alt="Accelerators against tokens, one straight line for each number of days, the plan among them.",
        key="compute:iso",
    )
    show.how(lambda: made.explanations, key="compute:moves:how")
