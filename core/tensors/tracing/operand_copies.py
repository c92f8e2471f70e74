"""Which operands a batched matmul copies before it multiplies, and why: seen on torch's meta device, without memory.

``bmm`` takes three dimensions, (batch, rows, columns). So torch broadcasts what stands before the last two, and
reshapes it to one dimension: a view where the strides allow it, else a copy that is freed when the product is done.
Source: https://docs.pytorch.org/docs/stable/generated/torch.matmul.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.tensors.layout import TensorLayout
from core.tensors.tracing.recording import layout_of, storage_identity
from core.tensors.tracing.trace import load_torch
from core.tensors.view_rule import explain_view


@dataclass(frozen=True, slots=True)
class OperandCopy:
    """One operand that is copied. operand: 0 or 1. elements: of the copy. reason: the end of a sentence."""

    operand: int
    elements: int
    reason: str


def operand_copies(left: TensorLayout, right: TensorLayout) -> tuple[OperandCopy, ...]:
    """The operands of ``left @ right`` that are copied to have one batch dimension; none where torch stacks rows."""
    torch, _ = load_torch()
    from torch.utils._python_dispatch import TorchDispatchMode

    operands = [torch.empty_strided(side.shape, side.stride, device="meta") for side in (left, right)]
    cloned: list[Any] = []
    copies: list[OperandCopy] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if func.name() == "aten::clone":
                cloned.append(args[0])
            elif func.name() == "aten::_unsafe_view" and cloned:  # the clone has its new shape
                opened = cloned.pop()
                edge = explain_view(layout_of(opened), tuple(result.shape)).boundary
                number = [storage_identity(operand) for operand in operands].index(storage_identity(opened))
                if edge is not None:
                    why = f"dimensions {edge.left} and {edge.right} are not one batch, {edge.arithmetic}"
                    copies.append(OperandCopy(number, opened.numel(), why))
            return result

    with Watch():
        torch.matmul(*operands)
    return tuple(copies)
