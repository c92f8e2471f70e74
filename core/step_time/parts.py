"""One training step by what its time goes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from core.budget.equations import BudgetError
from core.training.layout import Counts

Software: TypeAlias = Literal["megatron", "compiled", "eager", "deepspeed 2021", "megatron tuned", "internevo", "jax"]
"""Whose steps are counted: Megatron’s; those of torch’s own sharding with compiled or hand-fused layers; of torch
operation by operation; of DeepSpeed as measured in 2021; of Megatron-Core for mixtures of experts from mid 2026; of
InternEvo, with kernels of its own; of MaxText, one program that XLA compiled."""

GROUPED: tuple[Software, ...] = ("compiled", "eager")
"""Software that multiplies by all experts of a rank in one grouped product: none is started by itself
[torch.nn.functional.grouped_mm, in transformers and torchtitan]."""

Tuning: TypeAlias = Literal["writers", "users", "nobody"]
"""Who made a run fast: those who wrote its software, those who run it, or nobody."""

TUNINGS: tuple[Tuning, ...] = get_args(Tuning)

Kernel: TypeAlias = Literal["newest", "fa2", "triton"]
"""Kernel of fused attention: the newest of the accelerator's vendor, FlashAttention-2, or its first form in Triton."""


@dataclass(frozen=True, slots=True)
class Running:
    """How a step is run, as far as its layout does not say.

    dtype: format of the products with weights; attention's own products, router and head stay in 16 bits. overlap:
    share of tensor- and data-parallel communication that runs beside computing; a number or an array. overlap_tensor:
    the same of tensor parallelism alone, where it differs. attention: see `Kernel`.  software: see `Software`.
    imbalance: tokens of the busiest rank's experts over their even share.  graphs: 0 where the host launches every
    kernel of a layer with experts by itself, as dropless routing without CUDA graphs makes it.  skips_last_product: 1
    where full recomputation ends with the last tensor that backward reads, so that a layer's last product, and what
    experts send back, is not done again, as torch's non-reentrant checkpoints do; Megatron's repeat the layer.
    scattered: see `handed_on`.  tuned_by: see `Tuning`; it decides how far off a step may be, not how long it takes.
    """

    dtype: str = "bf16"
    overlap: Counts | float = 1
    overlap_tensor: Counts | None = None
    attention: Kernel = "newest"
    software: Software = "megatron"
    imbalance: float = 1.0
    graphs: Counts = 1
    skips_last_product: Counts = 0
    scattered: Counts = 0
    tuned_by: Tuning = "users"

    def __post_init__(self) -> None:
        """Raise `BudgetError` for a kernel or software that is not known."""
        for field, kind in (("attention", Kernel), ("software", Software)):
            given, known = getattr(self, field), get_args(kind)
            if given not in known:
                names = ", ".join(repr(name) for name in known)
                raise BudgetError(field, f"{field} is {given!r}; known are {names}. For example: {known[0]!r}.")


AS_USUAL = Running()
"""16 bits, overlapped, the newest kernels."""


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step on the rank that takes longest; numbers, or arrays that broadcast.

    matmul, attention, elementwise: forward and backward of all micro-batches.  recompute: what backward computes
    again.  tensor, context, expert, data: communication that nothing hides.  transfer: activations from stage to stage.
    bubble: the pipeline's wait, and that for its fullest stage.  optimizer: the update.  fixed: launches and whatever
    else each layer, micro-batch and step costs whatever its size.  jitter: contention and stragglers.
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

    @cached_property
    def total(self) -> Any:
        """Seconds of the whole step."""
        return added_up(getattr(self, field.name) for field in fields(self))


def added_up(parts: Iterable[Any]) -> Any:
    """The sum of numbers and arrays that broadcast, small ones first: few additions then run over the whole."""
    return sum(sorted(parts, key=np.size))
