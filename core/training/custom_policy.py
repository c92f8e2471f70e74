"""A precision policy of one's own, and any policy as the rows of an editor."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.limits import cached
from core.messages import message
from core.sources import OWN_CONSTRUCTION
from core.training.optimizers import Optimizer
from core.training.precision import STORAGE_TYPES, PrecisionPolicy, StorageType
from core.wording import plural

CHOICES: tuple[str, ...] = ("fp32", "bf16", "fp16", "fp8")
"""Names of the types that weights, gradients, buffers and activations can have."""

STATE_CHOICES: tuple[str, ...] = (*CHOICES, "8-bit blocks", "4-bit blocks")
"""Names of the types that optimizer state can have."""

ABSENT = "none"
"""The type of a copy that is not kept."""

APART = 3
"""So many states of an optimizer are chosen: the first, the second, and all further ones."""


def _chosen(what: str, name: str, among: tuple[str, ...]) -> StorageType:
    if name not in among:
        raise ValueError(f"{what} cannot be kept in {name!r}; there are {', '.join(among)}")
    return STORAGE_TYPES[name]


def _copy(what: str, name: str) -> StorageType | None:
    return None if name == ABSENT else _chosen(what, name, CHOICES)


def state_names(optimizer: Optimizer) -> tuple[str, ...]:
    """The states whose type a policy decides: those of a matrix first, then those that only other tensors have."""
    kinds = (optimizer.matrix, optimizer.vector, optimizer.embedding, optimizer.head, optimizer.small)
    return tuple(dict.fromkeys(state.name for kind in kinds for state in kind if state.type is None))


@dataclass(frozen=True, slots=True)
class OwnPolicy:
    """A policy as names of storage types; `ABSENT` is no such copy.

    multiplies: what matrix products are worked out in.  states: of an optimizer's first state, of its second, and of
    all further ones, in the order of `state_names`.
    """

    weights: str = "bf16"
    master: str = "fp32"
    gradients: str = "bf16"
    accumulation: str = ABSENT
    gradient_copy: str = ABSENT
    multiplies: str = "bf16"
    activations: str = "bf16"
    states: tuple[str, str, str] = ("fp32", "fp32", "fp32")

    def under(self, optimizer: Optimizer) -> PrecisionPolicy:
        """The policy that it is under ``optimizer``.

        Raises ``ValueError`` that names what there is where a type is unknown, or cannot be what it is asked to be.
        """
        return _under(self, state_names(optimizer))


@cached("small_results_kept")
def _under(own: OwnPolicy, names: tuple[str, ...]) -> PrecisionPolicy:
    weights, multiplies = _chosen("weights", own.weights, CHOICES), _chosen("products", own.multiplies, CHOICES)
    saved = _chosen("activations", own.activations, CHOICES)
    states = tuple(_chosen("optimizer state", name, STATE_CHOICES) for name in own.states)
    by_name = {name: states[min(i, APART - 1)] for i, name in enumerate(names)}
    usual = list(by_name.values())[-1] if by_name else states[0]
    special = tuple((name, result) for name, result in by_name.items() if result is not usual)
    words = [f"{own.weights} weights", f"{own.master} master" if own.master != ABSENT else "no master"]
    words += [f"{own.gradients} gradients"]
    words += [f"{own.accumulation} accumulation"] if own.accumulation != ABSENT else []
    words += [f"{own.gradient_copy} copy of gradients"] if own.gradient_copy != ABSENT else []
    words += [f"{result.name} {name}" for name, result in special]
    others = plural(len(by_name) - len(special), "state")
    words += [f"{usual.name} {'other ' if special else ''}{others}"] if by_name else []
    words += [f"{own.multiplies} products"] if own.multiplies != own.weights else []
    words += [f"{own.activations} activations"] if own.activations != own.multiplies else []
    return PrecisionPolicy(
        id=", ".join(words),
        weights=weights,
        gradients=_chosen("gradients", own.gradients, CHOICES),
        master=_copy("master weights", own.master),
        states=usual,
        phrase=f"with {', '.join(words)}",
        note=message("training.policy.custom"),
        sources=(OWN_CONSTRUCTION,),
        gradient_copy=_copy("the copy of gradients", own.gradient_copy),
        special_states=special,
        autocast=None if multiplies is weights else multiplies,
        accumulation=_copy("the accumulation buffer", own.accumulation),
        saved=None if saved is multiplies else saved,
    )


@cached("small_results_kept")
def own_like(policy: PrecisionPolicy, optimizer: Optimizer) -> OwnPolicy:
    """The types that ``policy`` keeps under ``optimizer``, from which a policy of one's own can begin."""
    parts = [policy.state(name).name for name in state_names(optimizer)[:APART]]
    first, second, further = parts + [policy.states.name] * (APART - len(parts))
    return OwnPolicy(
        weights=policy.weights.name,
        master=policy.master.name if policy.master else ABSENT,
        gradients=policy.gradients.name,
        accumulation=policy.accumulation.name if policy.accumulation else ABSENT,
        gradient_copy=policy.gradient_copy.name if policy.gradient_copy else ABSENT,
        multiplies=policy.multiplies.name,
        activations=policy.activations.name,
        states=(first, second, further),
    )


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One tensor class of a policy: its type and bytes per parameter.

    chosen: the field of `OwnPolicy` that decides its type, with the place of a state behind it: ``weights``,
    ``states 0``; empty where the optimizer itself does.  state: its name, of an optimizer's state.  size: elements of
    that for an m × n matrix, empty where matrices have none.  bytes: NaN where there is no such number.
    """

    chosen: str
    type: str
    bytes: float
    state: str = ""
    size: str = ""


def policy_rows(policy: PrecisionPolicy, optimizer: Optimizer) -> tuple[PolicyRow, ...]:
    """Return ``policy`` as the rows of an editor, one for each tensor class, also for those that it does not keep.

    The bytes add up to those of a large matrix, but for states that do not have one element for each parameter: they
    depend on its shape and are NaN, as are those of activations.
    """
    nan, names = math.nan, state_names(optimizer)
    classes = {
        "weights": policy.weights,
        "master": policy.master,
        "gradients": policy.gradients,
        "accumulation": policy.accumulation,
        "gradient_copy": policy.gradient_copy,
    }
    rows = [
        PolicyRow(chosen, storage.name if storage else ABSENT, storage.bytes if storage else 0.0)
        for chosen, storage in classes.items()
    ]
    for state in optimizer.matrix:
        size, of = state.shown(policy)
        place = f"states {min(names.index(state.name), APART - 1)}" if state.type is None else ""
        rows.append(PolicyRow(place, state.each(policy).name, size if of == "mn" else nan, state.name, state.size))
    for i, name in enumerate(names):
        if not any(state.name == name and state.type is None for state in optimizer.matrix):
            rows.append(PolicyRow(f"states {min(i, APART - 1)}", policy.state(name).name, nan, name))
    return (
        *rows,
        PolicyRow("multiplies", policy.multiplies.name, nan),
        PolicyRow("activations", policy.activations.name, nan),
    )
