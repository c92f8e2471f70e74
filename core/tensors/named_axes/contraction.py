"""Multiplies named layouts two at a time, as torch's einsum does: who is batch, M, N and K, and which operand copies.

Each pair becomes one ``bmm``: both operands are permuted and reshaped to (batch, M, K) and (batch, K, N), which is a
view or a copy as the layout algebra says; where nothing is summed it is an elementwise product.
Source: https://docs.pytorch.org/docs/stable/generated/torch.einsum.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from core.messages import Message, message
from core.products import elementwise_flop, matmul_flop
from core.tensors.layout import TensorLayout
from core.tensors.view_rule import explain_view

Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperandPlan:
    """How one operand of a pair gets ready for ``bmm``.

    permute: the order of its own dimensions longer than 1, ``()`` when they stay. layout: the three-dimensional result,
    (batch, M, K) or (batch, K, N). copied: whether reshaping copies. reason: why, or how it is read.
    """

    permute: tuple[int, ...]
    layout: TensorLayout
    copied: bool
    reason: Message


@dataclass(frozen=True, slots=True)
class Pair:
    """One multiplication of two operands: a ``bmm``, or element by element where nothing is summed.

    batch, rows, columns, inner: names by role (B, M, N, K); sizes: their products in this order. sides: how the left
    and the right operand get ready; none element by element. flop: FMA is two. layout: of the result.
    """

    batch: Names
    rows: Names
    columns: Names
    inner: Names
    sizes: tuple[int, int, int, int]
    sides: tuple[OperandPlan, ...]
    flop: int
    layout: TensorLayout

    @property
    def call(self) -> str:
        """The matmul as shapes: ``(4, 3, 8) @ (4, 8, 5)``."""
        batch, rows, columns, inner = self.sizes
        if not self.inner:
            return "*"
        if batch == 1:
            return f"({rows}, {inner}) @ ({inner}, {columns})"
        return f"({batch}, {rows}, {inner}) @ ({batch}, {inner}, {columns})"


def align(names: Names, layout: TensorLayout, order: Names) -> TensorLayout:
    """Return ``layout`` with one dimension per name of ``order``: missing ones of size 1, repeated ones as
    diagonals."""
    strides: dict[str, int] = {}
    for name, stride in zip(names, layout.stride, strict=True):
        strides[name] = strides.get(name, 0) + stride
    shape = dict(zip(names, layout.shape, strict=True))
    return TensorLayout(
        tuple(shape.get(name, 1) for name in order), tuple(strides.get(name, 1) for name in order), layout.offset
    )


def contract(ready: list[TensorLayout], order: Names, outer: int) -> list[Pair]:
    """Return the products from left to right. outer: number of names of ``order`` in the result."""
    summed = range(outer, len(order))
    counts = {dim: sum(layout.shape[dim] != 1 for layout in ready) for dim in summed}
    pairs: list[Pair] = []
    left = ready[0]
    for right in ready[1:]:
        inner: list[int] = []
        first: tuple[list[int], list[int]] = ([], [])
        for dim in summed:
            if left.shape[dim] != 1 and right.shape[dim] != 1:
                counts[dim] -= 1
                if counts[dim] == 1:
                    inner.append(dim)
                    counts[dim] = 0
            elif counts[dim] == 1 and (left.shape[dim] != 1 or right.shape[dim] != 1):
                first[left.shape[dim] == 1].append(dim)
                counts[dim] = 0
        pairs.append(_pair(_summed(left, first[0]), _summed(right, first[1]), order, inner))
        left = pairs[-1].layout
    return pairs


def _summed(layout: TensorLayout, dims: Sequence[int]) -> TensorLayout:
    if not dims:
        return layout
    return TensorLayout.contiguous([1 if dim in dims else size for dim, size in enumerate(layout.shape)])


def _pair(left: TensorLayout, right: TensorLayout, order: Names, inner: list[int]) -> Pair:
    """Return one product; dimensions go to the four roles exactly as torch sorts them."""
    rest = [dim for dim in range(len(order)) if dim not in inner]
    both = [dim for dim in rest if left.shape[dim] != 1 and right.shape[dim] != 1]
    rows = [dim for dim in rest if left.shape[dim] != 1 and right.shape[dim] == 1]
    columns = [dim for dim in rest if left.shape[dim] == 1]
    if inner and rows and columns and columns[-1] < rows[0]:
        # the result names the right operand first, so torch multiplies right by left: no transpose after
        left, right, rows, columns = right, left, columns, rows
    wide = [max(a, b) if a and b else 0 for a, b in zip(left.shape, right.shape, strict=True)]
    batch, m, n, k = sizes = (
        math.prod(left.shape[dim] for dim in both),
        math.prod(left.shape[dim] for dim in rows),
        math.prod(right.shape[dim] for dim in columns),
        math.prod(left.shape[dim] for dim in inner),
    )
    roles = (both, rows, columns, inner)
    b_names, m_names, n_names, k_names = (tuple(order[dim] for dim in dims if wide[dim] != 1) for dims in roles)
    if not inner:
        layout = TensorLayout.contiguous(wide)
        return Pair(b_names, m_names, n_names, k_names, sizes, (), int(elementwise_flop(layout.numel, 1)), layout)
    sides = (
        _operand(left, order, [*both, *rows, *inner, *columns], (batch, m, k)),
        _operand(right, order, [*both, *inner, *columns, *rows], (batch, k, n)),
    )
    placed = [*both, *rows, *inner, *columns]  # contiguous as (batch, M, N), opened, and put back into their order
    opened = [1 if dim in inner else wide[dim] for dim in placed]
    layout = TensorLayout.contiguous(opened).permuted([placed.index(dim) for dim in range(len(order))])
    return Pair(b_names, m_names, n_names, k_names, sizes, sides, int(matmul_flop(m, n, k, batch)), layout)


def _operand(layout: TensorLayout, order: Names, dims: list[int], shape: tuple[int, int, int]) -> OperandPlan:
    """Permute and reshape one operand to three dimensions."""
    verdict = explain_view(layout.permuted(dims), shape)
    steps = sorted((d for d in dims if layout.shape[d] != 1), key=lambda d: -layout.stride[d])
    placed = tuple(steps.index(d) for d in dims if layout.shape[d] != 1)
    permute = () if placed == tuple(range(len(placed))) else placed
    edge = verdict.boundary
    if edge is not None:
        left, right = order[dims[edge.left]], order[dims[edge.right]]
        reason = message("axes.stage.copied", left=left, right=right, rule=edge.arithmetic)
        return OperandPlan(permute, TensorLayout.contiguous(shape), True, reason)
    result = TensorLayout(shape, verdict.stride or (), layout.offset)
    # BLAS wants one stride of 1, the other free.
    (_, rows, columns), (_, down, across) = result.shape, result.stride
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return OperandPlan(permute, result, False, message("axes.operand.rows"))
    if (down == 1 or rows == 1) and (across >= rows or columns == 1):
        return OperandPlan(permute, result, False, message("axes.operand.columns"))
    return OperandPlan(permute, result, False, message("axes.operand.neither"))
