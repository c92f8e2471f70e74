"""Amounts by what divides them over tensor-parallel ranks, summed over a model's operations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from core.models.operation import AttentionCore, Op, Split


class DividedAmount(defaultdict[float, float]):
    """An amount by the most ranks that divide it: one, so many as there are key/value heads, or any number."""

    def __init__(self) -> None:
        super().__init__(float)

    def on(self, ranks: Any) -> Any:
        """Return the amount on one of ``ranks`` ranks, a number or an array."""
        return sum(amount / np.minimum(ranks, most) for most, amount in self.items())


def most_ranks(split: Split, ops: Iterable[Op]) -> float:
    """Return the most ranks that divide a tensor, one of an expert among those that share the expert.

    ops: the operation that makes the tensor and those after it, of which attention knows its key/value heads.
    """
    if split == "kv":
        core = next(op for op in ops if type(op) is AttentionCore)
        return core.kv_heads if core.kv_heads < core.heads else math.inf
    return math.inf if split in ("tensor", "expert tensor") else 1.0
