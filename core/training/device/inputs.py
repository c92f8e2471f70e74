"""What an account of one accelerator is worked out from: layouts, bytes per parameter, how a step is computed.

All may be arrays. They are handed on in pieces that a cache holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from core.models.spec import TransformerSpec
from core.training.activations.stage import Amounts
from core.training.activations.tensors import FUSED, Implementation, Loss
from core.training.device.blocks import Piece, aligned, cut, pieces
from core.training.device.ranks import TensorClass
from core.training.layout import Counts, Degrees, Layout, degrees_of
from core.training.memory import StateBytes, states_per_parameter
from core.training.optimizer_state import optimizer_state_bytes
from core.training.optimizers import USUAL_OPTIMIZER, Optimizer, find_optimizer
from core.training.precision import USUAL_POLICY, PrecisionPolicy, find_policy
from core.training.tensors import TensorKind, tensors_of


@dataclass(frozen=True, slots=True)
class States:
    """Bytes per parameter of the model states by class of tensors; numbers or arrays.

    gathered: bytes of a weight as ZeRO-3 gathers it, in the type that matmuls multiply in.
    cast: bytes of a weight's cast that autocast keeps beside it, 0 without.
    fresh: share of the gradients' bytes that each step makes anew; the rest are buffers that last.
    """

    of: Mapping[TensorClass, StateBytes]
    gathered: Any
    cast: float = 0.0
    fresh: float = 1.0

    @property
    def same(self) -> StateBytes | None:
        """The bytes of every class where they are the same object for all."""
        first = self.of["layers"]
        return first if all(other is first for other in self.of.values()) else None


_KINDS: Mapping[TensorClass, TensorKind] = {
    "layers": "matrix",
    "norms": "vector",
    "experts": "expert matrix",
    "embedding": "embedding",
    "head": "head",
}
"""Class of a rank's tensors → what an optimizer takes them for."""


def states_of(optimizer: Optimizer, policy: PrecisionPolicy, spec: TransformerSpec) -> States:
    """Bytes per parameter under ``optimizer`` and ``policy``, for every class of tensors of ``spec``."""
    item = states_per_parameter(optimizer, policy, spec)
    read = (
        policy.multiplies.bytes,
        policy.multiplies.bytes * policy.autocasts,
        policy.new_gradient_bytes / policy.gradient_bytes,
    )
    if optimizer.uniform:
        return States(dict.fromkeys(_KINDS, item), *read)
    table = optimizer_state_bytes(spec, optimizer, policy).by_kind
    elements: dict[TensorKind, int] = {}
    for tensor in tensors_of(spec):
        elements[tensor.kind] = elements.get(tensor.kind, 0) + tensor.elements

    def each(kind: TensorKind) -> StateBytes:
        kind = "embedding" if kind == "head" and kind not in elements else kind  # a tied head is a copy of it
        return replace(item, optimizer=table.get(kind, 0.0) / elements.get(kind, 1))

    return States({name: each(kind) for name, kind in _KINDS.items()}, *read)


def usual(policy: PrecisionPolicy | None, optimizer: Optimizer | None) -> tuple[PrecisionPolicy, Optimizer]:
    """Both as they are; mixed bf16 with an fp32 master, and AdamW, where they are None."""
    return policy or find_policy(USUAL_POLICY), optimizer or find_optimizer(USUAL_OPTIMIZER)


@dataclass(frozen=True, slots=True)
class Step:
    """How one step is computed, as far as its activations depend on it.

    The fields are those of `stage_activation_bytes`.
    """

    seq_len: Counts
    implementation: Implementation = FUSED
    width: int = 2
    loss: Loss | None = None
    chunks: Counts = 1
    imbalance: Amounts = 1.0
    capacity: Amounts = 0.0
    residual: int | None = None

    def under(self, policy: PrecisionPolicy) -> Step:
        """The same in the types of a policy."""
        return replace(self, width=int(policy.activations.bytes), residual=int(policy.residual.bytes))


def in_parts(
    layout: Layout, states: States, step: Step, most: int
) -> tuple[tuple[int, ...], Iterator[tuple[Piece, Degrees, States, Step]]]:
    """The shape that all given numbers broadcast to, and the numbers of one piece after the other."""
    given: dict[tuple[str, str], Any] = {("states", "gathered"): states.gathered}
    degrees = degrees_of(layout)
    given |= {("layout", field.name): getattr(degrees, field.name) for field in fields(degrees)}
    given |= {("step", name): getattr(step, name) for name in ("seq_len", "chunks", "imbalance", "capacity")}
    apart: Mapping[TensorClass, StateBytes] = {"layers": states.same} if states.same else states.of
    for name, item in apart.items():
        given |= {(name, part.name): getattr(item, part.name) for part in fields(item)}
    size, ready = aligned(given)
    if len(size) > 1 and not np.ndim(degrees.pipeline):
        # Stages lie along an axis of their own before those of all that is given.
        ready["layout", "pipeline"] = np.full((1,) * len(size), degrees.pipeline)

    def named(group: str, piece: Piece) -> dict[str, Any]:
        return {name: cut(value, piece) for (kind, name), value in ready.items() if kind == group}

    def each() -> Iterator[tuple[Piece, Degrees, States, Step]]:
        for piece in pieces(size, most):
            kinds: dict[TensorClass, StateBytes] = {name: StateBytes(**named(name, piece)) for name in apart}
            classes = dict.fromkeys(states.of, kinds["layers"]) if states.same else kinds
            some = replace(states, of=classes, gathered=cut(ready["states", "gathered"], piece))
            yield piece, Degrees(**named("layout", piece)), some, replace(step, **named("step", piece))

    return size, each()
