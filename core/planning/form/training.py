"""Fields of what is trained, and in which precision."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.fields import Field, choice, optional, quantity, switch
from core.limits import cached, limit
from core.messages import message
from core.number_text import QuantityError
from core.planning.plan import OWN_POLICY
from core.quantities import parse_quantity
from core.suggest import suggestions
from core.training.custom_policy import ABSENT, CHOICES, STATE_CHOICES, OwnPolicy, own_like
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, USUAL_POLICY, find_policy
from core.training.trained import EVERYTHING, FROZEN, METHODS, TARGETS, Trained

STATES = "states"
"""The part of the form."""

POLICY = choice(
    "prec",
    message("training.field.policy"),
    [*POLICIES, OWN_POLICY],
    USUAL_POLICY,
    short=[*(policy.short for policy in POLICIES.values()), message("training.field.custom")],
    part=STATES,
    help=message("training.field.policy_help"),
)

_USUAL = OwnPolicy()


def _stored_type(id: str, label: str, default: str, *, absent: bool = False) -> Field:
    return choice(id, label, (*((ABSENT,) if absent else ()), *CHOICES), default, few=True, part=STATES)


def _state(id: str, label: str, place: int) -> Field:
    return choice(id, label, STATE_CHOICES, _USUAL.states[place], few=True, part=STATES)


OWN_FIELDS: Mapping[str, Field] = {
    "weights": _stored_type("pw", message("training.field.weights"), _USUAL.weights),
    "master": _stored_type("pm", message("training.policy.master"), _USUAL.master, absent=True),
    "gradients": _stored_type("pg", message("training.policy.gradients"), _USUAL.gradients),
    "accumulation": _stored_type("pa", message("training.policy.accumulation"), _USUAL.accumulation, absent=True),
    "gradient_copy": _stored_type("pc", message("training.policy.gradient_copy"), _USUAL.gradient_copy, absent=True),
    "states 0": _state("ps1", message("training.field.first_state"), 0),
    "states 1": _state("ps2", message("training.field.second_state"), 1),
    "states 2": _state("ps3", message("training.field.further_states"), 2),
    "multiplies": _stored_type("px", message("training.policy.multiplies"), _USUAL.multiplies),
    "activations": _stored_type("pv", message("training.policy.activations"), _USUAL.activations),
}
"""What decides a type of one's own policy, as `core.training.policy_rows` names it, and its field."""


def own_of(values: Mapping[str, Any]) -> OwnPolicy:
    """Return the custom precision that the form's values describe; the default one if a named precision is selected."""
    if values[POLICY.id] != OWN_POLICY:
        return _USUAL
    chosen = {name: values[field.id] for name, field in OWN_FIELDS.items()}
    states = (chosen.pop("states 0"), chosen.pop("states 1"), chosen.pop("states 2"))
    return OwnPolicy(**chosen, states=states)


