"""Which operands a batched matmul copies before it multiplies, and why: torch's rule, without torch.

``bmm`` takes three dimensions, (batch, rows, columns). So torch broadcasts what stands before the last two, and
reshapes it to one dimension: a view where the strides allow it, else a copy that is freed when the product is done.
Where one operand has at most two dimensions, the rows of the other are stacked into one matrix instead, and nothing is
copied. Source: https://docs.pytorch.org/docs/stable/generated/torch.matmul.html
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.tensors.layout import Layout
from core.tensors.view_rule import explain_view


@dataclass(frozen=True, slots=True)
class OperandCopy:
    """One operand that is copied. operand: 0 or 1. elements: of the copy. reason: the end of a sentence."""

    operand: int
    elements: int
    reason: str


def operand_copies(left: Layout, right: Layout) -> tuple[OperandCopy, ...]:
    """The operands of ``left @ right`` that are copied to have one batch dimension; none where torch stacks rows."""
    if max(left.rank, right.rank) < 3 or not left.numel or not right.numel:
        return ()
    if min(left.rank, right.rank) < 3 and _stacks(left if left.rank >= right.rank else _transposed(right)):
        return ()
    matrices = [left if left.rank > 1 else _row(left), right if right.rank > 1 else _transposed(_row(right))]
    batch = _broadcast(matrices[0].shape[:-2], matrices[1].shape[:-2])
    copies: list[OperandCopy] = []
    for number, matrix in enumerate(matrices):
        opened = Layout(
            (*batch, *matrix.shape[-2:]), (*_strides(matrix, batch), *matrix.stride[-2:]), offset=matrix.offset
        )
        verdict = explain_view(opened, (math.prod(batch), *matrix.shape[-2:]))
        edge = verdict.boundary
        if edge is not None:
            why = f"dimensions {edge.left} and {edge.right} are not one batch, {edge.arithmetic}"
            copies.append(OperandCopy(number, opened.numel, why))
    return tuple(copies)


def _stacks(layout: Layout) -> bool:
    """Whether all dimensions but the last are one matrix's rows without a copy."""
    outer = zip(layout.stride[:-2], layout.stride[1:-1], layout.shape[1:-1], strict=True)
    return all(stride == inner * size for stride, inner, size in outer)


def _transposed(layout: Layout) -> Layout:
    if layout.rank < 2:
        return layout
    return layout.permuted((*range(layout.rank - 2), layout.rank - 1, layout.rank - 2))


def _row(layout: Layout) -> Layout:
    return Layout((1, *layout.shape), (layout.shape[0] * layout.stride[0], *layout.stride), layout.offset)


def _broadcast(first: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(first), len(other))
    shapes = [(1,) * (rank - len(shape)) + shape for shape in (first, other)]
    return tuple(b if a == 1 else a for a, b in zip(*shapes, strict=True))


def _strides(matrix: Layout, batch: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of the batch dimensions once they are expanded: 0 where one index is read many times."""
    missing = len(batch) - (matrix.rank - 2)
    sizes, strides = (1,) * missing + matrix.shape[:-2], (0,) * missing + matrix.stride[:-2]
    return tuple(0 if size != wanted else step for size, step, wanted in zip(sizes, strides, batch, strict=True))
