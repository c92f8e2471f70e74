"""A precision policy of one's own, and any policy as the rows of an editor."""

from __future__ import annotations

from dataclasses import dataclass

from core.sources import OWN
from core.training.optimizers import Optimizer
from core.training.precision import STORAGE_TYPES, PrecisionPolicy, StorageType

CHOICES: tuple[str, ...] = ("fp32", "bf16", "fp16", "fp8")
"""Names of the types that weights, gradients, buffers and activations can have."""

STATE_CHOICES: tuple[str, ...] = (*CHOICES, "8-bit blocks", "4-bit blocks")
"""Names of the types that optimizer state can have."""


def _chosen(what: str, name: str, among: tuple[str, ...]) -> StorageType:
    if name not in among:
        raise ValueError(f"{what} cannot be kept in {name!r}; there are {', '.join(among)}")
    return STORAGE_TYPES[name]


def own_policy(
    *,
    weights: str = "bf16",
    master: str = "fp32",
    gradients: str = "bf16",
    accumulation: str = "",
    states: str = "fp32",
    activations: str = "",
) -> PrecisionPolicy:
    """A policy of named storage types; an empty name is no such copy, of activations what the weights have.

    Raises ``ValueError`` that names what there is where a type is unknown, or cannot be what it is asked to be.
    """
    kept = _chosen("weights", weights, CHOICES)
    copy = _chosen("master weights", master, CHOICES) if master else None
    words = [f"{weights} weights", f"{master} master" if master else "no master", f"{gradients} gradients"]
    words += [f"{accumulation} accumulation"] if accumulation else []
    words += [f"{states} states"] + ([f"{activations} activations"] if activations else [])
    return PrecisionPolicy(
        id=", ".join(words),
        weights=kept,
        gradients=_chosen("gradients", gradients, CHOICES),
        master=copy,
        states=_chosen("optimizer state", states, STATE_CHOICES),
        phrase=f"with {', '.join(words)}",
        note="A precision of one’s own.",
        sources=(OWN,),
        accumulation=_chosen("the accumulation buffer", accumulation, CHOICES) if accumulation else None,
        saved=_chosen("activations", activations, CHOICES) if activations else None,
    )


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One tensor class of a policy: its type and bytes per parameter, and why it is there. Activations have no bytes
    per parameter: NaN."""

    tensors: str
    type: str
    bytes: float
    why: str


def policy_rows(policy: PrecisionPolicy, optimizer: Optimizer) -> tuple[PolicyRow, ...]:
    """``policy`` as the rows of an editor, one for each tensor class that it keeps under ``optimizer``.

    The bytes add up to those of a large matrix, but for states of which it has not one element for each parameter:
    they depend on its shape and are NaN, as are those of activations.
    """
    rows = [PolicyRow("weights", policy.weights.name, policy.weights.bytes, "forward and backward read them")]
    if policy.master:
        why = "the optimizer updates this copy, so that small updates are not rounded away"
        rows.append(PolicyRow("master weights", policy.master.name, policy.master.bytes, why))
    why = "what backward leaves behind for the optimizer"
    rows.append(PolicyRow("gradients", policy.gradients.name, policy.gradients.bytes, why))
    if policy.accumulation:
        why = "gradients of micro-batches are added up here"
        rows.append(PolicyRow("gradient accumulation", policy.accumulation.name, policy.accumulation.bytes, why))
    if policy.gradient_copy:
        why = "the optimizer reads this precise copy"
        rows.append(PolicyRow("gradient copy", policy.gradient_copy.name, policy.gradient_copy.bytes, why))
    for state in optimizer.matrix:
        size, of = state.shown(policy)
        why = f"{optimizer.name} keeps it: {state.size} for an m × n matrix"
        each = size if of == "mn" else float("nan")
        rows.append(PolicyRow(f"state: {state.name}", state.each(policy).name, each, why))
    why = "what forward saves for backward; it grows with the batch, not with the parameters"
    return (*rows, PolicyRow("activations", policy.activations.name, float("nan"), why))
