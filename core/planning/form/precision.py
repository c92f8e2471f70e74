"""The precision of the model states as fields: one that is named, or one's own, type by type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.fields import Field, choice
from core.limits import cached
from core.planning.plan import OWN_POLICY
from core.training.custom_policy import ABSENT, CHOICES, STATE_CHOICES, OwnPolicy, own_like
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, USUAL_POLICY, find_policy

STATES = "states"
"""The part of the form."""

POLICY = choice(
    "prec",
    "Precision of the model states",
    [*POLICIES, OWN_POLICY],
    USUAL_POLICY,
    short=[*(policy.short for policy in POLICIES.values()), OWN_POLICY],
    part=STATES,
    help="The number format in which parameters, gradients, master weights and optimizer state are kept between steps. "
    "An fp32 master copy keeps the updates that bf16 would round away. **own**: a type for each of them, beginning "
    "with those of the precision chosen before.",
)

_USUAL = OwnPolicy()


def _stored_type(id: str, label: str, default: str, *, absent: bool = False) -> Field:
    return choice(id, label, (*((ABSENT,) if absent else ()), *CHOICES), default, few=True, part=STATES)


def _state(id: str, label: str, place: int) -> Field:
    return choice(id, label, STATE_CHOICES, _USUAL.states[place], few=True, part=STATES)


OWN_FIELDS: Mapping[str, Field] = {
    "weights": _stored_type("pw", "Compute weights", _USUAL.weights),
    "master": _stored_type("pm", "Master weights", _USUAL.master, absent=True),
    "gradients": _stored_type("pg", "Gradients", _USUAL.gradients),
    "accumulation": _stored_type("pa", "Gradient accumulation", _USUAL.accumulation, absent=True),
    "gradient_copy": _stored_type("pc", "Gradient copy", _USUAL.gradient_copy, absent=True),
    "states 0": _state("ps1", "First state", 0),
    "states 1": _state("ps2", "Second state", 1),
    "states 2": _state("ps3", "Further states", 2),
    "multiplies": _stored_type("px", "Matrix products", _USUAL.multiplies),
    "activations": _stored_type("pv", "Activations", _USUAL.activations),
}
"""What decides a type of one's own policy, as `core.training.policy_rows` names it, and its field."""


def own_of(values: Mapping[str, Any]) -> OwnPolicy:
    """The types of one's own that the values of a form describe; the usual ones where a named precision is chosen."""
    if values[POLICY.id] != OWN_POLICY:
        return _USUAL
    chosen = {name: values[field.id] for name, field in OWN_FIELDS.items()}
    states = (chosen.pop("states 0"), chosen.pop("states 1"), chosen.pop("states 2"))
    return OwnPolicy(**chosen, states=states)


def derived_texts(values: Mapping[str, Any]) -> Mapping[str, str]:
    """The texts of the types where a named precision decides them, so that one's own begins with them."""
    return {} if values[POLICY.id] == OWN_POLICY else _texts(values[POLICY.id], values["opt"])


@cached("small_results_kept")
def _texts(policy: str, optimizer: str) -> Mapping[str, str]:
    own = own_like(find_policy(policy), find_optimizer(optimizer))
    states = {f"states {i}": state for i, state in enumerate(own.states)}
    return {field.id: states[name] if name in states else getattr(own, name) for name, field in OWN_FIELDS.items()}
