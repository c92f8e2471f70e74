"""Parallel plan, its question: what every layout keeps to."""

from __future__ import annotations

import streamlit as st

from core.planning.form.layout import (
    IN_NODE,
    KEEP_CONTEXT,
    KEEP_EXPERT,
    KEEP_EXPERT_TENSOR,
    KEEP_INTERLEAVE,
    KEEP_MICRO_BATCH,
    KEEP_PIPELINE,
    KEEP_RECOMPUTE,
    KEEP_TENSOR,
    KEEP_ZERO,
    MAY_OFFLOAD,
)
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs

_KEPT = (
    (KEEP_TENSOR, KEEP_PIPELINE),
    (KEEP_CONTEXT, KEEP_INTERLEAVE),
    (KEEP_EXPERT, KEEP_EXPERT_TENSOR),
    (KEEP_MICRO_BATCH,),
)
_CHOSEN = (KEEP_ZERO, KEEP_RECOMPUTE, IN_NODE, MAY_OFFLOAD)


def draw_question(inputs: Inputs) -> None:
    """Every field of the question."""
    with plan_sidebar.question(), show.popover("Keep to", key="plan:kept") as kept:
        if kept.open:
            for pair in _KEPT:
                with st.container(horizontal=True):
                    for field in pair:
                        inputs.draw(field)
            for field in _CHOSEN:
                inputs.draw(field)
