"""Claims about tensors and their storage, checked by the layout algebra (which tests hold against torch)."""

from __future__ import annotations

import numpy as np

from core.formula import Explanation
from core.lecture.claims import Finding, titled
from core.tensors.cost import matrix_cell, merging_stride, tensor_bytes
from core.tensors.layout import TensorLayout, bounds
from core.tensors.operations.table import ROWS
from core.tensors.view_rule import explain_view

VIEW: str = "Always a view"
EITHER: str = "A view if it can, else a copy"
PICKED: str = "Picked into a new tensor"


def _transposed(layout: TensorLayout) -> TensorLayout:
    """The layout of ``x.t()``: sizes and strides swapped, storage untouched."""
    return TensorLayout(layout.shape[::-1], layout.stride[::-1], layout.offset)


def _cell(layout: TensorLayout, row: int, column: int) -> Explanation:
    return matrix_cell.explain(
        offset=layout.offset, row=row, row_stride=layout.stride[0], column=column, column_stride=layout.stride[1]
    )


def _merging(layout: TensorLayout) -> Explanation:
    """The stride that dimension 0 would need for both to become one."""
    return merging_stride.explain(stride=layout.stride[1], size=layout.shape[1])


_NEEDED = "The stride of dimension 0 is 1 and not this, so the two dimensions cannot be walked as one."


def _yes(true: bool) -> str:
    return "yes" if true else "no"


def strides() -> Finding:
    layout = TensorLayout.contiguous((4, 4))
    cell = _cell(layout, 1, 2)
    confirms = layout.stride == (4, 1) and cell.value == layout.cell(1, 2) == 6
    return Finding(
        f"strides {layout.stride}; element (1, 2) in cell {layout.cell(1, 2)}",
        confirms,
        (cell,),
        shown=(f"cell {cell.value:g}", str(layout.stride)),
    )


def index_order() -> Finding:
    layout = TensorLayout.contiguous((2, 3))
    right, swapped = layout.cell(1, 2), 1 * layout.stride[1] + 2 * layout.stride[0]
    cell = _cell(layout, 1, 2)
    text = f"element (row 1, column 2) of a 2 × 3 is in cell {right}; with the strides swapped it would be {swapped}"
    return Finding(text, right == cell.value != swapped, (cell,), shown=(f"storage cell {right}",))


def shared() -> Finding:
    # x[0], x[:, 1], x.view(3, 2) and x.transpose(1, 0) of a contiguous 2 × 3, as layouts of its six cells
    views = (
        TensorLayout((3,), (1,)),
        TensorLayout((2,), (3,), 1),
        TensorLayout((3, 2), (2, 1)),
        TensorLayout((3, 2), (1, 3)),
    )
    text = ", ".join(str(sorted(layout.cells().tolist())) for layout in views)
    return Finding(
        f"cells of x that each touches: {text}",
        all(bounds(layout, 6).inside for layout in views),
        (titled("Cell of the last element of x[:, 1]", _cell(TensorLayout.contiguous((2, 3)), 1, 1)),),
        "Each view is a shape, strides and an offset into the storage of x. The cells are those of all its indices.",
        shown=tuple(str(layout.stride) for layout in views),
    )


def written_through() -> Finding:
    layout = TensorLayout.contiguous((2, 3))
    cells = layout.cell(0, 0), _transposed(layout).cell(0, 0)
    return Finding(
        f"x[0][0] is cell {cells[0]}; so is x.transpose(1, 0)[0][0]",
        cells == (0, 0),
        (
            titled("Cell of x[0][0]", _cell(layout, 0, 0)),
            titled("Cell of x.transpose(1, 0)[0][0]", _cell(_transposed(layout), 0, 0)),
        ),
        shown=(f"storage cell {cells[0]}",),
    )


def transpose_view() -> Finding:
    layout = _transposed(TensorLayout.contiguous((2, 3)))
    verdict = explain_view(layout, (2, 3))
    return Finding(
        f"contiguous: {_yes(layout.is_contiguous)}; {verdict.reason}",
        not layout.is_contiguous and not verdict.works,
        (_merging(layout),),
        _NEEDED,
        shown=(verdict.reason,),
    )


