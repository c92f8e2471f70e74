"""Training memory, its questions: model, cluster and batch, then optimizer and layout, and the rest under More."""

from __future__ import annotations

import streamlit as st

from core.planning.form.layout import (
    CHUNKS,
    CONTEXT,
    EXPERT,
    IMPLEMENTATION,
    INTERLEAVE,
    LOSS,
    MICRO_BATCH,
    MICRO_BATCHES,
    OFFLOAD,
    OVERHEAD,
    PIPELINE,
    RECOMPUTE,
    SEQUENCE_PARALLEL,
    SHARD_GROUP,
    SLACK,
    TENSOR,
    ZERO,
)
from core.planning.form.plan_form import ACCELERATOR, COUNT, MODEL_NAME, OPTIMIZER, PARAMETERS, POLICY, SEQ_LEN
from core.planning.plan import OWN, Plan
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.shape import own_shape, row

_FIRST = (MODEL_NAME, PARAMETERS, ACCELERATOR, COUNT, SEQ_LEN, MICRO_BATCH)
_STATES = (OPTIMIZER, POLICY, ZERO, RECOMPUTE)
_DEGREES = (TENSOR, PIPELINE, CONTEXT, EXPERT)
_MORE = (MICRO_BATCHES, INTERLEAVE, SHARD_GROUP, SEQUENCE_PARALLEL, OFFLOAD)
_COMPUTED = (IMPLEMENTATION, LOSS, CHUNKS, OVERHEAD, SLACK)


def draw(inputs: Inputs, plan: Plan, data: str) -> None:
    """Every field of the question. data: the data-parallel degree that is left, in words."""
    row(inputs, [1.55, 1.0, 1.5, 0.9, 1.25, 1.05], _FIRST, plan)
    if plan.model == OWN:
        own_shape(inputs)
    row(inputs, [0.95, 2.45, 1.25, 1.55], _STATES, plan)
    cells = st.columns([1, 1, 1, 1, 2.2])
    for cell, field in zip(cells, _DEGREES, strict=False):
        with cell:
            inputs.draw(field, label=f"{field.label} parallel")
    with cells[-1]:
        inputs.parsed_value(ZERO, "Data parallel, what is left", data)
    title = "More: micro-batches a step, interleaving, sharding group, offload, kernels, loss, runtime"
    with show.more(inputs, title, *_MORE, *_COMPUTED, key="fold") as more:
        if more.open:
            row(inputs, [1.2, 1, 1, 1.1, 1.1], _MORE, plan)
            row(inputs, [1.6, 1.3, 1, 1, 1], _COMPUTED, plan)
    show.input_errors(inputs)
