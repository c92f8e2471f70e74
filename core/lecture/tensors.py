"""Checks of claims on tensors and their storage, by the layout algebra (which tests compare with torch)."""

from __future__ import annotations

import numpy as np

from core.formula import Explanation
from core.lecture.claims import Finding, titled
from core.messages import message
from core.tensors.cost import matrix_cell, merging_stride, tensor_bytes
from core.tensors.layout import TensorLayout, bounds
from core.tensors.operations.table import ROWS
from core.tensors.view_rule import explain_view

VIEW: str = "Always a view"
EITHER: str = "A view if it can, else a copy"

TWO_BY_THREE, TRANSPOSED = TensorLayout.contiguous((2, 3)), TensorLayout((3, 2), (1, 3))
"""A contiguous 2 × 3 tensor, and its transpose: sizes and strides swapped, the same storage."""


def _cell(layout: TensorLayout, row: int, column: int) -> Explanation:
    return matrix_cell.explain(
        offset=layout.offset, row=row, row_stride=layout.stride[0], column=column, column_stride=layout.stride[1]
    )


def _merging(layout: TensorLayout) -> Explanation:
    """Explain the stride that dimension 0 needs to merge with dimension 1."""
    return merging_stride.explain(stride=layout.stride[1], size=layout.shape[1])


def check_strides() -> Finding:
    layout = TensorLayout.contiguous((4, 4))
    cell = _cell(layout, 1, 2)
    return Finding(
        message("lecture.T1.found", strides=str(layout.stride), cell=cell.value),
        layout.stride == (4, 1) and cell.value == layout.cell(1, 2) == 6,
        (cell,),
        shown=(f"cell {cell.value:g}", str(layout.stride)),
    )


def check_stride_method() -> Finding:
    layout = TensorLayout.contiguous((4, 4))
    down, right = layout.cell(1, 0) - layout.cell(0, 0), layout.cell(0, 1) - layout.cell(0, 0)
    return Finding(
        message("lecture.T16.found", strides=str(layout.stride), down=float(down), right=float(right)),
        (down, right) == layout.stride == (4, 1),
        (_cell(layout, 1, 0),),
        message("lecture.T16.how"),
        shown=(f"x.stride(0) {down}", f"x.stride() {layout.stride}"),
    )


def check_index_order() -> Finding:
    layout, cell = TWO_BY_THREE, _cell(TWO_BY_THREE, 1, 2)
    right, swapped = layout.cell(1, 2), 1 * layout.stride[1] + 2 * layout.stride[0]
    found = message("lecture.T2.found", cell=float(right), swapped=float(swapped))
    return Finding(found, right == cell.value != swapped, (cell,), shown=(f"storage cell {right}",))


def check_shared_storage() -> Finding:
    # x[0], x[:, 1], x.view(3, 2) and x.transpose(1, 0) of a contiguous 2 × 3, as layouts of its six cells
    views = TensorLayout((3,), (1,)), TensorLayout((2,), (3,), 1), TensorLayout((3, 2), (2, 1)), TRANSPOSED
    row, column, viewed, transposed = (str(sorted(layout.cells().tolist())) for layout in views)
    return Finding(
        message("lecture.T3.found", row=row, column=column, viewed=viewed, transposed=transposed),
        all(bounds(layout, 6).inside for layout in views),
        (titled("Cell of the last element of x[:, 1]", _cell(TWO_BY_THREE, 1, 1)),),
        message("lecture.T3.how"),
        shown=tuple(str(layout.stride) for layout in views),
    )


def check_kinds_of_views() -> Finding:
    views = [row.name for row in ROWS if row.group == VIEW]
    cuts = ("narrow", "select", "diagonal", "unbind")
    slicing = [name for name in views if name in cuts or "split" in name or "chunk" in name]
    return Finding(
        message("lecture.T19.found", views=float(len(views)), slicing=float(len(slicing)), names=slicing),
        0 < len(slicing) < len(views) / 2,
        how=message("lecture.T19.how"),
        shown=(str(TRANSPOSED.stride), str(TensorLayout.contiguous((3, 2)).stride)),
    )


def check_write_through_view() -> Finding:
    cells = TWO_BY_THREE.cell(0, 0), TRANSPOSED.cell(0, 0)
    return Finding(
        message("lecture.T4.found", cell=float(cells[0])),
        cells == (0, 0),
        (
            titled("Cell of x[0][0]", _cell(TWO_BY_THREE, 0, 0)),
            titled("Cell of x.transpose(1, 0)[0][0]", _cell(TRANSPOSED, 0, 0)),
        ),
        shown=(f"storage cell {cells[0]}",),
    )


def check_share_of_views() -> Finding:
    size = tensor_bytes.explain(elements=6, element_bytes=4)
    views, either = (sum(row.group == group for row in ROWS) for group in (VIEW, EITHER))
    return Finding(
        message("lecture.T17.found", operations=float(len(ROWS)), views=float(views), either=float(either)),
        views + either < len(ROWS) / 2,
        (titled("The result of x + x, of a 2 × 3 in fp32", size),),
        message("lecture.T17.how"),
        shown=(f"{size.value:.0f} B into new storage",),
    )


def check_view_of_transpose() -> Finding:
    verdict = explain_view(TRANSPOSED, (2, 3))
    return Finding(
        message("lecture.T5.found", reason=verdict.reason),
        not TRANSPOSED.is_contiguous and not verdict.works,
        (_merging(TRANSPOSED),),
        message("lecture.T5.how"),
        shown=(verdict.reason,),
    )


