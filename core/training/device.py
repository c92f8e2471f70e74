"""Memory of one accelerator under a layout: states, activations, buffers and runtime of the fullest pipeline stage.

Every number may be an array; arrays broadcast, and large ones are worked through in pieces that a cache holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np

from core.models.batch import SpecBatch
from core.models.spec import TransformerSpec
from core.models.terms import Numbers, shape_of
from core.training.buffers import Runtime, bucket_bytes, gathered_bytes, process_groups, runtime_bytes, sharded_bytes
from core.training.layout import Counts, Degrees, Layout, check, degrees_of, pick
from core.training.memory import StateBytes, states_per_parameter
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy
from core.training.ranks import (
    RankParameters,
    Stage,
    StageName,
    TensorClass,
    narrowed,
    pieces_of,
    rank_parameters,
    stage_of,
)

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


def states_of(optimizer: Optimizer, policy: PrecisionPolicy) -> States:
    """Bytes per parameter under ``optimizer`` and ``policy``, for every class of tensors."""
    one = states_per_parameter(optimizer, policy)
    return States(dict.fromkeys((*_DENSE, "experts"), one), policy.multiplies.bytes)


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
    def total(self) -> Any:
        """All of it."""
        return self.states + self.activations + self.buffers + self.runtime


def memory_per_device(
    spec: TransformerSpec,
    layout: Layout,
    *,
    policy: PrecisionPolicy,
    optimizer: Optimizer,
    seq_len: Counts,
    implementation: str = "fused",
    runtime: Runtime | None = None,
    stage: StageName | None = None,
) -> DeviceMemory:
    """Memory of one accelerator of ``stage``, or of the fullest one.

    Raises `LayoutError` for a layout that cannot be. A million layouts that are known to be sound are quicker with
    `memory_over`.
    """
    check(spec, layout, seq_len)
    states = states_of(optimizer, policy)
    shape = shape_of(spec)
    return memory_over(
        shape, layout, states, seq_len=seq_len, implementation=implementation, runtime=runtime, stage=stage
    )


def memory_over(
    shapes: SpecBatch | Numbers,
    layout: Layout,
    states: States,
    *,
    seq_len: Counts,
    implementation: str = "fused",
    runtime: Runtime | None = None,
    stage: StageName | None = None,
) -> DeviceMemory:
    """The same for many shapes, layouts and bytes per parameter at once, none of which is checked."""
    shape = shapes.shape if isinstance(shapes, SpecBatch) else shapes
    degrees = degrees_of(layout)
    given: dict[tuple[str, str], Any] = {("", "seq_len"): seq_len, ("", "gathered"): states.gathered}
    given |= {("shape", name): value for name, value in shape.items()}
    given |= {("degrees", one.name): getattr(degrees, one.name) for one in fields(degrees)}
    for name, one in states.of.items():
        given |= {(name, part.name): getattr(one, part.name) for part in fields(one)}
    size = np.broadcast_shapes(*(np.shape(value) for value in given.values()))
    chosen = Runtime() if runtime is None else runtime

    def worked(part: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
        def named(group: str) -> dict[str, Any]:
            return {name: value for (kind, name), value in part.items() if kind == group}

        by_class: dict[TensorClass, StateBytes] = {name: StateBytes(**named(name)) for name in states.of}
        if states.same is not None:
            by_class = dict.fromkeys(by_class, by_class["layers"])
        made = States(by_class, part["", "gathered"])
        ready = Degrees(**named("degrees"))
        found = _memory(named("shape"), ready, made, part["", "seq_len"], implementation, chosen, stage)
        return {one.name: getattr(found, one.name) for one in fields(found)}

    if size == ():
        return DeviceMemory(**{name: float(value) for name, value in worked(given).items()})
    count = math.prod(size)
    if count <= _PIECE:
        return DeviceMemory(**{name: np.broadcast_to(value, size) for name, value in worked(given).items()})
    flat = {key: np.broadcast_to(v, size).reshape(-1) if np.ndim(v) else v for key, v in given.items()}
    out = {one.name: np.empty(count) for one in fields(DeviceMemory)}
    for start in range(0, count, _PIECE):
        piece = slice(start, start + _PIECE)
        for name, value in worked({k: v[piece] if np.ndim(v) else v for k, v in flat.items()}).items():
            out[name][piece] = value
    return DeviceMemory(**{name: value.reshape(size) for name, value in out.items()})


def _memory(
    shape: Numbers,
    degrees: Degrees,
    states: States,
    seq_len: Any,
    implementation: str,
    runtime: Runtime,
    stage: StageName | None,
) -> DeviceMemory:
    """Of one stage, or at every point of the one with the largest total."""
    numbers = narrowed(shape, degrees.tensor)
    pieces = pieces_of(numbers, degrees)
    names = (stage,) if stage else _STAGES if np.any(degrees.pipeline > 1) else _STAGES[:1]
    found: DeviceMemory | None = None
    for name in names:
        at = stage_of(numbers, degrees, name)
        rank = rank_parameters(pieces, at)
        one = _of_stage(numbers, degrees, states, seq_len, implementation, runtime, at, rank)
        found = one if found is None else _fuller(found, one)
    return cast("DeviceMemory", found)


def _fuller(first: DeviceMemory, second: DeviceMemory) -> DeviceMemory:
    """At every point the one with the larger total, the first where they are equal."""
    more = second.total > first.total
    return DeviceMemory(**{f.name: pick(more, getattr(second, f.name), getattr(first, f.name)) for f in fields(first)})


def _of_stage(
    numbers: Numbers,
    degrees: Degrees,
    states: States,
    seq_len: Any,
    implementation: str,
    runtime: Runtime,
    stage: Stage,
    rank: RankParameters,
) -> DeviceMemory:
    shards, expert_shards = degrees.shards, degrees.expert_shards
    device = 1.0 - degrees.offload

    def part(field: str, from_stage: int) -> Any:
        sharded = degrees.zero >= from_stage
        over, experts_over = pick(sharded, shards, 1.0), pick(sharded, expert_shards, 1.0)
        if states.same is not None:
            each = getattr(states.same, field)
            return sharded_bytes(rank.dense, over, rank.experts, experts_over, each)
        dense = sum(getattr(rank, name) * getattr(states.of[name], field) for name in _DENSE)
        return dense / over + rank.experts * getattr(states.of["experts"], field) / experts_over

    gradient = states.of["layers"].gradients
    parameters, gradients = part("parameters", 3), part("gradients", 2)
    # ZeRO-Offload moves gradients to the host as soon as they are reduced; without sharding they stay.
    gradients = gradients * pick(degrees.zero >= 2, device, 1.0)
    master, optimizer = part("master", 1) * device, part("optimizer", 1) * device
    gathered = gathered_bytes(rank, degrees, states.gathered, gradient, runtime)
    buckets = bucket_bytes(rank, degrees, gradient, runtime)
    activations = _activations(numbers, degrees, seq_len, implementation, stage)
    tensors = parameters + gradients + master + optimizer + gathered + buckets + activations
    return DeviceMemory(
        parameters=parameters,
        gradients=gradients,
        master_weights=master,
        optimizer_state=optimizer,
        activations=activations,
        gathered=gathered,
        buckets=buckets,
        runtime=runtime_bytes(tensors, runtime.slack, runtime.context, process_groups(degrees), runtime.communicator),
        stage=stage.index,
    )


def _activations(numbers: Numbers, degrees: Degrees, seq_len: Any, implementation: str, stage: Stage) -> Any:
    t, h = degrees.tensor, numbers["hidden"]
    along = pick(degrees.sequence_parallel > 0, t, 1.0)
    tokens = degrees.micro_batch * seq_len / degrees.context
    heads, kv, f = numbers["heads"] * numbers["score_dim"], numbers["kv_heads"] * numbers["score_dim"], numbers["ffn"]
    if implementation == "eager":
        scores = 5 * numbers["heads"] * seq_len * (degrees.recompute < 1)
        layer = 10 * h / along + 8 * h / t + 4 * f + scores
    else:
        lean = (degrees.recompute < 1) * 1.0
        layer = (8 + 4 * lean) * h / along + 2 * h / t + 4 * heads + 4 * kv + (4 + 2 * lean) * f
    stored = pick(degrees.recompute == 2, 2 * h / along, layer)
    working = pick(degrees.recompute == 2, layer, 0.0)
    ends = stage.first * 1.0 * h / along * stage.in_flight + stage.last * (4 * h / along + 4 * numbers["vocab"])
    return tokens * (stage.in_flight * stage.layers * stored + working + ends)
