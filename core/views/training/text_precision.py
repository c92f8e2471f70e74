"""The precision of a plan as sentences and rows: what each class of tensors is stored in, and what that adds up to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.fields import Field
from core.messages import Message, message, messages
from core.planning.form.training import OWN_FIELDS
from core.planning.memory_estimate import MemoryEstimate
from core.training.custom_policy import PolicyRow, policy_rows
from core.training.memory import StateBytes, states_per_parameter
from core.units import significant
from core.views.plan.memory_rows import parts_text
from core.views.plan.text_memory import gib
from core.views.training.text import headroom_cell


def unsharded(h: MemoryEstimate) -> StateBytes:
    """Return the bytes of model states per parameter before sharding, on accelerator and host."""
    return states_per_parameter(h.optimizer, h.policy, h.spec)


def adds_up(h: MemoryEstimate) -> Message:
    """Return the sum of the bytes of one parameter, and the model states on each accelerator."""
    states = unsharded(h)
    return message(
        "training.policy.takeaway" if h.plan.trained.everything else "training.policy.takeaway_trained",
        total=states.total,
        parts=parts_text(states, h.policy),
        optimizer=h.optimizer.name,
        states=float(h.device_memory.states),
    )


@dataclass(frozen=True, slots=True)
class PrecisionRow:
    """One class of tensors. field: what decides its type; None if the optimizer itself does, or one before does."""

    field: Field | None
    name: Message
    bytes: str
    why: Message


def precision_rows(h: MemoryEstimate) -> list[PrecisionRow]:
    """Return every class of tensors with its format, bytes per parameter, and purpose."""
    seen: set[str] = set()
    rows: list[PrecisionRow] = []
    for row in policy_rows(h.policy, h.optimizer):
        field = None if row.chosen in seen else OWN_FIELDS.get(row.chosen)
        seen.add(row.chosen)
        size = "" if math.isnan(row.bytes) else f"{significant(row.bytes)} B"
        why = _purpose(row)
        fixed = why if field else message("training.policy.fixed", type=row.type, why=why)
        rows.append(PrecisionRow(field, _name(row), size, fixed))
    return rows


def _name(row: PolicyRow) -> Message:
    return message("training.policy.state", state=row.state) if row.state else message(_CLASSES[row.chosen][0])


def _purpose(row: PolicyRow) -> Message:
    if not row.state:
        return message(_CLASSES[row.chosen][1])
    return message("training.policy.why_state", size=row.size) if row.size else message("training.policy.why_other")


_CLASSES = {
    "weights": ("training.policy.weights", "training.policy.why_weights"),
    "master": ("training.policy.master", "training.policy.why_master"),
    "gradients": ("training.policy.gradients", "training.policy.why_gradients"),
    "accumulation": ("training.policy.accumulation", "training.policy.why_accumulation"),
    "gradient_copy": ("training.policy.gradient_copy", "training.policy.why_gradient_copy"),
    "multiplies": ("training.policy.multiplies", "training.policy.why_multiplies"),
    "activations": ("training.policy.activations", "training.policy.why_activations"),
}
"""What decides a type → its name, and what it is for."""


def short_sum(states: StateBytes) -> Message:
    """Return ``4 + 4 + 0 + 8``: weights, gradients, master weights, optimizer state."""
    return message(
        "memory.parts.short",
        parameters=states.parameters,
        gradients=states.gradients,
        master=states.master,
        optimizer=states.optimizer,
    )


def total(h: MemoryEstimate) -> tuple[Message, str, Message]:
    """Return the last row of the precision table: the sum and its parts."""
    states = unsharded(h)
    parts = message(
        "training.policy.sum" if h.optimizer.uniform else "training.policy.sum_mean",
        parts=short_sum(states),
        optimizer=h.optimizer.name,
    )
    return message("training.policy.total"), f"**{significant(states.total)} B**", parts


def policy_headings() -> tuple[Message, ...]:
    """Return the headings of `policy_row`."""
    return (*messages("training.policy", "heading parts"), *messages("training.heading", "per_parameter peak free"))


def policy_row(h: MemoryEstimate) -> tuple[str, ...]:
    """Return the row of a plan's precision: its sum, what one accelerator needs, and what is free."""
    states = unsharded(h)
    size = significant(states.total)
    return h.policy.id, short_sum(states), size, gib(h.total), headroom_cell(h)
