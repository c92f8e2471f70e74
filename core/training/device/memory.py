"""Memory of a device under a layout, or under a million of them, by class.

Every number may be an array; arrays broadcast, and many points are worked through in pieces that a cache holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from core.models.flops import flops_per_token
from core.models.spec import TransformerSpec, modelled
from core.training.activations.stage import Amounts, StageActivations, StepSettings, stage_activation_bytes
from core.training.activations.tensors import FUSED, Implementation, Loss, PartlyTrained
from core.training.device.buffers import (
    MEASURED,
    Runtime,
    bucket_bytes,
    cast_bytes,
    gathered_bytes,
    has_pool,
    process_groups,
    runtime_bytes,
    sharded_bytes,
    waiting_bytes,
)
from core.training.device.inputs import (
    States,
    in_parts,
    on_device,
    shared_over,
    states_of,
    written_under,
)
from core.training.device.ranks import (
    RankParameters,
    Stage,
    StageName,
    TensorClass,
    pieces_of,
    rank_parameters,
    stages_of,
)
from core.training.layout import Counts, Degrees, Layout, check, pick
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy
from core.training.trained import EVERYTHING, Trained


@dataclass(frozen=True)
class Setup:
    """What an account of one accelerator needs.

    loss: as the implementation does where it is None. imbalance, capacity: see `routed_load`.
    memory: bytes of one accelerator that can be used; NaN where unknown.
    Without slots, so that the account is worked out once.
    """

    spec: TransformerSpec
    layout: Layout
    policy: PrecisionPolicy
    optimizer: Optimizer
    seq_len: int
    memory: float = math.nan
    implementation: Implementation = FUSED
    loss: Loss | None = None
    chunks: int = 1
    imbalance: Amounts = 1.0
    capacity: Amounts = 0.0
    runtime: Runtime = MEASURED
    trained: Trained = EVERYTHING
    in_backward: bool = False
    paged: bool = False

    @cached_property
    def states(self) -> States:
        """Bytes of each parameter."""
        return states_of(
            self.optimizer, self.policy, self.spec, self.trained, in_backward=self.in_backward, paged=self.paged
        )

    @cached_property
    def device_memory(self) -> DeviceMemory:
        """What the fullest accelerator holds. Raises `LayoutError` for a layout that cannot be."""
        check(self.spec, self.layout, self.seq_len)
        return self.account(self.layout)

    @property
    def fits(self) -> bool:
        """Whether an accelerator holds it; no where its memory is unknown."""
        return bool(self.device_memory.total <= self.memory)

    @cached_property
    def step(self) -> StepSettings:
        """How its step is computed."""
        return StepSettings(
            self.seq_len,
            written_under(self.implementation, self.spec, self.policy, self.trained),
            loss=self.loss,
            chunks=self.chunks,
            imbalance=self.imbalance,
            capacity=self.capacity,
        ).under(self.policy, self.trained)

    def account(
        self, layout: Layout, *, seq_len: Counts | None = None, stage: StageName | int | None = None
    ) -> DeviceMemory:
        """What an accelerator of ``stage``, or the fullest one, holds under other layouts and sequence lengths, none of
        which is checked."""
        step = replace(self.step, seq_len=self.seq_len if seq_len is None else seq_len)
        return memory_over(self.spec, layout, self.states, step, runtime=self.runtime, stage=stage)


def work_share(spec: TransformerSpec, partly: PartlyTrained | None, seq_len: int) -> float:
    """Model FLOPs of forward and backward over those of full training; 1 where everything is trained.

    Each product of the forward pass has one more for the gradient of its input wherever a gradient flows, and one for
    that of its weight where that is trained: 4 N per token and the adapters' own where all is frozen, not 6 N.
    """
    if partly is None:
        return 1.0
    counted = flops_per_token(spec, seq_len)
    head = sum(part.flop for part in counted.parts if part.group == "head")
    layers = counted.weights - head
    done = (
        layers * partly.flop_over_forward
        + counted.squares * (1 + 2 * partly.active_share)
        + head * (2 + partly.head_share)
    )
    return done / counted.training


_STAGES: tuple[StageName, ...] = ("first", "middle", "last")

_PIECE = 8_192
"""Points per piece: an array of theirs takes 64 KiB, so that a dozen of them stay in the second-level cache."""

_MANY = 65_536
"""The same where only the last few operations are on all points."""

FLAT_GRADIENTS = 3.0
"""Bytes of a shard's flat gradients, in 16 bits and in fp32, over those of its weights in 16 bits: measured as 22 bytes
a parameter on one rank [DeepSpeed, stage_1_and_2.py, step]."""

_DENSE: tuple[TensorClass, ...] = ("layers", "norms", "embedding", "head")


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Bytes on one accelerator at its fullest moment by class; numbers, or arrays of one shape.

    gathered: weights that are held unsharded, or cast.  buckets: gradients until they are reduced.  stage: place of the
    pipeline stage from 0.  later: gradients that the step makes after that moment, which is then the loss's.
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
    later: Any = 0.0

    @property
    def states(self) -> Any:
        """Model states, all gradients among them."""
        return self.parameters + self.gradients + self.later + self.master_weights + self.optimizer_state

    @property
    def buffers(self) -> Any:
        """Gathered weights and gradient buckets."""
        return self.gathered + self.buckets

    @property
    def tensors(self) -> Any:
        """All that is a tensor of the step."""
        return self.states - self.later + self.activations + self.buffers

    @property
    def total(self) -> Any:
        """All of it."""
        return self.tensors + self.runtime


@dataclass(frozen=True, slots=True)
class StageParts:
    """Bytes that a stage holds over a step by what they are for, each at its most; they are not all there at once.

    gathered: weights held unsharded.  made, casts: of weights, in forward, and those that backward begins with.
    waiting: whole gradients, until they are reduced.  buckets: gradients on their way while backward runs.  fresh:
    share of gradients, waiting ones too, whose memory is free until a step makes them.  second: gradient of a tied
    embedding as the table of tokens, before it is added to that of the head.  flat: of a rank's shard of gradients, in
    one piece, while DeepSpeed updates.
    """

    parameters: Any
    gradients: Any
    master_weights: Any
    optimizer_state: Any
    activations: StageActivations
    gathered: Any
    made: Any
    casts: Any
    waiting: Any
    buckets: Any
    fresh: Any
    second: Any
    stage: Any
    flat: Any = 0.0

    @property
    def one(self) -> Any:
        """What stands beside all gradients where the backward of a single micro-batch ends."""
        return np.maximum(self.activations.one, self.second)

    @property
    def begins(self) -> tuple[Any, Any]:
        """Whether backward is fuller as it begins with the loss than with the first layer at work, and the casts that
        are there then: all of forward's stay until its loss is made, which has less of the logits than its backward."""
        act = self.activations
        casts: Any = np.maximum(self.casts, self.made - act.late)
        at_loss: Any = act.logits + (casts - self.casts) > act.working + self.buckets
        return at_loss, pick(at_loss, casts, self.casts)

    @property
    def fullest(self) -> DeviceMemory:
        """The fullest of three moments: where backward begins, where a first micro-batch has left its gradients, and
        where DeepSpeed updates.

        Between them gradients grow as activations go, at one rate. A step with one micro-batch has none left in flight
        at the second moment, which is then the end of backward. Without the runtime's part.
        """
        act, again = self.activations, self.activations.again
        at_loss, held = self.begins
        top, flying = np.where(at_loss, act.logits, act.working), np.where(at_loss, 0.0, self.buckets)
        stacked = act.layers + act.embedding
        before, after = stacked + (act.head + top), again * stacked + (act.head + top)
        casts, left, value = held, flying, 0.0
        early: Any = False
        if np.any(again < 1):
            over = again == 0
            after, left = np.where(over, self.one, after), np.where(over, self.buckets, flying)
            casts, value = np.where(over, 0.0, casts), self.fresh * (self.gradients + self.waiting)
            early = before + flying + held > after + left + casts + value
        new = early * self.fresh
        memory = DeviceMemory(
            parameters=self.parameters,
            gradients=self.gradients * (1 - new),
            master_weights=self.master_weights,
            optimizer_state=self.optimizer_state,
            activations=pick(early, before, after),
            gathered=self.gathered + pick(early, held, casts),
            buckets=pick(early, flying, left) + self.waiting * (1 - new),
            runtime=0.0,
            stage=self.stage,
            later=self.gradients * new,
        )
        if not np.any(self.flat):
            return memory
        more = np.maximum(0.0, memory.states + self.flat - memory.tensors) * (self.flat > 0)
        return replace(memory, buckets=memory.buckets + more)


