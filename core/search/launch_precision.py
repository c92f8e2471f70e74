"""The precision of a plan as settings of Megatron-LM, torchtitan and transformers, and what each keeps otherwise.

What is kept under which settings was read in the sources that the lines of each name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.training.custom_policy import ABSENT, OwnPolicy, own_like, state_names
from core.training.layout import Layout
from core.training.optimizers import Optimizer
from core.training.precision import STORAGE_TYPES, PrecisionPolicy
from core.wording import listed

_HALF = ("bf16", "fp16")
_ADAM = ("Adam", "AdamW")
_PARTS: Mapping[str, str] = {
    "weights": "weights",
    "master": "master weights",
    "gradients": "gradients",
    "gradient_copy": "a copy of gradients for the optimizer",
    "accumulation": "a buffer that adds up gradients",
    "multiplies": "matrix products",
}


@dataclass(frozen=True, slots=True)
class Precision:
    """arguments: settings by name, in order; a switch is True. kept: the types that a system keeps under them. notes:
    what else is to be said."""

    arguments: Mapping[str, Any]
    kept: OwnPolicy
    notes: tuple[str, ...] = ()


def megatron_precision(policy: PrecisionPolicy, optimizer: Optimizer, layout: Layout, dtype: str) -> Precision:
    """Arguments of Megatron-LM. dtype: of the matrix products."""
    want, arguments, notes = _wanted(policy, optimizer, dtype), dict[str, Any](), list[str]()
    weights, gradients = _stored(want), _summed(want)
    fsdp, adam = layout.zero >= 2, optimizer.name in _ADAM
    named = _MEGATRON_OPTIMIZERS.get(optimizer.name)
    if named is None or (fsdp and named.get("optimizer") not in (None, "sgd")):
        notes.append(f"It has no {optimizer.name}{' with its FSDP' if named else ''}: `--optimizer` is left as Adam.")
    else:
        arguments |= named
    if weights in _HALF:
        arguments[weights] = True
        arguments |= {"accumulate-allreduce-grads-in-fp32": True} if gradients == "fp32" else {}
        arguments |= {"grad-reduce-in-bf16": True} if gradients == "bf16" else {}
    if fsdp:
        arguments["megatron-fsdp-main-grads-dtype"] = gradients
    master, states = (ABSENT if weights == "fp32" else "fp32"), ("fp32", "fp32", "fp32")
    low = want.states[:2] != states[:2] and not layout.offload
    half_master = want.master == "fp16" and weights in _HALF and not fsdp
    uncopied = gradients == "bf16" and want.gradient_copy == ABSENT and not fsdp
    # Without it moments and master weights are in fp32, and 16-bit gradients are copied to fp32 for the optimizer.
    aware = adam and (bool(layout.offload) or (layout.zero > 0 and (low or half_master or uncopied)))
    if aware:
        arguments["use-precision-aware-optimizer"] = True
        arguments |= {"main-grads-dtype": "bf16"} if gradients == "bf16" else {}
        if half_master:
            master = arguments["main-params-dtype"] = "fp16"
        if low:
            moments = [_MOMENTS.get(state, "fp32") for state in want.states[:2]]
            names = ("exp-avg-dtype", "exp-avg-sq-dtype")
            arguments |= {name: moment for name, moment in zip(names, moments, strict=True) if moment != "fp32"}
            states = (moments[0], moments[1], "fp32")
        if weights == "bf16" and not fsdp and master == "fp32" and not layout.offload:
            notes.append(
                "Its precision-aware optimizer keeps of an fp32 master weight the 16 bits that the bf16 weight lacks: "
                "2 bytes a parameter less than are counted, before sharding."
            )
        elif not layout.offload and (fsdp or weights == "fp32"):
            notes.append(
                "TransformerEngine’s Adam may keep master weights of its own beside these: 4 bytes a parameter more, "
                "before sharding."
            )
    if layout.offload and adam:
        arguments["optimizer-cpu-offload"] = True
    elif layout.offload:
        notes.append("It offloads the state of Adam alone.")
    if want.multiplies == "fp8":
        arguments["fp8-format"] = "hybrid"
    given = replace(
        want,
        weights=weights,
        master=master,
        gradients=gradients,
        accumulation=ABSENT,
        gradient_copy="fp32" if gradients in _HALF and not aware else ABSENT,
        multiplies="fp8" if want.multiplies == "fp8" else weights,
        states=states,
    )
    return Precision(arguments, given, (*_unlike(want, given, optimizer), *notes))


_MOMENTS = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "8-bit blocks": "fp8"}
_MEGATRON_OPTIMIZERS: Mapping[str, Mapping[str, Any]] = {
    "Adam": {},
    "AdamW": {},
    "SGD": {"optimizer": "sgd", "sgd-momentum": 0.0},
    "SGD momentum": {"optimizer": "sgd"},
    "Muon": {"optimizer": "muon"},
    "Lion": {"optimizer": "lion"},
}


def torchtitan_precision(policy: PrecisionPolicy, optimizer: Optimizer, layout: Layout, dtype: str) -> Precision:
    """Fields of torchtitan's ``TrainingConfig``; ``implementation`` is one of ``OptimizersContainer.Config``."""
    want = _wanted(policy, optimizer, dtype)
    stored, products, given, notes = _one_copy(want, layout, "bf16")
    if want.multiplies == "fp8":
        notes.append("Matrix products in fp8 are a choice of the model’s configuration, not of these.")
        given = replace(given, multiplies="fp8")
    fields: dict[str, Any] = {"dtype": LONG[stored], "mixed_precision_param": LONG[products]}
    if stored == "fp32" and want.states[:2] == ("bf16", "bf16") and optimizer.name in _ADAM:
        fields["implementation"] = "fused_opt_states_bf16"
        given = replace(given, states=("bf16", "bf16", "fp32"))
    if optimizer.name not in (*_ADAM, "Muon"):
        notes.append(f"It has no {optimizer.name}, only Adam, AdamW and Muon.")
    return Precision(fields, given, (*_unlike(want, given, optimizer), *notes))


