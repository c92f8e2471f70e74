"""Training memory, its questions: model, cluster and batch, then optimizer and layout, and the rest under More."""

from __future__ import annotations

from collections.abc import Mapping

from core.fields import Field
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
from core.planning.form.plan_form import ACCELERATOR, COUNT, MODEL_NAME, OPTIMIZER, PARAMETERS, POLICY, SEQ_LEN, TRAINED
from core.planning.form.trained import (
    ACTIVATION_OFFLOAD,
    ALPHA,
    DISPLAY,
    DORA,
    DROPOUT,
    FROZEN_TYPE,
    HEAD,
    IN_BACKWARD,
    LAST,
    LONGEST,
    MEAN,
    METHOD,
    NAMES,
    NORMS,
    PAGED,
    RANK,
    TARGET,
    WIDE,
)
from core.planning.plan import OWN, Plan
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.shape import fields_of, own_shape, stack

_FIRST = (MODEL_NAME, PARAMETERS, ACCELERATOR, (COUNT, MICRO_BATCH), SEQ_LEN, METHOD)
_OF_METHOD: Mapping[str, tuple[Field | tuple[Field, ...], ...]] = {
    "everything": (),
    "adapters": ((RANK, TARGET), FROZEN_TYPE),
    "last layers": (LAST, FROZEN_TYPE),
    "named tensors": (NAMES, FROZEN_TYPE),
}
_STATES = (OPTIMIZER, POLICY)
_LAYOUT = (ZERO, RECOMPUTE, (TENSOR, PIPELINE), (CONTEXT, EXPERT))
_MORE = ((MICRO_BATCHES, INTERLEAVE), (SHARD_GROUP, SEQUENCE_PARALLEL), OFFLOAD)
_TUNING = (
    (ALPHA, DORA),
    (DROPOUT, NORMS),
    HEAD,
    WIDE,
    IN_BACKWARD,
    PAGED,
    ACTIVATION_OFFLOAD,
    (MEAN, LONGEST),
    TRAINED,
    DISPLAY,
)
_COMPUTED = (IMPLEMENTATION, LOSS, CHUNKS, (OVERHEAD, SLACK))


def draw(inputs: Inputs, plan: Plan, data: str) -> None:
    """Every field of the question. data: the data-parallel degree that is left, in words."""
    stack(inputs, (*_FIRST, *_OF_METHOD[plan.trained.method], *_STATES), plan)
    if plan.model == OWN:
        own_shape(inputs)
    stack(inputs, _LAYOUT, plan)
    inputs.parsed_value(ZERO, "Data parallel, what is left", data)
    title = "More: micro-batches a step, offload, fine-tuning, lengths of data, kernels, loss, runtime"
    with show.more(inputs, title, *fields_of(_MORE), *fields_of(_TUNING), *fields_of(_COMPUTED), key="fold") as more:
        if more.open:
            stack(inputs, (*_MORE, *_TUNING, *_COMPUTED), plan)
    show.input_errors(inputs)
