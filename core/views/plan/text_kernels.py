"""What PyTorch does in fp32 for lack of a narrower or a fused kernel, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from core.planning.memory_estimate import MemoryEstimate
from core.training.activations.tensors import IMPLEMENTATIONS


def in_fp32(h: MemoryEstimate) -> Iterator[str]:
    """What stays wide, and what avoids it; mostly nothing."""
    how = h.step.implementation
    if h.spec.experts and how.grouped_experts and how.autocasts:
        yield (
            "**Autocast leaves routed experts in fp32:** PyTorch multiplies them one after another, several times "
            "slower, and keeps twice the bytes. Weights stored in bf16 avoid both."
        )
    if not how.flash and IMPLEMENTATIONS[h.plan.runtime_options.implementation].flash:
        yield (
            "**In fp32 attention keeps its square of scores:** PyTorch’s fused kernels share no keys among heads then. "
            "Autocast or bf16 avoids it."
        )
