"""How one training step is laid out over accelerators: degrees of parallelism, micro-batches, what is recomputed.

Every field may be a number or an integer array; arrays broadcast against each other, so that one layout can stand for
a million.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Counts: TypeAlias = "int | npt.NDArray[np.int64]"
"""Whole numbers, or arrays of them that broadcast."""


class Recompute(IntEnum):
    """What the backward pass computes again instead of reading what forward saved."""

    NONE = 0
    SELECTIVE = 1
    FULL = 2


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees and batch of one step. Accelerators = tensor · pipeline · context · data.

    interleave: model chunks on each pipeline stage, 1 for plain 1F1B.  expert: ranks over which routed experts are
    spread; they lie inside tensor · context · data.  micro_batch: sequences of one micro-batch on one data-parallel
    rank.  micro_batches: of one step, one after the other through a pipeline or accumulated.
    zero: ZeRO stage 0 to 3, 3 being FSDP.  shard_group: ranks over which ZeRO shards; 0 takes all of data · context,
    fewer is HSDP.  sequence_parallel: 1 where norms and residuals are split over the tensor-parallel ranks.
    recompute: a `Recompute`.  offload: 1 where optimizer state and master weights live in the host's memory.
    """

    tensor: Counts = 1
    pipeline: Counts = 1
    interleave: Counts = 1
    context: Counts = 1
    expert: Counts = 1
    data: Counts = 1
    micro_batch: Counts = 1
    micro_batches: Counts = 1
    zero: Counts = 0
    shard_group: Counts = 0
    sequence_parallel: Counts = 0
    recompute: Counts = 0
    offload: Counts = 0

    @property
    def accelerators(self) -> Counts:
        """Accelerators that the layout takes."""
        return self.tensor * self.pipeline * self.context * self.data