def derived_texts(values: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the texts of the dtypes that a named precision implies, from which a custom precision starts."""
    return {} if values[POLICY.id] == OWN_POLICY else _texts(values[POLICY.id], values["opt"])


@cached("small_results_kept")
def _texts(policy: str, optimizer: str) -> Mapping[str, str]:
    own = own_like(find_policy(policy), find_optimizer(optimizer))
    states = {f"states {i}": state for i, state in enumerate(own.states)}
    return {field.id: states[name] if name in states else getattr(own, name) for name, field in OWN_FIELDS.items()}


TRAINED_PART = "trained"
"""The part of the form."""


def _targets(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.lower() for name in re.split(r"[\s,+]+", text.strip()) if name))
    for name in names or ("",):
        if name not in TARGETS:
            near = suggestions(name, TARGETS) or TARGETS[:3]
            raise QuantityError(message("training.error.target", name=name, near=near))
    return names


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.split(r"[\s,]+", text.strip()))) if text.strip() else ()


def _length(text: str) -> float:
    return parse_quantity(text, "length", low=1, high=limit("model_dimension"), whole=True, example="300")


METHOD = choice(
    "ft",
    message("training.field.method"),
    METHODS,
    EVERYTHING.method,
    part=TRAINED_PART,
    help=message("training.field.method_help"),
)
RANK = quantity(
    "rank",
    message("training.field.rank"),
    "16",
    "count",
    low=1,
    high=limit("model_dimension"),
    whole=True,
    part=TRAINED_PART,
    help=message("training.field.rank_help"),
)
ALPHA = quantity(
    "alpha",
    message("training.field.alpha"),
    "32",
    "number",
    low=0.01,
    high=1e6,
    part=TRAINED_PART,
    help=message("training.field.alpha_help"),
)
TARGET = Field(
    "target",
    message("training.field.target"),
    "all-linear",
    _targets,
    part=TRAINED_PART,
    max_chars=160,
    help=message("training.field.target_help"),
)
DORA = switch(
    "dora", message("training.field.dora"), False, part=TRAINED_PART, help=message("training.field.dora_help")
)
DROPOUT = switch(
    "drop",
    message("training.field.dropout"),
    False,
    part=TRAINED_PART,
    help=message("training.field.dropout_help"),
)
HEAD = switch("fth", message("training.field.head"), False, part=TRAINED_PART)
NORMS = switch("ftn", message("training.field.norms"), False, part=TRAINED_PART)
LAST = quantity(
    "lastn",
    message("training.field.last"),
    "2",
    "count",
    low=1,
    high=limit("model_layers"),
    whole=True,
    part=TRAINED_PART,
)
NAMES = Field(
    "names",
    message("training.field.names"),
    "",
    _names,
    part=TRAINED_PART,
    placeholder="layers.31.mlp.down_proj",
    max_chars=limit("spec_chars"),
    omit_if_empty=True,
    help=message("training.field.names_help"),
)
FROZEN_TYPE = choice(
    "frozen",
    message("training.field.frozen"),
    tuple(FROZEN),
    EVERYTHING.frozen,
    part=TRAINED_PART,
    help=message("training.field.frozen_help"),
)
FROZEN_FP32 = switch(
    "fwide",
    message("training.field.frozen_fp32"),
    False,
    part=TRAINED_PART,
    help=message("training.field.frozen_fp32_help"),
)
IN_BACKWARD = switch(
    "inb",
    message("training.field.in_backward"),
    False,
    part=TRAINED_PART,
    help=message("training.field.in_backward_help"),
)
PAGED = switch(
    "paged",
    message("training.field.paged"),
    False,
    part=TRAINED_PART,
    help=message("training.field.paged_help"),
)
ACTIVATION_OFFLOAD = switch(
    "aoff",
    message("training.field.offload"),
    False,
    part=TRAINED_PART,
    help=message("training.field.offload_help"),
)
MEAN = optional(
    "mean",
    message("training.field.mean"),
    _length,
    nothing=0.0,
    placeholder=message("training.placeholder.packed"),
    part=TRAINED_PART,
    help=message("training.field.mean_help", lengths=message("quantity.lengths")),
)
LONGEST = optional(
    "longest",
    message("training.field.longest"),
    _length,
    nothing=0.0,
    placeholder=message("training.placeholder.length"),
    part=TRAINED_PART,
    help=message("training.field.longest_help", lengths=message("quantity.lengths")),
)
DISPLAY = quantity(
    "disp",
    message("training.field.display"),
    "0 GB",
    "bytes",
    high=1e12,
    part=TRAINED_PART,
    help=message("training.field.display_help"),
)

TRAINED_FIELDS: tuple[Field, ...] = (
    METHOD,
    RANK,
    ALPHA,
    TARGET,
    DORA,
    DROPOUT,
    HEAD,
    NORMS,
    LAST,
    NAMES,
    FROZEN_TYPE,
    FROZEN_FP32,
    IN_BACKWARD,
    PAGED,
    ACTIVATION_OFFLOAD,
    MEAN,
    LONGEST,
    DISPLAY,
)
"""All of them, in the order in which a link spells them."""

OF_METHOD: Mapping[str, tuple[Field, ...]] = {
    "everything": (),
    "adapters": (RANK, ALPHA, TARGET, DORA, DROPOUT, HEAD, NORMS, FROZEN_TYPE, FROZEN_FP32),
    "last layers": (HEAD, NORMS, LAST, FROZEN_TYPE, FROZEN_FP32),
    "named tensors": (NAMES, FROZEN_TYPE, FROZEN_FP32),
}
"""The fields that only some methods have, and which."""


def not_of(method: str) -> frozenset[str]:
    """Return the ids of the fields that a method of training has no use for."""
    own = {field.id for field in OF_METHOD[method]}
    return frozenset(field.id for fields in OF_METHOD.values() for field in fields if field.id not in own)


def trained_of(values: Mapping[str, Any]) -> Trained:
    """Return what is trained, of the values of a form."""
    return Trained(
        method=values[METHOD.id],
        rank=int(values[RANK.id]),
        alpha=values[ALPHA.id],
        targets=values[TARGET.id],
        dora=values[DORA.id],
        dropout=values[DROPOUT.id],
        head=values[HEAD.id],
        norms=values[NORMS.id],
        last=int(values[LAST.id]),
        names=values[NAMES.id],
        frozen=values[FROZEN_TYPE.id],
        frozen_fp32=values[FROZEN_FP32.id],
    )
