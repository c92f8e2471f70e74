"""What the memory of a device follows from: bytes of states and settings of a step.

All may be arrays. They are handed on in pieces that a cache holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from core.formula import Explanation, Symbol, formula
from core.limits import cached
from core.models.operation import WeightKind
from core.models.spec import TransformerSpec
from core.sources import CS336, ZERO
from core.training.activations.stage import StepSettings
from core.training.activations.tensors import FP32, Adapter, Implementation, PartlyTrained
from core.training.device.buffers import Piece, aligned, cut, pieces, sharded_bytes
from core.training.device.ranks import TensorClass
from core.training.layout import Degrees, Layout, degrees_of, pick
from core.training.memory import PARTS, StateBytes, bytes_per_parameter, states_per_parameter
from core.training.optimizers import USUAL_OPTIMIZER, Optimizer, find_optimizer, optimizer_state
from core.training.precision import USUAL_POLICY, PrecisionPolicy, find_policy
from core.training.trained import (
    EVERYTHING,
    ParameterTensor,
    Trained,
    active_share,
    parts_of_training,
    stored_bytes,
    tensors_of,
)


@dataclass(frozen=True, slots=True)
class States:
    """Bytes per parameter of the model states by class of tensors; numbers or arrays.

    gathered: bytes of a weight as ZeRO-3 gathers it, in the type that matmuls multiply in.
    cast: bytes of a weight's cast that autocast keeps beside it, 0 without.
    fresh: share of the gradients' bytes that each step makes anew; the rest are buffers that last.
    ends: bytes of a weight of embedding and head as ZeRO-3 gathers it, None where that is ``gathered``. one_gradient:
    bytes of the largest gradient, where each goes as soon as it is there. trained: share of all parameters that an
    update changes, adapters over what they stand beside. updated: bytes of those for each of all parameters, None where
    they are those of layers.
    """

    of: Mapping[TensorClass, StateBytes]
    gathered: Any
    cast: float = 0.0
    fresh: float = 1.0
    ends: float | None = None
    one_gradient: float = 0.0
    trained: float = 1.0
    updated: StateBytes | None = None

    @property
    def same(self) -> StateBytes | None:
        """The bytes of every class where they are the same object for all."""
        first = self.of["layers"]
        return first if all(other is first for other in self.of.values()) else None


_KINDS: Mapping[TensorClass, WeightKind] = {
    "layers": "matrix",
    "norms": "vector",
    "experts": "expert matrix",
    "embedding": "embedding",
    "head": "head",
}
"""Class of a rank's tensors → what an optimizer takes them for."""


def states_of(
    optimizer: Optimizer,
    policy: PrecisionPolicy,
    spec: TransformerSpec,
    trained: Trained = EVERYTHING,
    *,
    in_backward: bool = False,
    paged: bool = False,
) -> States:
    """Bytes per parameter under ``optimizer`` and ``policy``, for every class of tensors of ``spec``.

    trained: what has gradients and states; its adapters are counted with the parameters that they stand beside.
    in_backward: gradients go as soon as they are there. paged: the optimizer's state lies in the host's memory.
    Raises `TrainedError` for a choice that cannot be.
    """
    if not trained.everything:
        return _partly_trained(optimizer, policy, spec, trained, in_backward=in_backward, paged=paged)
    item = states_per_parameter(optimizer, policy, spec, in_backward=in_backward, paged=paged)
    read = (
        policy.multiplies.bytes,
        policy.multiplies.bytes * policy.autocasts,
        policy.new_gradient_bytes / policy.gradient_bytes,
    )
    one: dict[str, Any] = {
        "one_gradient": _largest_trained(spec, trained) * policy.gradients.bytes if in_backward else 0.0
    }
    if optimizer.uniform or paged:
        return States(dict.fromkeys(_KINDS, item), *read, **one)
    table = optimizer_state(spec, optimizer, policy).by_kind
    elements: dict[WeightKind, int] = {}
    for tensor in tensors_of(spec):
        elements[tensor.kind] = elements.get(tensor.kind, 0) + tensor.elements

    def each(kind: WeightKind) -> StateBytes:
        kind = "embedding" if kind == "head" and kind not in elements else kind  # a tied head is a copy of it
        return replace(item, optimizer=table.get(kind, 0.0) / elements.get(kind, 1))

    return States({name: each(kind) for name, kind in _KINDS.items()}, *read, **one)


def _largest_trained(spec: TransformerSpec, trained: Trained) -> int:
    """Elements of the largest tensor that is trained."""
    parts = parts_of_training(spec, trained)
    return max(part.tensor.rows * part.tensor.columns for part in parts if part.trained)


