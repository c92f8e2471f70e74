"""The pipeline of one step in time: which stage works on which micro-batch when, and when it waits.

1F1B and its interleaved form, in the order in which Megatron-LM takes micro-batches and chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.limits import cached, limit
from core.step_time.parts import StepTime
from core.training.layout import Layout

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
    """The pipeline of a plan, with as many of its micro-batches as can be drawn."""
    many, stages, chunks = int(layout.micro_batches), int(layout.pipeline), int(layout.interleave)
    number = min(many, max(stages, limit("timeline_passes") // (2 * stages * chunks)))
    if chunks > 1:
        number = number // stages * stages if number >= stages else number
    each = 1 / (many * chunks)
    passes = ("matmul", "attention", "elementwise", "tensor", "context", "expert", "fixed")
    both = sum(float(getattr(step, name)) for name in passes) * each
    forward = both / (1 + _BACKWARD)
    rest = ("data", "optimizer", "jitter")
    return timeline(
        stages,
        chunks,
        number,
        forward,
        both - forward + float(step.recompute) * each,
        float(step.transfer) * each / 2,
        sum(float(getattr(step, name)) for name in rest),
    )


@cached("arrays_kept")
def timeline(
    stages: int, chunks: int, micro_batches: int, forward: float, backward: float, transfer: float, tail: float = 0.0
) -> Timeline:
    """The schedule of ``micro_batches`` through ``stages`` of ``chunks`` each.

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
    """What must be done before: the pass of the stage before it, or after it on the way back."""
    if not back:
        return (False, place - 1, micro) if place else None
    return (True, place + 1, micro) if place < last else (False, place, micro)


def _order(rank: int, stages: int, chunks: int, micro_batches: int) -> list[_Task]:
    """The passes of one stage in order: forward alone until the pipeline is full, then one of each, then backward."""
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
