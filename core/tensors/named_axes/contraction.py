"""Multiplies named layouts two at a time, as torch's einsum does: who is batch, M, N and K, and which operand copies.

Each pair becomes one ``bmm``: both operands are permuted and reshaped to (batch, M, K) and (batch, K, N), which is a
view or a copy as the layout algebra says; where nothing is summed it is an elementwise product.
Source: https://docs.pytorch.org/docs/stable/generated/torch.einsum.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from core.messages import Message, message
from core.products import elementwise_flop, matmul_flop
from core.tensors.layout import TensorLayout
from core.tensors.sealed.running import ask_torch
from core.tensors.view_rule import explain_view

Reads: TypeAlias = Literal["rows", "columns", "neither"]
Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperandPlan:
    """How one operand of a pair gets ready for ``bmm``.

    names: its names in the order (batch, M, K) or (batch, K, N). permute: the order of its own dimensions longer
    than 1, ``()`` when they stay. layout: the three-dimensional result. effect: whether reshaping copies; bytes: how
    much. reads: whether BLAS finds its last dimension next to each other (``rows``), the one before (``columns``:
    read as a transposed matrix, without a copy), or ``neither``, in which case BLAS needs a copy of its own.
    blas_bytes: of that copy; none where the product is so small that torch loops over it itself.
    """

    names: Names
    permute: tuple[int, ...]
    layout: TensorLayout
    effect: Literal["view", "copy"]
    bytes: int
    reads: Reads
    reason: Message
    blas_bytes: int = 0

    @property
    def bytes_copied(self) -> int:
        """All that is copied of it, by reshaping or by BLAS; freed after the product."""
        return self.bytes + self.blas_bytes


@dataclass(frozen=True, slots=True)
class Pair:
    """One multiplication of two operands, which are numbered as typed; results count on from there.

    kind: ``bmm``, or ``multiply`` when nothing is summed (then ``left`` and ``right`` plans are ``None``).
    batch, rows, columns, inner: names by role (B, M, N, K); sizes: their products in this order. flop: FMA is two.
    """

    operands: tuple[int, int]
    kind: Literal["bmm", "multiply"]
    batch: Names
    rows: Names
    columns: Names
    inner: Names
    sizes: tuple[int, int, int, int]
    left: OperandPlan | None
    right: OperandPlan | None
    flop: int
    layout: TensorLayout

    @property
    def bytes_copied(self) -> int:
        """Bytes both operands copy to get ready, those of BLAS with them; all are freed after the product."""
        return sum(plan.bytes_copied for plan in (self.left, self.right) if plan is not None)

    @property
    def call(self) -> str:
        """The matmul as shapes: ``(4, 3, 8) @ (4, 8, 5)``."""
        batch, rows, columns, inner = self.sizes
        if self.kind == "multiply":
            return "*"
        if batch == 1:
            return f"({rows}, {inner}) @ ({inner}, {columns})"
        return f"({batch}, {rows}, {inner}) @ ({batch}, {inner}, {columns})"


# ------------------------------------------------------------------------------------------------- layouts


def align(names: Names, layout: TensorLayout, order: Names) -> TensorLayout:
    """``layout`` with one dimension per name of ``order``: missing ones of size 1, repeated ones as diagonals."""
    strides: dict[str, int] = {}
    for name, stride in zip(names, layout.stride, strict=True):
        strides[name] = strides.get(name, 0) + stride
    shape = dict(zip(names, layout.shape, strict=True))
    return TensorLayout(
        tuple(shape.get(name, 1) for name in order), tuple(strides.get(name, 1) for name in order), layout.offset
    )


_LOOPED = 400
"""Multiply-adds of one matrix below which ``bmm`` loops itself and leaves BLAS out."""


def contract(
    ready: list[TensorLayout], order: Names, outer: int, element_size: int
) -> tuple[list[Pair], TensorLayout, int, int]:
    """Multiply from left to right; returns the pairs, the final layout, the FLOPs of sums over one operand, and the
    elements of those sums and of the products that are not the last.
    """
    summed = range(outer, len(order))
    if len(ready) == 1:
        (only,) = ready
        if outer == len(order):
            return [], only, 0, 0
        return [], TensorLayout.contiguous(only.shape[:outer]), only.numel, 0
    counts = {dim: sum(layout.shape[dim] != 1 for layout in ready) for dim in summed}
    pairs: list[Pair] = []
    left, number, sum_flop, between = ready[0], 0, 0, 0
    for right_number, right in enumerate(ready[1:], 1):
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
        sum_flop += sum(side.numel for side, dims in zip((left, right), first, strict=True) if dims)
        left, right = _summed(left, first[0]), _summed(right, first[1])
        between += sum(side.numel for side, dims in zip((left, right), first, strict=True) if dims)
        pairs.append(_pair(left, right, order, inner, (number, right_number), element_size))
        left, number = pairs[-1].layout, len(ready) + len(pairs) - 1
    shape = left.shape[:outer]
    between += sum(pair.layout.numel for pair in pairs[:-1])
    return pairs, TensorLayout(shape, left.stride[:outer], left.offset), sum_flop, between


def _summed(layout: TensorLayout, dims: Sequence[int]) -> TensorLayout:
    if not dims:
        return layout
    return TensorLayout.contiguous([1 if dim in dims else size for dim, size in enumerate(layout.shape)])


def _pick(order: Names, dims: Sequence[int]) -> Names:
    return tuple(order[dim] for dim in dims)


def _pair(
    left: TensorLayout,
    right: TensorLayout,
    order: Names,
    inner: list[int],
    operands: tuple[int, int],
    element_size: int,
) -> Pair:
    """One product; dimensions go to the four roles exactly as torch sorts them."""
    rest = [dim for dim in range(len(order)) if dim not in inner]
    both = [dim for dim in rest if left.shape[dim] != 1 and right.shape[dim] != 1]
    rows = [dim for dim in rest if left.shape[dim] != 1 and right.shape[dim] == 1]
    columns = [dim for dim in rest if left.shape[dim] == 1]
    swapped = bool(inner and rows and columns) and columns[-1] < rows[0]
    if swapped:  # the result names the right operand first, so torch multiplies right by left: no transpose after
        left, right, rows, columns = right, left, columns, rows
        operands = (operands[1], operands[0])
    wide = [max(a, b) if a and b else 0 for a, b in zip(left.shape, right.shape, strict=True)]
    sizes = (
        math.prod(left.shape[dim] for dim in both),
        math.prod(left.shape[dim] for dim in rows),
        math.prod(right.shape[dim] for dim in columns),
        math.prod(left.shape[dim] for dim in inner),
    )
    display = [[dim for dim in dims if wide[dim] != 1] for dims in (both, rows, columns, inner)]
    names = [_pick(order, dims) for dims in display]
    plans: tuple[OperandPlan | None, OperandPlan | None] = (None, None)
    if inner:
        batch, m, n, k = sizes
        plans = (
            _operand(left, order, (both, rows, inner), columns, (batch, m, k), element_size, m * n * k),
            _operand(right, order, (both, inner, columns), rows, (batch, k, n), element_size, m * n * k),
        )
        flop = int(matmul_flop(m, n, k, batch))
        layout = _bmm_result(left, right, both, rows, inner, columns)
    else:
        layout = _elementwise(left, right)
        flop = int(elementwise_flop(layout.numel, 1))
    return Pair(
        operands=operands,
        kind="bmm" if inner else "multiply",
        batch=names[0],
        rows=names[1],
        columns=names[2],
        inner=names[3],
        sizes=sizes,
        left=plans[0],
        right=plans[1],
        flop=flop,
        layout=layout,
    )


def _operand(
    layout: TensorLayout,
    order: Names,
    roles: tuple[list[int], list[int], list[int]],
    absent: list[int],
    shape: tuple[int, int, int],
    element_size: int,
    products: int,
) -> OperandPlan:
    """Permute and reshape one operand to three dimensions. products: multiply-adds of one matrix product."""
    dims = [dim for role in roles for dim in role] + absent
    verdict = explain_view(layout.permuted(dims), shape)
    names = _pick(order, [dim for dim in dims if layout.shape[dim] != 1])
    steps = sorted((d for d in dims if layout.shape[d] != 1), key=lambda d: -layout.stride[d])
    placed = tuple(steps.index(d) for d in dims if layout.shape[d] != 1)
    permute = () if placed == tuple(range(len(placed))) else placed
    edge = verdict.boundary
    if edge is None:
        result = TensorLayout(shape, verdict.stride or (), layout.offset)
        reads = _reads(result)
        copied = reads == "neither" and products >= _LOOPED
        reason = message(_READS["looped" if reads == "neither" and not copied else reads])
        own = result.numel * element_size if copied else 0
        return OperandPlan(names, permute, result, "view", 0, reads, reason, own)
    result = TensorLayout.contiguous(shape)
    left, right = order[dims[edge.left]], order[dims[edge.right]]
    reason = message("axes.stage.copied", left=left, right=right, rule=edge.arithmetic)
    return OperandPlan(names, permute, result, "copy", result.numel * element_size, _reads(result), reason)


_READS = {
    "rows": "axes.operand.rows",
    "columns": "axes.operand.columns",
    "neither": "axes.operand.neither",
    "looped": "axes.operand.looped",
}


def _reads(layout: TensorLayout) -> Reads:
    """How BLAS can read the matrices of a (batch, rows, columns) layout: it wants one stride of 1, the other free."""
    (_, rows, columns), (_, down, across) = layout.shape, layout.stride
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return "rows"
    return "columns" if (down == 1 or rows == 1) and (across >= rows or columns == 1) else "neither"


def _bmm_result(
    left: TensorLayout, right: TensorLayout, both: list[int], rows: list[int], inner: list[int], columns: list[int]
) -> TensorLayout:
    """The product, contiguous as (batch, M, N), opened into its names and put back into their order."""
    order = [*both, *rows, *inner, *columns]
    sizes = [1 if dim in inner else right.shape[dim] if dim in columns else left.shape[dim] for dim in order]
    return TensorLayout.contiguous(sizes).permuted([order.index(dim) for dim in range(len(order))])


def _elementwise(left: TensorLayout, right: TensorLayout) -> TensorLayout:
    """The layout torch gives the elementwise product, asked of its meta device, which allocates nothing."""
    made = (f"torch.empty_strided({side.shape}, {side.stride}, device='meta')" for side in (left, right))
    said, _ = ask_torch(f"y = {' * '.join(made)}\nprint(*y.stride())")
    return TensorLayout(tuple(np.broadcast_shapes(left.shape, right.shape)), tuple(map(int, said.split())))