def _class_of(tensor: ParameterTensor) -> TensorClass:
    """Where `RankParameters` counts a tensor."""
    if tensor.kind == "embedding" or tensor.name == "embedding to layers":
        return "embedding"
    if tensor.kind == "head" or tensor.name in ("bias of the head", "layers to embedding"):
        return "head"
    if tensor.name.startswith("expert "):
        return "experts"
    normal = tensor.kind == "vector" and "norm" in tensor.name and not tensor.name.startswith("state")
    return "norms" if normal or tensor.name == "vision tower" else "layers"


def _partly_trained(
    optimizer: Optimizer,
    policy: PrecisionPolicy,
    spec: TransformerSpec,
    trained: Trained,
    *,
    in_backward: bool,
    paged: bool,
) -> States:
    """Means over the tensors of each class, of which some are trained and the rest is stored as it is."""
    sums: dict[TensorClass, list[float]] = {name: [0.0] * 5 for name in _KINDS}
    kept = (policy.weights.bytes, policy.gradient_bytes * (not in_backward), policy.master_bytes)
    alive = 0.0
    for part in parts_of_training(spec, trained):
        row, size = sums[_class_of(part.base)], part.tensor.elements
        row[0] += 0 if part.adapter else size
        if not part.trained:
            row[1] += size * stored_bytes(trained, part.base)
            continue
        state = 0.0 if paged else optimizer_state((part.tensor,), optimizer, policy).total
        alive += size
        for i, each in enumerate(kept):
            row[1 + i] += size * each
        row[4] += state
    of: dict[TensorClass, StateBytes] = {
        name: StateBytes(*(value / max(1.0, row[0]) for value in row[1:])) for name, row in sums.items()
    }
    if not sums["head"][0]:
        of["head"] = of["embedding"]
    whole, state = (sum(row[i] for row in sums.values()) for i in (0, 4))
    return States(
        of,
        of["layers"].parameters,
        cast=policy.multiplies.bytes * policy.autocasts * alive / whole,
        fresh=policy.new_gradient_bytes / policy.gradient_bytes,
        ends=float(policy.weights.bytes if trained.head else trained.computed),
        one_gradient=_largest_trained(spec, trained) * policy.gradients.bytes if in_backward else 0.0,
        trained=alive / whole,
        updated=StateBytes(*(alive * each / whole for each in kept), optimizer=state / whole),
    )


def written_under(
    how: Implementation, spec: TransformerSpec, policy: PrecisionPolicy, trained: Trained, *, offloads: bool = False
) -> Implementation:
    """How layers are written under a policy, where only some of their weights are trained: by the kernels of CUDA.

    In fp32 PyTorch has none without the square of scores where heads share keys and values.
    """
    computed = np.inf if trained.everything else trained.computed
    square = min(policy.activations.bytes, computed) >= FP32 and how.written_out and spec.kv_heads < spec.heads
    how = replace(
        how,
        offloads=offloads or how.offloads,
        autocasts=policy.autocasts and how.written_out,
        in_fp32=min(policy.multiplies.bytes, computed) >= FP32,
        flash=how.flash and not square,
    )
    return how if trained.everything else replace(how, partly=partly_trained(spec, policy, trained))


@cached("results_kept")
def partly_trained(spec: TransformerSpec, policy: PrecisionPolicy, trained: Trained) -> PartlyTrained:
    """Which weights of a layer have gradients. Raises `TrainedError` for a choice that cannot be."""
    parts = parts_of_training(spec, trained)
    storage = trained.storage
    active = active_share(spec, trained)
    weights: dict[str, float] = {}
    flop = adapter_elements = alive = 0.0
    chosen = spec.experts.per_token / spec.experts.count if spec.experts else 1.0
    for part in parts:
        times = chosen if part.base.kind == "expert matrix" else 1.0
        matrix = part.base.kind in ("matrix", "expert matrix") or _is_logits(spec, part.base)
        size = part.tensor.elements * times * matrix
        if part.adapter:
            adapter_elements += size
            continue
        flop += size
        if part.trained:
            alive += size
            weights[part.base.name] = min(1.0, part.tensor.count / max(1.0, active * part.base.count))
    bases = {part.base: None for part in parts if part.adapter}
    routed = float(spec.experts.per_token) if spec.experts else 1.0
    adapters = tuple(
        Adapter(base.name, base.columns, base.rows, routed if base.kind == "expert matrix" else 1.0) for base in bases
    )
    matrices = [part.base for part in parts if not part.trained and part.base.kind in ("matrix", "expert matrix")]
    largest = max((base.rows * base.columns for base in matrices), default=0)
    computes, width = policy.multiplies.bytes, min(trained.computed, int(policy.activations.bytes))
    if spec.tied_head and weights.get("token embedding"):
        weights["output head"] = 1.0
    unfed = trained.method == "last layers" and not trained.head
    return PartlyTrained(
        active_share=active,
        unfed_share=unfed / trained.last,
        trained_shares=tuple(weights.items()),
        adapters=adapters,
        rank=trained.rank,
        dora=trained.dora,
        dropout=trained.dropout,
        fused=trained.fused,
        element_bytes=int(computes) if computes != width else 0,
        largest_dequantised_bytes=float(largest * storage.computed) if storage.quantised else 0.0,
        weight_gradient_share=alive / flop,
        adapter_flop_share=adapter_elements / flop,
        head_share=weights.get("output head", 0.0),
        quantised_bytes_per_parameter=storage.each if storage.quantised else 0.0,
    )


