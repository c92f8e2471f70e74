"""What one measuring of collectives shall do: operations, sizes, dtype, seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.limits import limit
from core.units import format_bytes

METHOD = "collectives-1"
"""Version of the method, stamped on every result. Results of different versions are not comparable.

Every size of every operation gets an equal share of the seconds, a fifth of it to warm up. The ranks meet at a barrier
before each run, and a run takes as long as on the slowest of them, until its device has finished.
"""

Name: TypeAlias = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ring", "pairs"]
Dtype: TypeAlias = Literal["fp32", "bf16"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One way to exchange. times: how often the message passes a link, less each rank's own part; 0 point to point.

    size: which buffer of a rank has the bytes of the message, as nccl-tests counts.
    """

    times: int
    what: str
    size: str


OPERATIONS: Mapping[Name, Operation] = {
    "all-reduce": Operation(2, "every rank gets the sum of all ranks’ buffers", "each rank’s buffer"),
    "all-gather": Operation(1, "every rank gets the parts of all ranks", "the whole that each rank gets"),
    "reduce-scatter": Operation(1, "every rank gets its part of the sum", "the whole that each rank gives"),
    "all-to-all": Operation(1, "every rank sends each rank another part", "all parts that one rank sends"),
    "ring": Operation(0, "every rank sends to the next and receives from the one before", "what one rank sends"),
    "pairs": Operation(0, "the first half of the ranks send to the second half, at once", "what one rank sends"),
}
"""What is measured, in this order. The last two are point to point: bus and algorithm bandwidth are one."""

ITEM_BYTES: Mapping[Dtype, int] = {"fp32": 4, "bf16": 2}

MIN_RUNS = 5
"""A size is timed if so many runs are expected to fit into its share of the seconds."""

MOST_RUNS = 1_000
"""More runs of a size say nothing new."""

STEP = 4
"""Each size is so many times the one before it."""

MIN_TIMEOUT_S = 1.0


def size_text(size: float) -> str:
    """A message's size as people say it: 64 KiB."""
    return format_bytes(size, system="binary", digits=3)


@dataclass(frozen=True, slots=True)
class Spec:
    """One measuring: sizes from ``smallest`` to ``largest`` bytes in about ``seconds`` in all.

    timeout_s: the longest that any step may take before a rank gives up on the others. Raises ``ValueError`` outside
    the caps of `core.limits`.
    """

    seconds: float = 120.0
    smallest: int = 1 << 10
    largest: int = 1 << 30
    dtype: Dtype = "fp32"
    timeout_s: float = 120.0

    def __post_init__(self) -> None:
        most = limit("collective_seconds")
        if not (math.isfinite(self.seconds) and 0 < self.seconds <= most):
            raise ValueError(f"--seconds is {self.seconds:g}; it is more than 0 and at most {most:,}.")
        if not (math.isfinite(self.timeout_s) and MIN_TIMEOUT_S <= self.timeout_s <= most):
            raise ValueError(f"--timeout is {self.timeout_s:g}; it is from {MIN_TIMEOUT_S:g} to {most:,}.")
        top = limit("collective_bytes")
        if not 1 <= self.smallest <= self.largest <= top:
            raise ValueError(
                f"Sizes from {self.smallest:,} to {self.largest:,} bytes are none; they are from 1 to {top:,}, the "
                "smallest first. For example: --smallest 1024 --largest 1073741824"
            )

    def ladder(self, ranks: int) -> tuple[int, ...]:
        """The sizes in bytes, rounded down to as many elements for every rank; none where there is not one for each."""
        step = ranks * ITEM_BYTES[self.dtype]
        sizes: list[int] = []
        size = self.smallest
        while size <= self.largest:
            sizes.append(size // step * step)
            size *= STEP
        return tuple(dict.fromkeys(size for size in sizes if size))

    def share_s(self, ranks: int) -> float:
        """Seconds of one size of one operation."""
        return self.seconds / max(len(self.ladder(ranks)) * len(OPERATIONS), 1)
