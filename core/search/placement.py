"""How far the groups of a layout spread, and when its pipeline stages work.

Ranks are numbered as Megatron-LM does by default: tensor first, then context, data, and pipeline last. Routed experts
are distributed over neighbors. The pipeline is 1F1B or its interleaved form, in the order of Megatron-LM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from core.limits import cached, limit
from core.step_time.running import StepTime
from core.training.device.traffic import Traffic
from core.training.layout import Layout

Kind: TypeAlias = Literal["tensor", "context", "expert", "data", "pipeline"]
"""A kind of parallelism."""

_TIMES: dict[Kind, str] = {
    "tensor": "tensor",
    "context": "context",
    "expert": "expert",
    "data": "data",
    "pipeline": "transfer",
}


@dataclass(frozen=True, slots=True)
class ParallelGroup:
    """One kind of parallelism that a plan uses.

    ranks: of one group.  stride: from one to the next.  nodes: over which a group spreads.  sent: bytes that one
    accelerator of a middle stage sends in a step.  exposed: seconds of the step that wait for it.
    """

    kind: Kind
    ranks: int
    stride: int
    nodes: int
    sent: float
    exposed: float

    @property
    def inside(self) -> bool:
        """Whether the group stays on the links of one node."""
        return self.nodes == 1


def groups(layout: Layout, step: StepTime, traffic: Traffic, node_size: int) -> tuple[ParallelGroup, ...]:
    """Return every kind of parallelism with more than one rank, from the one with the nearest neighbors."""
    t, c, d, p = (int(getattr(layout, name)) for name in ("tensor", "context", "data", "pipeline"))
    rows: list[tuple[Kind, int, int]] = [
        ("tensor", t, 1),
        ("context", c, t),
        ("expert", int(layout.expert), int(layout.expert_split)),
        ("data", d, t * c),
        ("pipeline", p, t * c * d),
    ]
    return tuple(
        ParallelGroup(
            kind,
            ranks,
            stride,
            _nodes(ranks, stride, node_size),
            float(getattr(traffic, kind)),
            float(getattr(step, _TIMES[kind])),
        )
        for kind, ranks, stride in rows
        if ranks > 1
    )


def _nodes(ranks: int, stride: int, node_size: int) -> int:
    """Return nodes over which the first group spreads, as few as any does where groups begin at a node's first
    place."""
    if stride >= node_size:
        return ranks
    return math.ceil(ranks / max(1, node_size // stride))


_BACKWARD = 2.0
"""Backward multiplies twice as much as forward: by the weights and by what forward saved."""

_Task: TypeAlias = tuple[bool, int, int]
"""Whether it is a backward pass, its chunk, its micro-batch."""


@dataclass(frozen=True, eq=False, slots=True)
class Timeline:
    """Every pass of every stage, as columns of one length; seconds from the start of the step.

    micro_batches: how many are in it, which may be fewer than the step has.  tail: seconds after the pipeline, for what
    data parallelism does not hide and the optimizer.
    """

    stage: npt.NDArray[np.int64]
    chunk: npt.NDArray[np.int64]
    micro_batch: npt.NDArray[np.int64]
    backward: npt.NDArray[np.bool_]
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    stages: int
    micro_batches: int
    tail: float

    @property
    def length(self) -> float:
        """Seconds until the last stage is done."""
        return float(self.end.max())

    @property
    def waiting(self) -> float:
        """Share of the stages' time in which they wait."""
        return 1 - float((self.end - self.start).sum()) / (self.stages * self.length)


def timeline_of(layout: Layout, step: StepTime) -> Timeline:
    """Return the timeline of a layout's pipeline, with as many micro-batches as can be drawn, and without
    contention."""
    many, stages, chunks = int(layout.micro_batches), int(layout.pipeline), int(layout.interleave)
    number = min(many, max(stages, limit("timeline_passes") // (2 * stages * chunks)))
    if chunks > 1:
        number = number // stages * stages if number >= stages else number
    each = 1 / (many * chunks)
    passes = ("matmul", "attention", "elementwise", "tensor", "context", "expert", "fixed")
    both = sum(float(getattr(step, name)) for name in passes) * each
    forward = both / (1 + _BACKWARD)
    return timeline(
        stages,
        chunks,
        number,
        forward,
        both - forward + float(step.recompute) * each,
        float(step.transfer) * each / 2,
        float(step.data) + float(step.optimizer),
    )


@cached("arrays_kept")
def timeline(
    stages: int, chunks: int, micro_batches: int, forward: float, backward: float, transfer: float, tail: float = 0.0
) -> Timeline:
    """Return the schedule of ``micro_batches`` through ``stages`` of ``chunks`` each.

    forward, backward: seconds of one chunk's pass.  transfer: seconds from one stage to the next.
    """
    orders = [_order(rank, stages, chunks, micro_batches) for rank in range(stages)]
    done: dict[tuple[bool, int, int], float] = {}
    free, at = [0.0] * stages, [0] * stages
    rows: list[tuple[int, int, int, bool, float, float]] = []
    last = stages * chunks - 1
    left = sum(len(order) for order in orders)
    while left:
        before = left
        for rank, order in enumerate(orders):
            while at[rank] < len(order):
                back, chunk, micro = order[at[rank]]
                place = chunk * stages + rank
                needs = _needs(back, place, last, micro)
                if needs is not None and needs not in done:
                    break
                sent = 0.0 if needs is None or needs[1] == place else transfer
                start = max(free[rank], done[needs] + sent) if needs is not None else free[rank]
                free[rank] = done[back, place, micro] = start + (backward if back else forward)
                rows.append((rank, chunk, micro, back, start, free[rank]))
                at[rank] += 1
                left -= 1
        if left == before:
            raise ValueError(f"no schedule of {micro_batches} micro-batches over {stages} stages of {chunks}")
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    named = dict(zip((field.name for field in fields(Timeline)), columns, strict=False))
    return Timeline(**named, stages=stages, micro_batches=micro_batches, tail=tail)


def _needs(back: bool, place: int, last: int, micro: int) -> tuple[bool, int, int] | None:
    """Return what must be done before: the pass of the stage before it, or after it on the way back."""
    if not back:
        return (False, place - 1, micro) if place else None
    return (True, place + 1, micro) if place < last else (False, place, micro)


def _order(rank: int, stages: int, chunks: int, micro_batches: int) -> list[_Task]:
    """Return the passes of one stage in order: forward alone until the pipeline is full, then one of each, then
    backward."""
    group = min(stages, micro_batches)
    forward: list[_Task] = []
    backward: list[_Task] = []
    for first in range(0, micro_batches, group):
        members = range(first, min(first + group, micro_batches))
        forward += [(False, chunk, micro) for chunk in range(chunks) for micro in members]
        backward += [(True, chunk, micro) for chunk in reversed(range(chunks)) for micro in members]
    ahead = stages - rank - 1
    warm = ahead if chunks == 1 else 2 * ahead + (chunks - 1) * group
    warm = min(warm, len(forward))
    order = forward[:warm]
    for i in range(len(forward) - warm):
        order += [forward[warm + i], backward[i]]
    return order + backward[len(forward) - warm :]
