"""Parallel plan, its questions: model, cluster and batch; folded, what layouts keep to, states, and an own layout."""

from __future__ import annotations

import streamlit as st

from core.planning.form.layout import (
    CONTEXT,
    EXPERT,
    INTERLEAVE,
    MICRO_BATCH,
    OFFLOAD,
    PIPELINE,
    RECOMPUTE,
    SEQUENCE_PARALLEL,
    SHARD_GROUP,
    TENSOR,
    TRAINING_SOFTWARE,
    ZERO,
)
from core.planning.form.plan_form import (
    ACCELERATOR,
    COUNT,
    DTYPE,
    MODEL_NAME,
    OPTIMIZER,
    PARAMETERS,
    POLICY,
    PRICE,
    SEQ_LEN,
    TRAINED,
    WITHIN,
)
from core.planning.form.rates import MEASURED_FIELDS
from core.planning.form.search import (
    AIM,
    BATCH,
    IN_NODE,
    KEEP_CONTEXT,
    KEEP_EXPERT,
    KEEP_INTERLEAVE,
    KEEP_MICRO_BATCH,
    KEEP_PIPELINE,
    KEEP_RECOMPUTE,
    KEEP_TENSOR,
    KEEP_ZERO,
    MAY_OFFLOAD,
    NETWORK,
)
from core.planning.plan import OWN, Plan
from core.views.plan.text_rates import usual_network
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.rates import draw_rates, rates_note
from pages.common.shape import own_shape, row
from pages.parallel.form import LOOK

_FIRST = (MODEL_NAME, PARAMETERS, ACCELERATOR, COUNT, SEQ_LEN, BATCH, TRAINED)
_KEPT = (KEEP_TENSOR, KEEP_PIPELINE, KEEP_CONTEXT, KEEP_EXPERT, KEEP_INTERLEAVE, KEEP_MICRO_BATCH)
_CHOSEN = (KEEP_ZERO, KEEP_RECOMPUTE, IN_NODE, MAY_OFFLOAD)
_STATES = (OPTIMIZER, POLICY, DTYPE, PRICE, WITHIN)
_DEGREES = (TENSOR, PIPELINE, CONTEXT, EXPERT, MICRO_BATCH, INTERLEAVE)
_OTHERS = (ZERO, RECOMPUTE, SHARD_GROUP, SEQUENCE_PARALLEL, OFFLOAD)


def draw(inputs: Inputs, plan: Plan) -> None:
    """Every field of the question."""
    row(inputs, [1.7, 1.08, 1.62, 0.8, 0.95, 1.1, 0.8], _FIRST, plan)
    if plan.model == OWN:
        own_shape(inputs)
    rates_note(inputs, plan)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        inputs.draw(AIM)
        with st.container(width=230):
            inputs.draw(TRAINING_SOFTWARE)
        with st.container(width=140):
            inputs.draw(NETWORK, placeholder=usual_network(plan))
        inputs.draw(LOOK)
    title = "Keep to: degrees, ZeRO, recomputation, nodes, offload"
    with show.more(inputs, title, *_KEPT, *_CHOSEN, key="fold_kept") as kept:
        if kept.open:
            row(inputs, [1, 1, 1, 1, 1.2, 1], _KEPT, plan)
            row(inputs, [1.3, 2.2, 1.1, 1], _CHOSEN, plan)
    title = "More: optimizer, precision, price, deadline, measured rates"
    with show.more(inputs, title, *_STATES, *MEASURED_FIELDS, key="fold_states") as states:
        if states.open:
            row(inputs, [1, 1.9, 0.9, 0.9, 0.9], _STATES, plan)
            draw_rates(inputs)
    with show.more(inputs, "Own layout", *_DEGREES, *_OTHERS, key="fold_layout") as layout:
        if layout.open:
            row(inputs, [1, 1, 1, 1, 1, 1.2], _DEGREES, plan)
            row(inputs, [1.1, 2.2, 0.8, 1.1, 1.1], _OTHERS, plan)
    show.input_errors(inputs)
