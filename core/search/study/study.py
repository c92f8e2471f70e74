"""A study: one search for every combination of models, clusters, batches, lengths, precisions and optimizers.

A study is counted and taken apart without listing its points, so that one of many costs no more than one of few.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from core.hardware.cluster import Cluster
from core.models.spec import TransformerSpec
from core.search.constraints import Constraints

_CHUNKS = 512
"""A study has about so many chunks at most: each is a file, and a task for a worker."""


class StudyError(ValueError):
    """A study that cannot be read, run or kept. field: what of the study file is at fault; empty for all else."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class StudyPoint:
    """One search of a study. index: its place in the study's order, in which the optimizer changes fastest.

    model: the name of ``spec`` in the study.  batch: sequences of one step.  policy, optimizer: by name.
    """

    index: int
    model: str
    spec: TransformerSpec
    cluster: Cluster
    batch: int
    seq_len: int
    policy: str
    optimizer: str


@dataclass(frozen=True, slots=True)
class Study:
    """A grid of searches. Every field with several values is an axis.

    models: each with its name.  batches: sequences of one step.  software: that trains, by name.  tokens: of the whole
    training run; None where days are not asked for.  constraints: of every search.  top: plans kept of each point.
    """

    models: tuple[tuple[str, TransformerSpec], ...]
    clusters: tuple[Cluster, ...]
    batches: tuple[int, ...]
    lengths: tuple[int, ...]
    policies: tuple[str, ...]
    optimizers: tuple[str, ...]
    software: str
    tokens: float | None
    constraints: Constraints
    top: int

    @property
    def _axes(self) -> tuple[int, ...]:
        axes = (self.models, self.clusters, self.batches, self.lengths, self.policies, self.optimizers)
        return tuple(map(len, axes))

    @property
    def count(self) -> int:
        """Points of the grid."""
        return math.prod(self._axes)

    @property
    def _per_chunk(self) -> int:
        return -(-self.count // _CHUNKS)

    @property
    def chunk_count(self) -> int:
        """Chunks that the points are taken in."""
        return -(-self.count // self._per_chunk)

    def point(self, index: int) -> StudyPoint:
        """One point, by its place."""
        at: list[int] = []
        left = index
        for length in reversed(self._axes):
            left, place = divmod(left, length)
            at.append(place)
        optimizer, policy, length, batch, cluster, model = at
        name, spec = self.models[model]
        return StudyPoint(
            index=index,
            model=name,
            spec=spec,
            cluster=self.clusters[cluster],
            batch=self.batches[batch],
            seq_len=self.lengths[length],
            policy=self.policies[policy],
            optimizer=self.optimizers[optimizer],
        )

    def chunk(self, index: int) -> tuple[StudyPoint, ...]:
        """Points that are searched, kept and, should it come to that, lost together: neighbours."""
        size = self._per_chunk
        return tuple(map(self.point, range(index * size, min((index + 1) * size, self.count))))

    @property
    def digest(self) -> str:
        """Names the study by all that is in it, the data of its accelerators included."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:32]
