"""The peak of a step on a device, the largest batch that it holds, and how its bytes come about."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.formula import Explanation
from core.limits import limit
from core.models.spec import SpecError, TransformerSpec
from core.training.activations.derivation import explain_stage
from core.training.activations.stage import in_flight
from core.training.device.buffers import device_bytes, process_groups, runtime_bytes, sharded_bytes
from core.training.device.inputs import on_device, shared_over
from core.training.device.memory import Setup, parts_of, rank_of
from core.training.layout import Layout, LayoutError, degrees_of
from core.training.memory import PARTS

_TRIED = 1024
"""Candidates worked out at once; each round narrows the range by as much."""


def _largest(fits: Callable[[npt.NDArray[np.int64]], Any], most: int) -> int:
    """The largest whole number up to ``most`` that fits, where all smaller ones do; 0 where 1 does not."""
    low, high = 0, most + 1
    while high - low > 1:
        tried = np.unique(np.linspace(low, high, min(_TRIED, high - low) + 1).astype(np.int64)[1:-1])
        if not len(tried):
            tried = np.array([low + 1])
        good = np.asarray(fits(tried), dtype=bool)
        first = int(np.argmin(good)) if not good.all() else len(tried)
        low, high = int(tried[first - 1]) if first else low, int(tried[first]) if first < len(tried) else high
    return low


def largest_micro_batch(setup: Setup, most: int = 65_536) -> int:
    """Sequences of the largest micro-batch that fits, all else as it is; 0 where one is too many."""
    return _largest(lambda sizes: setup.account(replace(setup.layout, micro_batch=sizes)).total <= setup.memory, most)


def split_sequence(layout: Layout) -> int:
    """Into how many equal pieces a layout cuts a sequence."""
    return int(layout.context) * (int(layout.tensor) if layout.sequence_parallel else 1)


def largest_seq_len(setup: Setup) -> int:
    """The longest sequence that fits, a multiple of the ranks that split it; 0 where none does."""
    each = split_sequence(setup.layout)
    most = limit("model_dimension") // each
    return each * _largest(lambda times: setup.account(setup.layout, seq_len=times * each).total <= setup.memory, most)


def most_layers(setup: Setup) -> int:
    """Layers of the deepest model of such layers that fits the layout; 0 where not even the fewest do."""
    chunks = int(setup.layout.pipeline * setup.layout.interleave)  # embedding and head fill two of them

    def exceeds(layers: int) -> bool:
        with suppress(LayoutError, SpecError):
            return not replace(setup, spec=_deepened(setup.spec, layers)).fits
        return True

    depths = range(max(int(setup.layout.pipeline), chunks - 2), limit("model_layers") + 1)
    return next(reversed(depths[: bisect_left(depths, True, key=exceeds)]), 0)


def _deepened(spec: TransformerSpec, layers: int) -> TransformerSpec:
    """The model with so many layers, in proportion of each kind."""
    changes: dict[str, Any] = {"layers": layers}
    if spec.experts:
        dense = min(layers, round(spec.experts.dense_layers * layers / spec.layers))
        changes["experts"] = replace(spec.experts, dense_layers=dense)
    if mixer := spec.mixer:
        changes["mixer"] = replace(mixer, layers=max(1, round(mixer.layers * layers / spec.layers)))
    return replace(spec, **changes)


Phase: TypeAlias = Literal["start", "forward", "loss", "steady", "backward", "optimizer"]
"""What runs at a point: "loss" on the last pipeline stage only, "steady" while backward of one micro-batch alternates
with forward of another."""

CLASSES = ("parameters", "gradients", "master_weights", "optimizer_state", "activations", "buffers", "runtime")
"""The classes of a curve: fields of `DeviceMemory`, in stacking order."""


@dataclass(frozen=True, slots=True)
class StepCurve:
    """Bytes by class at every point of one step.

    phases: of each point. layers: layers of the stage, one point each. in_flight: micro-batches whose activations the
    stage holds when it is fullest.
    """

    phases: tuple[Phase, ...]
    bytes: Mapping[str, npt.NDArray[np.float64]]
    layers: int
    in_flight: float

    @property
    def total(self) -> npt.NDArray[np.float64]:
        """Bytes at every point."""
        return np.sum([self.bytes[name] for name in CLASSES], axis=0)

    @property
    def moments(self) -> Mapping[Phase, int]:
        """The point at which each phase begins, the first time."""
        return {phase: self.phases.index(phase) for phase in dict.fromkeys(self.phases)}

    @property
    def peak(self) -> int:
        """The first point at which most is held."""
        return int(np.argmax(self.total))


def through_one_step(setup: Setup) -> StepCurve:
    """The curve of the fullest stage: forward of the micro-batches it holds at once, one more turn of 1F1B, backward.

    Gradients grow layer by layer in the first micro-batch's backward and stay until the optimizer is done; those in a
    buffer of their own stay from step to step. What the allocator reserved it keeps. The highest point is the account's
    total.
    """
    memory, degrees = setup.device_memory, degrees_of(setup.layout)
    place = int(memory.stage)
    stage, _ = rank_of(setup.spec, degrees, (place,))
    states = setup.states
    parts = parts_of(setup.spec, degrees, states, setup.step, setup.runtime, (place,))
    act = parts.activations

    def size(value: Any) -> float:
        return float(np.ravel(value)[0])

    layers, last = int(size(stage.layers)), bool(size(stage.last))
    flying = size(in_flight(setup.layout, place))
    whole = math.ceil(flying)
    # Micro-batches held, layer by layer; where stages interleave, the last of them is a part of one.
    rise = np.minimum(flying, np.arange(1, whole * layers + 1) / max(1, layers))
    dip = np.maximum(0.0, flying - np.arange(1, layers + 1) / max(1, layers))
    turn = np.concatenate([dip, dip[::-1], [flying]]) if setup.layout.micro_batches > flying else np.empty(0)
    fall = np.concatenate([[flying], rise[::-1][1:], [0.0]])

    runs: tuple[tuple[Phase, npt.NDArray[np.float64]], ...] = (
        ("start", np.zeros(1)),
        ("forward", rise),
        ("loss", np.full(int(last), flying)),
        ("steady", turn),
        ("backward", fall),
        ("optimizer", np.zeros(1)),
    )
    phases: list[Phase] = [phase for phase, held_then in runs for _ in held_then]
    flown = np.concatenate([held_then for _, held_then in runs])
    share, at = flown / flying, np.array(phases)
    back = np.isin(at, ("steady", "backward"))
    begins = (at == "loss") | (back & (share == 1.0))
    # What backward begins with: the loss, or the first layer at work with the buckets of its gradients.
    working, buckets = size(act.working), size(parts.buckets)
    fuller, held = (size(value) for value in parts.begins)
    at_loss = begins & bool(fuller)
    top = np.where(at_loss, size(act.logits), np.where(back, working, 0.0))
    ended = (at == "backward") & (flown == 0)
    stacked = share * size(act.layers + act.embedding) + begins * size(act.head) + top
    # Gradients made so far: none in forward, all of them once a micro-batch has gone back.
    gradient_share = np.maximum.accumulate(np.where(back, np.clip(flying - flown, 0.0, 1.0), at == "optimizer"))
    gradient_share = parts.fresh * gradient_share + (1 - parts.fresh)
    running = ~np.isin(at, ("start", "optimizer"))
    values = np.ones(len(at)) if degrees.once_a_step(setup.implementation.regathers) else running
    bytes_by_class = {name: np.full(len(at), float(getattr(memory, name))) for name in CLASSES}
    bytes_by_class["gradients"] = gradient_share * size(parts.gradients)
    bytes_by_class["activations"] = np.where(ended, size(parts.one), stacked)
    casts = np.where(at_loss, held, np.where(back, size(parts.casts), size(parts.made)))
    bytes_by_class["buffers"] = (
        values * size(parts.gathered)
        + running * (np.minimum(flown, 1.0) * casts + gradient_share * size(parts.waiting))
        + (back & ~at_loss) * buckets
        + (at == "optimizer") * size(parts.flat)
    )
    return StepCurve(tuple(phases), bytes_by_class, layers, flying)


def explain_device(setup: Setup) -> tuple[Explanation, ...]:
    """The steps to what the fullest accelerator holds: states, activations, runtime, and their sum.

    Bytes per parameter are those of the layers' matrices; parts that are none or lie on the host are left out.
    """
    memory, runtime = setup.device_memory, setup.runtime
    degrees = degrees_of(setup.layout)
    stages, rank = rank_of(setup.spec, degrees, (int(memory.stage),))
    dense, experts = (float(np.ravel(value)[0]) for value in (rank.dense, rank.experts))
    layers, experts_layers = (float(np.ravel(value)[0]) for value in (stages.layers, stages.moe_layers))
    each = setup.states.of["layers"]
    explanations: list[Explanation] = []
    for field, name in PARTS.items():
        size = float(getattr(each, field))
        if not size or not on_device(field, degrees):
            continue
        shards, expert_shards = (
            float(shared_over(field, degrees, ranks)) for ranks in (degrees.shards, degrees.expert_shards)
        )
        step = sharded_bytes.explain(
            dense=dense, shards=shards, experts=experts, expert_shards=expert_shards, each=size
        )
        explanations.append(step.about(name))
    explanations += explain_stage(
        setup.spec,
        setup.layout,
        setup.step,
        stage=int(memory.stage),
        layers=(layers - experts_layers, experts_layers),
    )
    groups = float(process_groups(degrees))
    explanations.append(
        runtime_bytes.explain(
            tensors=memory.tensors,
            slack=runtime.slack,
            context=runtime.context,
            groups=groups,
            communicator=runtime.communicator,
        )
    )
    there = memory.states - memory.later
    parts = {"states": there, "activations": memory.activations, "buffers": memory.buffers, "runtime": memory.runtime}
    explanations.append(device_bytes.explain(**parts))
    return tuple(explanations)