def trainer(
    policy: PrecisionPolicy, optimizer: Optimizer, layout: Layout, dtype: str, *, paged: bool = False
) -> Precision:
    """The types of transformers' Trainer and of the plan: that of the weights that are updated, and that of products.

    paged: whether bitsandbytes has the optimizer's state, in fp32 where it is not quantised.
    """
    want = _wanted(policy, optimizer, dtype)
    stored, products, given, notes = _one_copy(want, layout, "fp16" if dtype == "fp16" else "bf16")
    if optimizer.name not in (*_ADAM, "SGD", "AdaGrad", "RMSProp"):  # what quantises its state has its own types
        given = replace(given, states=want.states)
    elif paged:
        given = replace(given, states=("fp32", "fp32", "fp32"))
    updated = want.weights if want.master == ABSENT else want.master
    types = {"weights": (stored, updated), "products": (products, want.multiplies)}
    return Precision(types, given, (*_unlike(want, given, optimizer), *notes))


def _one_copy(want: OwnPolicy, layout: Layout, half: str) -> tuple[str, str, OwnPolicy, list[str]]:
    """What keeps one copy of the weights and casts those of a layer for its products: the type of the copy, that of
    the products, all types that are kept then, and what is to be said."""
    stored = "bf16" if (want.master if want.master != ABSENT else want.weights) == "bf16" else "fp32"
    products = "fp32" if stored == want.multiplies == "fp32" else half
    copied = stored == "fp32" and want.master != ABSENT and products != "fp32"
    given = replace(
        want,
        # What it casts is the weights of the plan, and what it keeps is their master.
        weights=products if copied else stored,
        master="fp32" if copied else ABSENT,
        gradients=stored,
        accumulation=ABSENT,
        gradient_copy=ABSENT,
        multiplies=products,
        states=(stored, stored, stored),
    )
    only_shards = copied and layout.zero == 3
    less = "It keeps sharded fp32 weights alone: 2 bytes a parameter less than are counted."
    return stored, products, given, [less] * only_shards


LONG = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def _wanted(policy: PrecisionPolicy, optimizer: Optimizer, dtype: str) -> OwnPolicy:
    """The types of the plan. Where its products are in fp16, as on accelerators without bf16, so are its 16-bit types;
    where they are in fp8, the policy's need not say so."""
    want = own_like(policy, optimizer)
    if dtype == "fp8":
        return replace(want, multiplies="fp8")
    if dtype != "fp16":
        return want
    names = ("weights", "gradients", "accumulation", "multiplies")
    return replace(want, **{name: "fp16" for name in names if getattr(want, name) == "bf16"})


def _stored(want: OwnPolicy) -> str:
    """The type of the weights, or of the nearest that every system knows."""
    return want.weights if want.weights in ("fp32", *_HALF) else "bf16"


def _summed(want: OwnPolicy) -> str:
    """What gradients of micro-batches are to be added up in."""
    weights = _stored(want)
    wanted = want.gradients if want.accumulation == ABSENT else want.accumulation
    return "fp32" if wanted == "fp32" else weights


def _unlike(want: OwnPolicy, policy: OwnPolicy, optimizer: Optimizer) -> tuple[str, ...]:
    """In what a system keeps another type than the plan, and how many bytes of a parameter that makes."""
    pairs = [(what, getattr(policy, name), getattr(want, name)) for name, what in _PARTS.items()]
    pairs += [(name, policy.states[i], want.states[i]) for i, name in enumerate(state_names(optimizer)[:3])]
    other = [(what, is_, was) for what, is_, was in pairs if is_ != was]
    if not other:
        return ()
    sentences = [_other(what, is_, was) for what, is_, was in other]
    more = sum(_bytes(is_) - _bytes(was) for what, is_, was in other if what != _PARTS["multiplies"])
    size = f"{abs(more):.3g} bytes a parameter {'more' if more > 0 else 'less'}, before sharding" if more else ""
    return (f"**Not as the plan counts it:** {listed(sentences)}{f'; {size}' if size else ''}.",)


def _other(what: str, is_: str, was: str) -> str:
    if was == ABSENT:
        return f"{what} in {is_}, which the plan has none of"
    return f"no {what}, not {was}" if is_ == ABSENT else f"{what} in {is_}, not {was}"


def _bytes(kind: str) -> float:
    return 0.0 if kind == ABSENT else STORAGE_TYPES[kind].bytes
