"""Which operands a batched matmul copies before it multiplies, and why.

``bmm`` takes three dimensions, (batch, rows, columns). So torch broadcasts what stands before the last two, and
reshapes it to one dimension: a view where the strides allow it, else a copy that is freed when the product is done.
Source: https://docs.pytorch.org/docs/stable/generated/torch.matmul.html
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.messages import Message, message
from core.tensors.layout import TensorLayout
from core.tensors.view_rule import explain_view


@dataclass(frozen=True, slots=True)
class OperandCopy:
    """One operand that is copied. operand: 0 or 1. elements: of the copy. reason: the end of a sentence."""

    operand: int
    elements: int
    reason: Message


def operand_copies(left: TensorLayout, right: TensorLayout) -> tuple[OperandCopy, ...]:
    """Return the operands of ``left @ right`` that are copied to have one batch dimension; none where torch stacks
    rows."""
    if left.rank < 2 or right.rank < 2 or min(left.rank, right.rank) == 2:
        return ()
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    copies: list[OperandCopy] = []
    for number, side in enumerate((left, right)):
        missing = len(batch) - (side.rank - 2)
        strides = [
            0 if size == 1 and wide != 1 else stride
            for size, stride, wide in zip(side.shape[:-2], side.stride[:-2], batch[missing:], strict=True)
        ]
        opened = TensorLayout((*batch, *side.shape[-2:]), (*[0] * missing, *strides, *side.stride[-2:]), side.offset)
        edge = explain_view(opened, (math.prod(batch), *side.shape[-2:])).boundary
        if edge is not None:
            dims = float(edge.left), float(edge.right)
            why = message("tensors.inside.batch", left=dims[0], right=dims[1], rule=edge.arithmetic)
            copies.append(OperandCopy(number, opened.numel, why))
    return tuple(copies)
