"""Memory of the fullest accelerator over one step: what rises layer by layer, what falls, and where it is highest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.training.activations.stage import in_flight
from core.training.device.memory import parts_of, rank_of
from core.training.device.setup import Setup
from core.training.layout import degrees_of

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
    )
    return StepCurve(tuple(phases), bytes_by_class, layers, flying)