def _is_logits(spec: TransformerSpec, base: ParameterTensor) -> bool:
    return base.kind == "head" or (spec.tied_head and base.name == "token embedding")


def usual(policy: PrecisionPolicy | None, optimizer: Optimizer | None) -> tuple[PrecisionPolicy, Optimizer]:
    """Both as they are; mixed bf16 with an fp32 master, and AdamW, where they are None."""
    return policy or find_policy(USUAL_POLICY), optimizer or find_optimizer(USUAL_OPTIMIZER)


def in_parts(
    layout: Layout, states: States, step: StepSettings, most: int
) -> tuple[tuple[int, ...], Iterator[tuple[Piece, Degrees, States, StepSettings]]]:
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

    def each() -> Iterator[tuple[Piece, Degrees, States, StepSettings]]:
        for piece in pieces(size, most):
            kinds: dict[TensorClass, StateBytes] = {name: StateBytes(**named(name, piece)) for name in apart}
            classes = dict.fromkeys(states.of, kinds["layers"]) if states.same else kinds
            some = replace(states, of=classes, gathered=cut(ready["states", "gathered"], piece))
            yield piece, Degrees(**named("layout", piece)), some, replace(step, **named("step", piece))

    return size, each()


SHARED_FROM: Mapping[str, int] = {"parameters": 3, "gradients": 2, "master": 1, "optimizer": 1}
"""Part of `StateBytes` → the first stage of ZeRO that shares it among ranks."""


@formula(
    r"\frac{\v{memory} \cdot \v{ways}}{\v{each}}",
    result=Symbol(r"N_{\max}", "parameters of the largest model whose states fill the memory", "parameters"),
    symbols={
        "memory": Symbol("M", "memory capacity of one accelerator", "bytes"),
        "ways": Symbol("t p", "tensor- and pipeline-parallel ranks, which split the model", "count"),
        "each": Symbol("b_1", "bytes that one of them keeps for each of its parameters", "bytes_per_parameter"),
    },
    sources=(CS336, ZERO.at("section 3.1 and table 1")),
)
def largest_model(memory: float, ways: float, each: float) -> float:
    """Largest model whose states alone fill the accelerators that share them.

    An upper bound: nothing is left for activations, buffers, the runtime and fragmentation.
    """
    return memory * ways / each


def shared_over(part: str, degrees: Degrees, shards: Any) -> Any:
    """Over how many ranks a part of the model states is shared, of ``shards`` among which ZeRO does."""
    return pick(degrees.zero >= SHARED_FROM[part], shards, 1.0)


def on_device(part: str, degrees: Degrees) -> Any:
    """1 where a part lies on the accelerator, 0 in the host's memory.

    ZeRO-Offload moves gradients to the host as soon as they are reduced; without sharding they stay.
    """
    if part == "parameters":
        return pick(degrees.offload > 1, 0.0, 1.0)
    host = pick(degrees.offload > 0, 0.0, 1.0)
    return pick(degrees.zero >= SHARED_FROM["gradients"], host, 1.0) if part == "gradients" else host


def kept_each(states: StateBytes, layout: Layout) -> float:
    """Return the bytes that one accelerator keeps for each parameter of a dense model."""
    degrees = degrees_of(layout)
    kept = (
        float(getattr(states, part))
        * float(on_device(part, degrees))
        / float(shared_over(part, degrees, degrees.shards))
        for part in PARTS
    )
    return sum(kept) / float(degrees.tensor * degrees.pipeline)


def explain_largest(states: StateBytes, layout: Layout, memory: float) -> tuple[Explanation, ...]:
    """The steps to the largest model whose states alone fit."""
    degrees = degrees_of(layout)
    steps: list[Explanation] = []
    for part, name in PARTS.items():
        size = float(getattr(states, part)) * float(on_device(part, degrees))
        if size:
            shards = float(shared_over(part, degrees, degrees.shards))
            explanation = sharded_bytes.explain(dense=1.0, shards=shards, experts=0.0, expert_shards=1.0, each=size)
            steps.append(explanation.about(f"of one parameter, {name}"))
    return (
        bytes_per_parameter.explain(**{part: float(getattr(states, part)) for part in PARTS}),
        *steps,
        largest_model.explain(
            memory=memory,
            ways=float(degrees.tensor * degrees.pipeline),
            each=sum(step.value for step in steps),
        ),
    )