def width_of(policy: PrecisionPolicy) -> int:
    """Bytes of an activation: those of the type that most of them are saved in."""
    return int(policy.activations.bytes)


def memory_over(
    spec: TransformerSpec,
    layout: Layout,
    states: States,
    step: StepSettings,
    *,
    runtime: Runtime = MEASURED,
    stage: StageName | int | None = None,
) -> DeviceMemory:
    """The same for many layouts, sequence lengths and bytes per parameter at once, none of which is checked."""
    size, parts = in_parts(layout, states, step, _PIECE)
    out = {field.name: np.empty(size or (1,)) for field in fields(DeviceMemory)}
    for piece, degrees, some, how in parts:
        memory = _fullest(spec, degrees, some, how, runtime, stage)
        for name, values in out.items():
            values[piece] = getattr(memory, name)
    if size == ():
        return DeviceMemory(**{name: float(values[0]) for name, values in out.items()})
    return DeviceMemory(**out)


def bytes_over(
    spec: TransformerSpec, layout: Layout, states: States, step: StepSettings, *, runtime: Runtime = MEASURED
) -> npt.NDArray[np.float64]:
    """The total of `memory_over` alone, several times as fast where degrees and choices lie along axes of their own."""
    size, parts = in_parts(layout, states, step, _MANY)
    out = np.empty(size or (1,))
    for piece, degrees, some, how in parts:
        memory = parts_of(spec, degrees, some, how, runtime, _stages(degrees)).fullest
        by_stage, buffers = np.broadcast_arrays(memory.states - memory.later, memory.buffers)
        # More tensors never make the runtime's part smaller, so the fullest stage is known without it.
        tensors = out[piece]
        np.add(by_stage[0] + memory.activations[0], buffers[0], out=tensors)
        for item, active, buffer in zip(by_stage[1:], memory.activations[1:], buffers[1:], strict=True):
            np.maximum(tensors, item + active + buffer, out=tensors)
        tensors += _runtime(tensors, degrees, runtime)
    return out.reshape(size)


