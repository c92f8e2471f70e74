"""Memory of one accelerator under a layout: states, activations, buffers and runtime of the fullest pipeline stage.

Every number may be an array; arrays broadcast, and large ones are worked through in pieces that a cache holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from core.models.spec import TransformerSpec
from core.models.terms import shape_of
from core.training.activations.stage import Amounts, Loss, StageActivations, stage_activation_bytes
from core.training.activations.tensors import FUSED, Implementation
from core.training.device.alone import on_device, shards_of
from core.training.device.buffers import (
    MEASURED,
    Runtime,
    bucket_bytes,
    gathered_bytes,
    process_groups,
    runtime_bytes,
    sharded_bytes,
)
from core.training.device.ranks import (
    RankParameters,
    Stage,
    StageName,
    TensorClass,
    narrowed,
    pieces_of,
    rank_parameters,
    stages_of,
)
from core.training.layout import Counts, Degrees, Layout, check, degrees_of, pick
from core.training.memory import StateBytes, states_per_parameter
from core.training.optimizer_state import optimizer_state_bytes
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy
from core.training.tensors import TensorKind, tensors_of

_PIECE = 8_192
"""Layouts per piece: an array of theirs takes 64 KiB, so that a dozen of them stay in the second-level cache."""

_STAGES: tuple[StageName, ...] = ("first", "middle", "last")

_DENSE: tuple[TensorClass, ...] = ("layers", "norms", "embedding", "head")


@dataclass(frozen=True, slots=True)
class States:
    """Bytes per parameter of the model states by class of tensors; numbers or arrays.

    gathered: bytes of a weight as ZeRO-3 gathers it, in the type that matmuls multiply in.
    """

    of: Mapping[TensorClass, StateBytes]
    gathered: Any

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
    one = states_per_parameter(optimizer, policy, spec)
    if optimizer.uniform:
        return States(dict.fromkeys(_KINDS, one), policy.multiplies.bytes)
    kept = optimizer_state_bytes(spec, optimizer, policy).by_kind
    elements: dict[TensorKind, int] = {}
    for tensor in tensors_of(spec):
        elements[tensor.kind] = elements.get(tensor.kind, 0) + tensor.elements

    def each(kind: TensorKind) -> StateBytes:
        kind = "embedding" if kind == "head" and kind not in elements else kind  # a tied head is a copy of it
        return replace(one, optimizer=kept.get(kind, 0.0) / elements.get(kind, 1))

    return States({name: each(kind) for name, kind in _KINDS.items()}, policy.multiplies.bytes)


@dataclass(frozen=True, slots=True)
class Step:
    """How one step is computed, as far as its activations depend on it.

    width: bytes of an element of the format computed in.  The others are those of `stage_activation_bytes`.
    """

    seq_len: Counts
    implementation: Implementation = FUSED
    width: int = 2
    loss: Loss = "separate"
    chunks: Counts = 1
    imbalance: Amounts = 1.0
    capacity: Amounts = 0.0


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Bytes on one accelerator by class; numbers, or arrays of one shape.

    gathered, buckets: the buffers. stage: place of the pipeline stage from 0.
    """

    parameters: Any
    gradients: Any
    master_weights: Any
    optimizer_state: Any
    activations: Any
    gathered: Any
    buckets: Any
    runtime: Any
    stage: Any

    @property
    def states(self) -> Any:
        """What lasts from one step to the next."""
        return self.parameters + self.gradients + self.master_weights + self.optimizer_state

    @property
    def buffers(self) -> Any:
        """Gathered weights and gradient buckets."""
        return self.gathered + self.buckets

    @property
    def tensors(self) -> Any:
        """All that is a tensor of the step."""
        return self.states + self.activations + self.buffers

    @property
    def total(self) -> Any:
        """All of it."""
        return self.tensors + self.runtime


def memory_per_device(
    spec: TransformerSpec,
    layout: Layout,
    *,
    policy: PrecisionPolicy,
    optimizer: Optimizer,
    seq_len: Counts,
    implementation: Implementation = FUSED,
    loss: Loss = "separate",
    chunks: Counts = 1,
    imbalance: Amounts = 1.0,
    capacity: Amounts = 0.0,
    runtime: Runtime = MEASURED,
    stage: StageName | int | None = None,
) -> DeviceMemory:
    """Memory of one accelerator of ``stage``, or of the fullest one.

    Raises `LayoutError` for a layout that cannot be. Layouts that are known to be sound go to `memory_over`.
    """
    check(spec, layout, seq_len)
    step = Step(seq_len, implementation, width_of(policy), loss, chunks, imbalance, capacity)
    return memory_over(spec, layout, states_of(optimizer, policy, spec), step, runtime=runtime, stage=stage)


def width_of(policy: PrecisionPolicy) -> int:
    """Bytes of an activation: those of the type that most of them are saved in."""
    return int(policy.activations.bytes)


