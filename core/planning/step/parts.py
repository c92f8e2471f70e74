"""One training step by what its time goes to."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from core.training.layout import Counts


@dataclass(frozen=True, slots=True)
class Running:
    """How a step is run, as far as its layout does not say.

    dtype: format of the products with weights; attention's own products, router and head stay in 16 bits.
    overlap: 1 where tensor- and data-parallel communication runs beside computing; a number or an array.
    """

    dtype: str = "bf16"
    overlap: Counts = 1


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step on the rank that takes longest; numbers, or arrays that broadcast.

    matmul, attention, elementwise: forward and backward of all micro-batches.  recompute: what backward computes
    again.  tensor, context, expert, data: communication that nothing hides.  transfer: activations from stage to stage.
    bubble: the pipeline's wait, and that for its fullest stage.  optimizer: the update.  fixed: launches and whatever
    else each layer, micro-batch and step costs whatever its size.  jitter: stragglers and contention at scale.
    """

    matmul: Any
    attention: Any
    elementwise: Any
    recompute: Any
    tensor: Any
    context: Any
    expert: Any
    transfer: Any
    bubble: Any
    data: Any
    optimizer: Any
    fixed: Any
    jitter: Any

    @property
    def total(self) -> Any:
        """Seconds of the whole step."""
        return sum(getattr(self, one.name) for one in fields(self))