def _stages(degrees: Degrees) -> tuple[StageName, ...]:
    """Stages one of which is the fullest."""
    return _STAGES if np.any(degrees.pipeline > 1) else _STAGES[:1]


def _runtime(tensors: Any, degrees: Degrees, runtime: Runtime) -> Any:
    """What the runtime takes beside so many bytes of tensors."""
    return runtime_bytes(tensors, runtime.slack, runtime.context, process_groups(degrees), runtime.communicator)


def _fullest(
    spec: TransformerSpec,
    degrees: Degrees,
    states: States,
    step: StepSettings,
    runtime: Runtime,
    stage: StageName | int | None,
) -> DeviceMemory:
    """Of one stage, or at every point of the one with the largest total, the first among equals."""
    names = _stages(degrees) if stage is None else (stage,)
    memory = parts_of(spec, degrees, states, step, runtime, names).fullest
    memory = replace(memory, runtime=_runtime(memory.tensors, degrees, runtime))
    rows = {field.name: getattr(memory, field.name) for field in fields(memory)}
    # A part that is one number for all stages has no axis for them.
    rows = {name: row if np.ndim(row) else np.reshape(row, (1,)) for name, row in rows.items()}
    if len(names) == 1:
        return DeviceMemory(**{name: row[0] for name, row in rows.items()})
    total = memory.total
    second = total[1] > total[0]
    third = total[2] > np.maximum(total[0], total[1])

    def chosen(row: Any) -> Any:
        if len(row) == 1:
            return row[0]
        return pick(third, row[2], pick(second, row[1], row[0]))

    return DeviceMemory(**{name: chosen(row) for name, row in rows.items()})


def rank_of(
    spec: TransformerSpec, degrees: Degrees, which: tuple[StageName | int, ...]
) -> tuple[Stage, RankParameters]:
    """Stages by name or place, and the parameters of one rank of each."""
    stages = stages_of(modelled(spec), degrees, which)
    return stages, rank_parameters(pieces_of(spec, degrees), stages)


def parts_of(
    spec: TransformerSpec,
    degrees: Degrees,
    states: States,
    step: StepSettings,
    runtime: Runtime,
    which: tuple[StageName | int, ...],
) -> StageParts:
    """Of several stages, along a first axis, without what the runtime takes beside."""
    stages, rank = rank_of(spec, degrees, which)
    dense, shards = rank.dense, degrees.shards
    expert_shards = degrees.expert_shards if spec.experts else 1.0

    def part(field: str) -> Any:
        over = shared_over(field, degrees, shards)
        experts_over = shared_over(field, degrees, expert_shards) if spec.experts else 1.0
        here = on_device(field, degrees)
        if states.same is not None:
            return sharded_bytes(dense, over, rank.experts, experts_over, getattr(states.same, field) * here)
        weighed = sum(getattr(rank, name) * getattr(states.of[name], field) for name in _DENSE)
        experts = rank.experts * getattr(states.of["experts"], field)
        return sharded_bytes(weighed, over, experts, experts_over, here)

    gradient, again = states.of["layers"].gradients, step.implementation.regathers
    buckets = bucket_bytes(rank, degrees, gradient, runtime, regathers=again)
    waiting = waiting_bytes(rank, degrees, gradient, regathers=again)
    gathered = gathered_bytes(rank, degrees, states.gathered, runtime, states.ends, regathers=again)
    made, casts = cast_bytes(rank, degrees, states.cast, stages.layers, experts=not step.implementation.grouped_experts)
    pooled, layers = has_pool(degrees), (stages.layers - stages.moe_layers, stages.moe_layers)
    tied = spec.tied_head * (degrees.zero < 2) * (degrees.pipeline == 1)
    masters, flat = part("master"), 0.0
    if step.implementation.sharded_by == "DeepSpeed":
        updates = (degrees.zero > 0) & (degrees.zero < 3) & (degrees.offload == 0)
        each = states.of["layers"].parameters
        own = sharded_bytes(dense, shards, rank.experts, expert_shards, each)
        flat = np.where(updates & (masters > 0), FLAT_GRADIENTS * own, 0.0)
    return StageParts(
        parameters=part("parameters"),
        gradients=part("gradients"),
        master_weights=masters,
        optimizer_state=part("optimizer"),
        activations=stage_activation_bytes(spec, degrees, step, stage=stages.index, layers=layers),
        gathered=gathered + states.one_gradient,
        made=made,
        casts=casts,
        waiting=waiting + buckets * pooled,
        buckets=buckets * (1 - pooled),
        fresh=states.fresh * (1 - pooled),
        second=tied * rank.embedding * (gradient * states.fresh),
        stage=stages.index,
        flat=flat,
    )