def memory_over(
    spec: TransformerSpec,
    layout: Layout,
    states: States,
    step: Step,
    *,
    runtime: Runtime = MEASURED,
    stage: StageName | int | None = None,
) -> DeviceMemory:
    """The same for many layouts, sequence lengths and bytes per parameter at once, none of which is checked."""
    given: dict[tuple[str, str], Any] = {("states", "gathered"): states.gathered}
    degrees = degrees_of(layout)
    given |= {("layout", one.name): getattr(degrees, one.name) for one in fields(degrees)}
    given |= {("step", name): getattr(step, name) for name in ("seq_len", "chunks", "imbalance", "capacity")}
    apart: Mapping[TensorClass, StateBytes] = {"layers": states.same} if states.same else states.of
    for name, one in apart.items():
        given |= {(name, part.name): getattr(one, part.name) for part in fields(one)}
    size = np.broadcast_shapes(*(np.shape(value) for value in given.values()))
    count = math.prod(size)
    flat = {key: np.broadcast_to(v, size).reshape(-1) if np.ndim(v) else v for key, v in given.items()}

    def worked(part: Mapping[tuple[str, str], Any]) -> DeviceMemory:
        def named(group: str) -> dict[str, Any]:
            return {name: value for (kind, name), value in part.items() if kind == group}

        kinds: dict[TensorClass, StateBytes] = {name: StateBytes(**named(name)) for name in apart}
        classes = dict.fromkeys(states.of, kinds["layers"]) if states.same else kinds
        made = States(classes, part["states", "gathered"])
        return _fullest(spec, Degrees(**named("layout")), made, replace(step, **named("step")), runtime, stage)

    out = {one.name: np.empty(count) for one in fields(DeviceMemory)}
    for start in range(0, count, _PIECE):
        piece = slice(start, start + _PIECE)
        found = worked({key: v[piece] if np.ndim(v) else v for key, v in flat.items()})
        for name, values in out.items():
            values[piece] = getattr(found, name)
    if size == ():
        return DeviceMemory(**{name: float(values[0]) for name, values in out.items()})
    return DeviceMemory(**{name: values.reshape(size) for name, values in out.items()})


def _fullest(
    spec: TransformerSpec, degrees: Degrees, states: States, step: Step, runtime: Runtime, stage: StageName | int | None
) -> DeviceMemory:
    """Of one stage, or at every point of the one with the largest total, the first among equals."""
    names = (stage,) if stage is not None else _STAGES if np.any(degrees.pipeline > 1) else _STAGES[:1]
    held = _by_stage(spec, degrees, states, step, runtime, names)
    rows = {one.name: np.atleast_2d(getattr(held, one.name)) for one in fields(held)}
    if len(names) == 1:
        return DeviceMemory(**{name: row[0] for name, row in rows.items()})
    total = np.atleast_2d(held.total)
    second = total[1] > total[0]
    third = total[2] > np.maximum(total[0], total[1])

    def chosen(row: Any) -> Any:
        if len(row) == 1:
            return row[0]
        return pick(third, row[2], pick(second, row[1], row[0]))

    return DeviceMemory(**{name: chosen(row) for name, row in rows.items()})


def activations_of(spec: TransformerSpec, degrees: Degrees, step: Step, stage: Stage) -> StageActivations:
    """Activations of stages, by what they are for."""
    return stage_activation_bytes(
        spec,
        step.implementation,
        degrees,
        step.seq_len,
        stage=stage.index,
        layers=(stage.layers - stage.moe_layers, stage.moe_layers),
        width=step.width,
        loss=step.loss,
        chunks=step.chunks,
        imbalance=step.imbalance,
        capacity=step.capacity,
    )


def rank_of(
    spec: TransformerSpec, degrees: Degrees, which: tuple[StageName | int, ...]
) -> tuple[Stage, RankParameters]:
    """Stages by name or place, and the parameters of one rank of each."""
    numbers = narrowed(shape_of(spec), degrees.tensor)
    stages = stages_of(numbers, degrees, which)
    return stages, rank_parameters(pieces_of(numbers, degrees), stages)


def _by_stage(
    spec: TransformerSpec,
    degrees: Degrees,
    states: States,
    step: Step,
    runtime: Runtime,
    which: tuple[StageName | int, ...],
) -> DeviceMemory:
    """Of several stages, along a first axis."""
    stages, rank = rank_of(spec, degrees, which)
    dense = rank.dense

    def part(field: str) -> Any:
        over, experts_over = shards_of(field, degrees)
        if states.same is not None:
            each = getattr(states.same, field)
            return sharded_bytes(dense, over, rank.experts, experts_over, each) * on_device(field, degrees)
        weighed = sum(getattr(rank, name) * getattr(states.of[name], field) for name in _DENSE)
        experts = rank.experts * getattr(states.of["experts"], field)
        return sharded_bytes(weighed, over, experts, experts_over, 1) * on_device(field, degrees)

    gradient = states.of["layers"].gradients
    held = DeviceMemory(
        parameters=part("parameters"),
        gradients=part("gradients"),
        master_weights=part("master"),
        optimizer_state=part("optimizer"),
        activations=activations_of(spec, degrees, step, stages).total,
        gathered=gathered_bytes(rank, degrees, states.gathered, gradient, runtime),
        buckets=bucket_bytes(rank, degrees, gradient, runtime),
        runtime=0.0,
        stage=stages.index,
    )
    groups = process_groups(degrees)
    slack = runtime_bytes(held.tensors, runtime.slack, runtime.context, groups, runtime.communicator)
    return replace(held, runtime=slack)
