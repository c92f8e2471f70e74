"""Fields of what is trained, and in which precision."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.fields import CATALOG, Field, choice, optional, quantity, switch
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

_NAMED = [*(policy.short for policy in POLICIES.values()), message("training.field.custom")]
POLICY = choice("prec", CATALOG, [*POLICIES, OWN_POLICY], USUAL_POLICY, short=_NAMED, part=STATES)

_USUAL = OwnPolicy()


def _stored_type(id: str, default: str, options: Sequence[str] = CHOICES) -> Field:
    return choice(id, CATALOG, options, default, few=True, part=STATES)


_OR_ABSENT = (ABSENT, *CHOICES)

OWN_FIELDS: Mapping[str, Field] = {
    "weights": _stored_type("pw", _USUAL.weights),
    "master": _stored_type("pm", _USUAL.master, _OR_ABSENT),
    "gradients": _stored_type("pg", _USUAL.gradients),
    "accumulation": _stored_type("pa", _USUAL.accumulation, _OR_ABSENT),
    "gradient_copy": _stored_type("pc", _USUAL.gradient_copy, _OR_ABSENT),
    **{f"states {i}": _stored_type(f"ps{i + 1}", _USUAL.states[i], STATE_CHOICES) for i in range(3)},
    "multiplies": _stored_type("px", _USUAL.multiplies),
    "activations": _stored_type("pv", _USUAL.activations),
}
"""What decides a type of a custom precision, as `core.training.policy_rows` names it, and its field."""


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


def _whole(id: str, default: str, most: str) -> Field:
    return quantity(id, CATALOG, default, "count", low=1, high=limit(most), whole=True, part=TRAINED_PART)


METHOD = choice("ft", CATALOG, METHODS, EVERYTHING.method, part=TRAINED_PART)
RANK = _whole("rank", "16", "model_dimension")
ALPHA = quantity("alpha", CATALOG, "32", "number", low=0.01, high=1e6, part=TRAINED_PART)
TARGET = Field("target", CATALOG, "all-linear", _targets, part=TRAINED_PART, max_chars=160)
DORA = switch("dora", CATALOG, False, part=TRAINED_PART)
DROPOUT = switch("drop", CATALOG, False, part=TRAINED_PART)
HEAD = switch("fth", CATALOG, False, part=TRAINED_PART)
NORMS = switch("ftn", CATALOG, False, part=TRAINED_PART)
LAST = _whole("lastn", "2", "model_layers")
NAMES = Field("names", CATALOG, "", _names, part=TRAINED_PART, max_chars=limit("spec_chars"), omit_if_empty=True)
FROZEN_TYPE = choice("frozen", CATALOG, tuple(FROZEN), EVERYTHING.frozen, part=TRAINED_PART)
FROZEN_FP32 = switch("fwide", CATALOG, False, part=TRAINED_PART)
IN_BACKWARD = switch("inb", CATALOG, False, part=TRAINED_PART)
PAGED = switch("paged", CATALOG, False, part=TRAINED_PART)
ACTIVATION_OFFLOAD = switch("aoff", CATALOG, False, part=TRAINED_PART)
MEAN = optional("mean", CATALOG, _length, nothing=0.0, part=TRAINED_PART)
LONGEST = optional("longest", CATALOG, _length, nothing=0.0, part=TRAINED_PART)
DISPLAY = quantity("disp", CATALOG, "0 GB", "bytes", high=1e12, part=TRAINED_PART)

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
