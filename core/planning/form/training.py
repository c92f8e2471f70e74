"""Fields of what is trained, and in which precision."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.fields import Field, choice, optional, quantity, switch
from core.limits import cached, limit
from core.planning.plan import OWN_POLICY
from core.suggest import suggestions
from core.training.custom_policy import ABSENT, CHOICES, STATE_CHOICES, OwnPolicy, own_like
from core.training.optimizers import find_optimizer
from core.training.precision import POLICIES, USUAL_POLICY, find_policy
from core.training.trained import EVERYTHING, FROZEN, METHODS, TARGETS, Trained
from core.units import LENGTHS, QuantityError, parse_quantity

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


TRAINED_PART = "trained"
"""The part of the form."""


def _targets(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.lower() for name in re.split(r"[\s,+]+", text.strip()) if name))
    for name in names or ("",):
        if name not in TARGETS:
            near = suggestions(name, TARGETS) or TARGETS[:3]
            raise QuantityError(f"“{name}” is no target module. Near it: {', '.join(near)}. Such as q_proj v_proj.")
    return names


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.split(r"[\s,]+", text.strip()))) if text.strip() else ()


def _length(text: str) -> float:
    return parse_quantity(text, "length", low=1, high=limit("model_dimension"), whole=True, example="300")


METHOD = choice(
    "ft",
    "Trained",
    METHODS,
    EVERYTHING.method,
    part=TRAINED_PART,
    help="**everything**: pre-training, full fine-tuning. **adapters**: two small matrices beside each target (LoRA; "
    "QLoRA with frozen weights in nf4). **last layers**: those at the top. **named tensors**: those of a pattern. "
    "Only what is trained has gradients and optimizer state, in the types of the precision.",
)
RANK = quantity(
    "rank",
    "Rank",
    "16",
    "count",
    low=1,
    high=limit("model_dimension"),
    whole=True,
    part=TRAINED_PART,
    help="r of LoRA.",
)
ALPHA = quantity(
    "alpha",
    "Alpha",
    "32",
    "number",
    low=0.01,
    high=1e6,
    part=TRAINED_PART,
    help="Updates are scaled by alpha over rank. It changes no byte.",
)
TARGET = Field(
    "target",
    "Target modules",
    "all-linear",
    _targets,
    part=TRAINED_PART,
    max_chars=160,
    help="all-linear, attention, mlp, or modules by name: q_proj k_proj v_proj o_proj gate_proj up_proj down_proj; "
    "lm_head for the head.",
)
DORA = switch("dora", "DoRA", False, part=TRAINED_PART, help="A learned magnitude for each output beside the adapters.")
DROPOUT = switch(
    "drop",
    "Adapter dropout",
    False,
    part=TRAINED_PART,
    help="Keeps a mask and a copy of each adapter’s input, whatever its rate; launch settings name 0.05.",
)
HEAD = switch("fth", "Embedding and head too", False, part=TRAINED_PART)
NORMS = switch("ftn", "Norms and biases too", False, part=TRAINED_PART)
LAST = quantity("lastn", "Last layers", "2", "count", low=1, high=limit("model_layers"), whole=True, part=TRAINED_PART)
NAMES = Field(
    "names",
    "Names of tensors",
    "",
    _names,
    part=TRAINED_PART,
    placeholder="layers.31.mlp.down_proj",
    max_chars=limit("spec_chars"),
    omit_if_empty=True,
    help="Patterns with * over names such as layers.31.mlp.down_proj, or parts of names: norm, v_proj, embed_tokens.",
)
FROZEN_TYPE = choice(
    "frozen",
    "Frozen weights in",
    tuple(FROZEN),
    EVERYTHING.frozen,
    part=TRAINED_PART,
    help="How what is not trained is stored. **nf4**: 4 bits, blocks of 64 with an fp32 scale; **double**: scales in 8 "
    "bits. **int8**: a scale for each output. **fp8**: a scale for each block of 128 × 128. Embedding, head and norms "
    "stay in bf16, and products read one matrix at a time in bf16.",
)
FROZEN_FP32 = switch(
    "fwide",
    "Frozen norms, embedding, head in fp32",
    False,
    part=TRAINED_PART,
    help="As prepare_model_for_kbit_training of PEFT casts them: the residual stream is in fp32 then.",
)
IN_BACKWARD = switch(
    "inb",
    "Optimizer step in backward",
    False,
    part=TRAINED_PART,
    help="Each tensor is updated as soon as its gradient is there, which then goes. Needs one micro-batch a step.",
)
PAGED = switch(
    "paged",
    "Paged optimizer",
    False,
    part=TRAINED_PART,
    help="Optimizer state in memory that moves to the host when the accelerator’s is full.",
)
ACTIVATION_OFFLOAD = switch(
    "aoff",
    "Offload activations",
    False,
    part=TRAINED_PART,
    help="What layers keep for backward waits in the host’s memory.",
)
MEAN = optional(
    "mean",
    "Mean length of an example",
    _length,
    nothing=0.0,
    placeholder="packed",
    part=TRAINED_PART,
    help=f"{LENGTHS} Empty: examples are packed to the sequence length. Memory is that of the longest, time that of "
    "the mean, without padding.",
)
LONGEST = optional(
    "longest",
    "Longest example",
    _length,
    nothing=0.0,
    placeholder="sequence length",
    part=TRAINED_PART,
    help=f"{LENGTHS} Memory is fullest at the longest batch: a limit of 4,096 over examples of up to 900 is 900.",
)
DISPLAY = quantity(
    "disp",
    "Taken by the display",
    "0 GB",
    "bytes",
    high=1e12,
    part=TRAINED_PART,
    help="A desktop on the same card takes about 0.5 to 1.5 GB.",
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
    """The ids of the fields that a method of training has no use for."""
    own = {field.id for field in OF_METHOD[method]}
    return frozenset(field.id for fields in OF_METHOD.values() for field in fields if field.id not in own)


def trained_of(values: Mapping[str, Any]) -> Trained:
    """What is trained, of the values of a form."""
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