def contiguous_first() -> Finding:
    verdict = explain_view(TensorLayout.contiguous(_transposed(TensorLayout.contiguous((2, 3))).shape), (2, 3))
    size = tensor_bytes.explain(elements=6, element_bytes=8)
    return Finding(
        f"works, strides {verdict.stride}, after copying {size.value:.0f} B (int64)",
        verdict.works,
        (size,),
        shown=(f"copies {size.value:.0f} B into new storage", str(verdict.stride)),
    )


def views_are_free() -> Finding:
    layout = TensorLayout.contiguous((32, 32))
    free = explain_view(layout, (32 * 32,)).copied_bytes(4)
    copied = explain_view(_transposed(layout), (32 * 32,)).copied_bytes(4)
    text = f"32 × 32 fp32: .view(-1) copies {free} B, .t().reshape(-1) copies {copied:,} B"
    return Finding(
        text,
        free == 0 and copied == 4096,
        (tensor_bytes.explain(elements=32 * 32, element_bytes=4), _merging(_transposed(layout))),
        "A view copies nothing. The transpose cannot become one dimension without a copy: its strides are (1, 32).",
        shown=(f"copies {copied:,} B",),
    )


def view_without_contiguity() -> Finding:
    # x[:, ::2] of a contiguous 4 × 6
    layout = TensorLayout((4, 3), (6, 2))
    verdict, contiguous = explain_view(layout, (-1,)), _yes(layout.is_contiguous)
    text = f"x[:, ::2].view(-1) of a 4 × 6 works with stride {verdict.stride}, contiguous: {contiguous}"
    how = "The stride of dimension 0 is 6, which is what merging needs: the view exists."
    merge = f"stride {layout.stride[0]} = {layout.stride[1]} × {layout.shape[1]}"
    return Finding(text, verdict.works and not layout.is_contiguous, (_merging(layout),), how, shown=(merge,))


def reshape() -> Finding:
    layout = _transposed(TensorLayout.contiguous((2, 3)))
    verdict = explain_view(layout, (6,))
    text = f"x.t().reshape(6) of a 2 × 3 copies {verdict.reshape_copies} elements, because {verdict.reason}"
    return Finding(
        text,
        not verdict.works and verdict.reshape_copies == 6,
        (_merging(layout),),
        _NEEDED,
        shown=(f"copies {4 * (verdict.reshape_copies or 0)} B into new storage", verdict.reason),
    )


def heads() -> Finding:
    b, s, h, d = 1, 3, 2, 2
    split = explain_view(TensorLayout.contiguous((b, s, h * d)), (b, s, h, d))
    stride = split.stride or ()
    permuted = tuple(stride[i] for i in (0, 2, 1, 3))
    return Finding(
        f"b={b} s={s} h={h} d={d}: shape {(b, h, s, d)}, strides {permuted}, 0 B copied",
        permuted == (12, 2, 4, 1),
        (titled("Stride of h, beside d on its right", merging_stride.explain(stride=1, size=d)),),
        f"Splitting the last dimension gives strides {stride} for b, s, h, d; permuting them puts h before s.",
        shown=(str(permuted),),
    )


def named_sum() -> Finding:
    x = np.arange(24.0).reshape(2, 3, 4)
    y = x + 1
    z = np.einsum("bij,bkj->bik", x, y)
    same = bool(np.array_equal(z, x @ y.swapaxes(-2, -1)))
    return Finding(
        f"bij, bkj → bik of (2, 3, 4) twice has shape {z.shape}; equal to x @ y.transpose(-2, -1): {_yes(same)}",
        z.shape == (2, 3, 3) and same,
        shown=(str(z.shape), "✓" if same else "✗"),
        how="Worked out on the numbers 0 to 23. j is missing behind the arrow, so it is summed. In fp32 both take "
        f"{4 * (y.size + z.size)} B in all.",
    )


def triangle() -> Finding:
    ones, upper = np.ones((3, 3)), np.triu(np.ones((3, 3)))
    return Finding(
        f"triu of 3 × 3 ones: {upper.astype(int).tolist()}; the ones are as they were",
        upper.tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 1]] and bool(ones.all()),
        shown=(str(upper.astype(int).tolist()),),
        how="Computed values need cells of their own, so an operation on elements gives a new tensor.",
    )