def check_operations_on_strides() -> Finding:
    verdict, both = explain_view(TRANSPOSED, (6,)), tensor_bytes.explain(elements=2 * 6, element_bytes=4)
    return Finding(
        message("lecture.T18.found", operations=float(len(ROWS))),
        any(row.name == "view" for row in ROWS) and not verdict.works and not TRANSPOSED.is_contiguous,
        (_merging(TRANSPOSED), titled("Results of x.t() + 1 and x.t().softmax(-1)", both)),
        message("lecture.T18.how"),
        shown=(f"{both.value:.0f} B in all", str(TRANSPOSED.stride)),
    )


def check_contiguous_then_view() -> Finding:
    verdict = explain_view(TensorLayout.contiguous(TRANSPOSED.shape), (2, 3))
    size = tensor_bytes.explain(elements=6, element_bytes=8)
    return Finding(
        message("lecture.T6.found", strides=str(verdict.stride), size=size.value),
        verdict.works,
        (size,),
        shown=(f"copies {size.value:.0f} B into new storage", str(verdict.stride)),
    )


def check_copies() -> Finding:
    layout, turned = TensorLayout.contiguous((32, 32)), TensorLayout((32, 32), (1, 32))
    free, copied = (float(explain_view(one, (1024,)).reshape_copies * 4) for one in (layout, turned))
    return Finding(
        message("lecture.T7.found", free=free, copied=copied),
        (free, copied) == (0, 4096),
        (tensor_bytes.explain(elements=32 * 32, element_bytes=4), _merging(turned)),
        message("lecture.T7.how"),
        shown=(f"copies {copied:,.0f} B",),
    )


def check_view_without_contiguity() -> Finding:
    layout = TensorLayout((4, 3), (6, 2))  # x[:, ::2] of a contiguous 4 × 6
    verdict = explain_view(layout, (-1,))
    return Finding(
        message("lecture.T8.found", strides=str(verdict.stride)),
        verdict.works and not layout.is_contiguous,
        (_merging(layout),),
        message("lecture.T8.how"),
        shown=(f"stride {layout.stride[0]} = {layout.stride[1]} × {layout.shape[1]}",),
    )


def check_reshape() -> Finding:
    verdict = explain_view(TRANSPOSED, (6,))
    copied = verdict.reshape_copies
    return Finding(
        message("lecture.T9.found", copied=float(copied), reason=verdict.reason),
        not verdict.works and copied == 6,
        (_merging(TRANSPOSED),),
        message("lecture.T9.how"),
        shown=(f"copies {4 * copied} B into new storage", verdict.reason),
    )


def check_causal_mask() -> Finding:
    ones, upper = np.ones((3, 3)), np.triu(np.ones((3, 3)))
    mask = str(upper.astype(int).tolist())
    return Finding(
        message("lecture.T12.found", mask=mask),
        upper.tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 1]] and bool(ones.all()),
        how=message("lecture.T12.how"),
        shown=(mask,),
    )


def check_batched_matmul() -> Finding:
    product = np.zeros((4, 8, 16, 32), np.float32) @ np.zeros((32, 2), np.float32)
    size = tensor_bytes.explain(elements=product.size, element_bytes=product.itemsize)
    return Finding(
        message("lecture.T13.found", shape=str(product.shape)),
        product.shape == (4, 8, 16, 2),
        (size,),
        message("lecture.T13.how", size=size.value),
        shown=(str(product.shape), f"{size.value:,.0f} B"),
    )


def check_named_dimensions() -> Finding:
    names, shape, wrong = ("batch", "seq", "hidden"), (2, 4, 16), (2, 16, 4)
    off = [name for name, size, other in zip(names, shape, wrong, strict=True) if size != other]
    return Finding(
        message("lecture.T14.found", shape=str(shape), wrong=str(wrong), names=off),
        off == ["seq", "hidden"],
        how=message("lecture.T14.how"),
        shown=(f"was {shape[1]} before and is {wrong[1]} here",),
    )


def check_einsum() -> Finding:
    x = np.arange(24.0).reshape(2, 3, 4)
    y = x + 1
    z = np.einsum("bij,bkj->bik", x, y)
    same = bool(np.array_equal(z, x @ y.swapaxes(-2, -1)))
    return Finding(
        message("lecture.T11.found", shape=str(z.shape)),
        z.shape == (2, 3, 3) and same,
        how=message("lecture.T11.how"),
        shown=(str(z.shape), "✓" if same else "✗"),
    )


def check_split_heads() -> Finding:
    b, s, h, d = 1, 3, 2, 2
    stride = explain_view(TensorLayout.contiguous((b, s, h * d)), (b, s, h, d)).stride or ()
    permuted = tuple(stride[i] for i in (0, 2, 1, 3))
    return Finding(
        message("lecture.T10.found", shape=str((b, h, s, d)), strides=str(permuted)),
        permuted == (12, 2, 4, 1),
        (titled("Stride of h, next to d on its right", merging_stride.explain(stride=1, size=d)),),
        message("lecture.T10.how", strides=str(stride)),
        shown=(str(permuted),),
    )


def check_device_creation() -> Finding:
    two = tensor_bytes.explain(elements=2 * 32 * 32, element_bytes=4)
    return Finding(
        message("lecture.T15.found", size=two.value),
        two.value == 8192,
        (two,),
        message("lecture.T15.how"),
        shown=(f"{two.value / 2:,.0f} B",),
    )
