"""The precision of a plan as sentences and rows: what each class of tensors is kept in, and what that adds up to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.fields import Field
from core.planning.form.training import OWN_FIELDS
from core.planning.memory_estimate import MemoryEstimate
from core.training.custom_policy import policy_rows
from core.training.memory import states_per_parameter
from core.units import significant
from core.views.plan.text_memory import counted_parameter, gib, left
from core.views.training import text as training_text

WHY_SO_MANY = (
    "**Why 8, 12, 16, 18 or 20 bytes?** The same sum under Adam, which keeps two numbers. In bf16 throughout it is "
    "2 + 2 + 4 = **8**. With the two numbers in fp32, 2 + 2 + 8 = **12**; so much are fp32 master weights and Adam’s "
    "numbers alone, the part that ZeRO-1 shares. With fp32 master weights 2 + 2 + 4 + 8 = **16**, no less than fp32 "
    "throughout, 4 + 4 + 8. With fp32 gradients **18**, and with an fp32 buffer or copy beside 16-bit gradients **20**."
)


def adds_up(h: MemoryEstimate) -> str:
    """The sum of the bytes of one parameter: "2 parameters + 2 gradients + ... = 16 bytes"."""
    states = states_per_parameter(h.optimizer, h.policy, h.spec)
    held = h.states_each.total
    gone = "" if held == states.total else f", and **{significant(held)}** as the plan keeps them on accelerators"
    named = training_text.spelled(states, h.policy)
    return (
        f"**{named} = {significant(states.total)} bytes for each {counted_parameter(h)}** under {h.optimizer.name}, "
        f"before anything is shared{gone}; {gib(float(h.device_memory.states))} on each accelerator as it is laid out."
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """One class of tensors. field: what decides its type; None where the optimizer itself does, or one before does."""

    field: Field | None
    name: str
    bytes: str
    why: str


def kept(h: MemoryEstimate) -> list[Kept]:
    """Every class of tensors of a plan with its bytes per parameter, and why it is there."""
    seen: set[str] = set()
    kept_rows: list[Kept] = []
    for row in policy_rows(h.policy, h.optimizer):
        state = row.chosen.startswith("states") or not row.chosen
        field = None if row.chosen in seen else OWN_FIELDS.get(row.chosen)
        seen.add(row.chosen)
        name = f"Optimizer state `{row.tensors}`" if state else f"{row.tensors[0].upper()}{row.tensors[1:]}"
        fixed = f"{row.type}: " if field is None else ""
        size = "" if math.isnan(row.bytes) else f"{significant(row.bytes)} B"
        kept_rows.append(Kept(field, name, size, f"{fixed}{row.why}"))
    return kept_rows


def total(h: MemoryEstimate) -> tuple[str, str, str]:
    """The row under them: what it is, the sum, and of what."""
    states = states_per_parameter(h.optimizer, h.policy, h.spec)
    mean = "" if h.optimizer.uniform else ", the mean over the model’s tensors"
    return (
        f"Bytes for each {counted_parameter(h)}",
        f"**{significant(states.total)} B**",
        f"{training_text.summed(states)} under {h.optimizer.name}{mean}",
    )


def policy_row(h: MemoryEstimate) -> tuple[str, ...]:
    """The row of a plan's precision: its sum, what one accelerator holds, what is left, and what it is."""
    states = states_per_parameter(h.optimizer, h.policy, h.spec)
    return (
        h.policy.id,
        training_text.summed(states),
        significant(states.total),
        gib(h.total),
        left(h),
        h.policy.note,
    )