def batched() -> Finding:
    product = np.zeros((4, 8, 16, 32), np.float32) @ np.zeros((32, 2), np.float32)
    shape, size = product.shape, tensor_bytes.explain(elements=product.size, element_bytes=product.itemsize)
    return Finding(
        f"(4, 8, 16, 32) @ (32, 2) has shape {shape}",
        shape == (4, 8, 16, 2),
        (size,),
        "The last two dimensions are multiplied, and the matrix is used for each of the 4 × 8 in front; "
        f"the result takes {size.value:,.0f} B in fp32.",
        shown=(str(shape), f"{size.value:,.0f} B"),
    )


def named_dimensions() -> Finding:
    names, shape = ("batch", "seq", "hidden"), (2, 4, 16)
    wrong = (2, 16, 4)
    off = [name for name, size, other in zip(names, shape, wrong, strict=True) if size != other]
    return Finding(
        f"with {', '.join(f'{name} = {size}' for name, size in zip(names, shape, strict=True))} a shape of {wrong} "
        f"does not have its {' and '.join(off)}",
        off == ["seq", "hidden"],
        shown=(f"was {shape[1]} before and is {wrong[1]} here",),
        how="An annotation by itself changes nothing in Python. A checker compares sizes under one name wherever it "
        "stands in a function, and refuses those that differ.",
    )


def from_the_cpu() -> Finding:
    two = tensor_bytes.explain(elements=2 * 32 * 32, element_bytes=4)
    return Finding(
        f"two 32 × 32 fp32 tensors are {two.value:,.0f} B, made on the device or sent to it",
        two.value == 8192,
        (two,),
        shown=(f"{two.value / 2:,.0f} B",),
        how="A tensor made on the CPU takes its bytes there first, and again on the device after a "
        "transfer over the bus.",
    )


def stride_called() -> Finding:
    layout = TensorLayout.contiguous((4, 4))
    down, right = layout.cell(1, 0) - layout.cell(0, 0), layout.cell(0, 1) - layout.cell(0, 0)
    return Finding(
        f"x.stride() of a 4 × 4 is {layout.stride}: {down} cells to the next row, {right} to the next column",
        (down, right) == layout.stride == (4, 1),
        (_cell(layout, 1, 0),),
        shown=(f"x.stride(0) {down}", f"x.stride() {layout.stride}"),
        how="stride is a method: x.stride(0), or x.stride()[0]. Square brackets behind its name raise a TypeError.",
    )


def views_of_all() -> Finding:
    size = tensor_bytes.explain(elements=6, element_bytes=4)
    views, either = (sum(row.group == group for row in ROWS) for group in (VIEW, EITHER))
    return Finding(
        f"of {len(ROWS)} operations that are known here {views} always give a view, {either} give one if they can",
        views + either < len(ROWS) / 2,
        explanations=(titled("The result of x + x, of a 2 × 3 in fp32", size),),
        shown=(f"{size.value:.0f} B into new storage",),
        how="Counted in the table of operations, each of which is compared with torch: whose storage its result has.",
    )


def on_strides() -> Finding:
    asks = [row.name for row in ROWS if row.name in ("view", "view_as")]
    layout = _transposed(TensorLayout.contiguous((2, 3)))
    verdict, both = explain_view(layout, (6,)), tensor_bytes.explain(elements=2 * 6, element_bytes=4)
    return Finding(
        f"of {len(ROWS)} operations view and what is named after it refuse strides that do not merge; arithmetic, "
        "products, softmax and indexing run on any",
        bool(asks) and not verdict.works and not layout.is_contiguous,
        (_merging(layout), titled("Results of x.t() + 1 and x.t().softmax(-1)", both)),
        _NEEDED,
        shown=(f"{both.value:.0f} B in all", str(layout.stride)),
    )


def not_only_slices() -> Finding:
    views, square = [row for row in ROWS if row.group == VIEW], TensorLayout.contiguous((2, 3))
    cuts = ("narrow", "select", "diagonal", "unbind")
    slicing = [row.name for row in views if row.name in cuts or "split" in row.name or "chunk" in row.name]
    return Finding(
        f"of {len(views)} operations that always give a view {len(slicing)} cut a part out ({', '.join(slicing)}); "
        f"others turn, repeat or regroup",
        0 < len(slicing) < len(views) / 2 and PICKED != VIEW,
        shown=tuple(str(layout.stride) for layout in (_transposed(square), TensorLayout.contiguous((3, 2)))),
        how="Counted in the table of operations. Slicing in square brackets is one kind of view; transpose, view, "
        "expand and unsqueeze make others.",
    )
