"""Parallel plan, its questions: model, cluster and batch; folded, what layouts keep to, states, and an own layout."""

from __future__ import annotations

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
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.rates import draw_rates, rates_note
from pages.common.shape import fields_of, own_shape, stack
from pages.parallel.form import LOOK

_FIRST = (MODEL_NAME, PARAMETERS, ACCELERATOR, (COUNT, TRAINED), SEQ_LEN, BATCH, TRAINING_SOFTWARE, NETWORK)
_KEPT = ((KEEP_TENSOR, KEEP_PIPELINE), (KEEP_CONTEXT, KEEP_EXPERT), (KEEP_INTERLEAVE, KEEP_MICRO_BATCH))
_CHOSEN = (KEEP_ZERO, KEEP_RECOMPUTE, IN_NODE, MAY_OFFLOAD)
_STATES = (OPTIMIZER, POLICY, DTYPE, (PRICE, WITHIN))
_LAYOUT = ((TENSOR, PIPELINE), (CONTEXT, EXPERT), (MICRO_BATCH, INTERLEAVE), ZERO, RECOMPUTE, SHARD_GROUP)
_OTHERS = (SEQUENCE_PARALLEL, OFFLOAD)


def draw(inputs: Inputs, plan: Plan) -> None:
    """Every field of the question."""
    stack(inputs, _FIRST, plan)
    if plan.model == OWN:
        own_shape(inputs)
    rates_note(inputs, plan)
    inputs.draw(AIM)
    inputs.draw(LOOK)
    title = "Keep to: degrees, ZeRO, recomputation, nodes, offload"
    with show.more(inputs, title, *fields_of(_KEPT), *_CHOSEN, key="fold_kept") as kept:
        if kept.open:
            stack(inputs, (*_KEPT, *_CHOSEN), plan)
    title = "More: optimizer, precision, price, deadline, measured rates"
    with show.more(inputs, title, *fields_of(_STATES), *MEASURED_FIELDS, key="fold_states") as states:
        if states.open:
            stack(inputs, _STATES, plan)
            draw_rates(inputs)
    with show.more(inputs, "Own layout", *fields_of(_LAYOUT), *_OTHERS, key="fold_layout") as layout:
        if layout.open:
            stack(inputs, (*_LAYOUT, *_OTHERS), plan)
    show.input_errors(inputs)
