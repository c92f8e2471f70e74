"""Where a plan's shards lie: which accelerator holds which, and which link carries what each kind of parallelism sends.

Ranks are numbered as Megatron-LM does by default: tensor first, then context, data, and pipeline last; routed experts
are spread over neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.step_time.parts import StepTime
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
class RankPlace:
    """One accelerator: its number, node, and which shard of each kind it holds, from 0."""

    rank: int
    node: int
    tensor: int
    context: int
    data: int
    pipeline: int


def place_of(layout: Layout, rank: int, node_size: int) -> RankPlace:
    """Where the accelerator ``rank`` stands."""
    left, tensor = divmod(rank, int(layout.tensor))
    left, context = divmod(left, int(layout.context))
    pipeline, data = divmod(left, int(layout.data))
    return RankPlace(rank, rank // node_size, tensor, context, data, pipeline)


def rank_at(layout: Layout, *, tensor: int = 0, context: int = 0, data: int = 0, pipeline: int = 0) -> int:
    """The number of the accelerator that holds these shards."""
    return tensor + int(layout.tensor) * (context + int(layout.context) * (data + int(layout.data) * pipeline))


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
        """Whether it stays on the links of one node."""
        return self.nodes == 1


def groups(layout: Layout, step: StepTime, traffic: Traffic, node_size: int) -> tuple[ParallelGroup, ...]:
    """Every kind of parallelism with more than one rank, from the one with the nearest neighbours."""
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
    """Nodes over which the first group spreads, as few as any does where groups begin at a node's first place."""
    if stride >= node_size:
        return ranks
    return math.ceil(ranks / max(1, node_size // stride))
