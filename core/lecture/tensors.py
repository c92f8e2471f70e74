"""Claims about tensors and their storage, checked by the layout algebra (which tests hold against torch)."""

from __future__ import annotations

from core.formula import Explanation
from core.lecture.claims import Claim, Finding, Link, titled
from core.tensors.cost import matrix_cell, merging_stride, tensor_bytes
from core.tensors.layout import Layout
from core.tensors.view_rule import explain_view


def _transposed(layout: Layout) -> Layout:
    """The layout of ``x.t()``: sizes and strides swapped, storage untouched."""
    return Layout(layout.shape[::-1], layout.stride[::-1], layout.offset)


def _cell(layout: Layout, row: int, column: int) -> Explanation:
    return matrix_cell.explain(
        offset=layout.offset, row=row, row_stride=layout.stride[0], column=column, column_stride=layout.stride[1]
    )


def _merging(layout: Layout) -> Explanation:
    """The stride that dimension 0 would need for both to become one."""
    return merging_stride.explain(stride=layout.stride[1], size=layout.shape[1])


_NEEDED = "The stride of dimension 0 is 1 and not this, so the two dimensions cannot be walked as one."


def _yes(true: bool) -> str:
    return "yes" if true else "no"


def _strides() -> Finding:
    layout = Layout.contiguous((4, 4))
    cell = _cell(layout, 1, 2)
    confirms = layout.stride == (4, 1) and cell.value == layout.cell(1, 2) == 6
    return Finding(f"strides {layout.stride}; element (1, 2) in cell {layout.cell(1, 2)}", confirms, (cell,))


def _index_order() -> Finding:
    layout = Layout.contiguous((2, 3))
    right, swapped = layout.cell(1, 2), 1 * layout.stride[1] + 2 * layout.stride[0]
    cell = _cell(layout, 1, 2)
    text = f"element (row 1, column 2) of a 2 × 3 is in cell {right}; with the strides swapped it would be {swapped}"
    return Finding(text, right == cell.value != swapped, (cell,))


def _shared() -> Finding:
    # x[0], x[:, 1], x.view(3, 2) and x.transpose(1, 0) of a contiguous 2 × 3, as layouts of its six cells
    views = (Layout((3,), (1,)), Layout((2,), (3,), 1), Layout((3, 2), (2, 1)), Layout((3, 2), (1, 3)))
    text = ", ".join(str(sorted(layout.cells().tolist())) for layout in views)
    return Finding(
        f"cells of x that each touches: {text}",
        all(layout.fits(6) for layout in views),
        (titled("Cell of the last element of x[:, 1]", _cell(Layout.contiguous((2, 3)), 1, 1)),),
        "Each view is a shape, strides and an offset into the storage of x. The cells are those of all its indices.",
    )


def _written_through() -> Finding:
    layout = Layout.contiguous((2, 3))
    cells = layout.cell(0, 0), _transposed(layout).cell(0, 0)
    return Finding(
        f"x[0][0] is cell {cells[0]}; so is x.transpose(1, 0)[0][0]",
        cells == (0, 0),
        (
            titled("Cell of x[0][0]", _cell(layout, 0, 0)),
            titled("Cell of x.transpose(1, 0)[0][0]", _cell(_transposed(layout), 0, 0)),
        ),
    )


def _transpose_view() -> Finding:
    layout = _transposed(Layout.contiguous((2, 3)))
    verdict = explain_view(layout, (2, 3))
    return Finding(
        f"contiguous: {_yes(layout.is_contiguous)}; {verdict.reason}",
        not layout.is_contiguous and not verdict.works,
        (_merging(layout),),
        _NEEDED,
    )


def _contiguous_first() -> Finding:
    verdict = explain_view(Layout.contiguous(_transposed(Layout.contiguous((2, 3))).shape), (2, 3))
    size = tensor_bytes.explain(elements=6, element_bytes=8)
    return Finding(f"works, strides {verdict.stride}, after copying {size.value:.0f} B (int64)", verdict.works, (size,))


def _views_are_free() -> Finding:
    layout = Layout.contiguous((32, 32))
    free = explain_view(layout, (32 * 32,)).copied_bytes(4)
    copied = explain_view(_transposed(layout), (32 * 32,)).copied_bytes(4)
    text = f"32 × 32 fp32: .view(-1) copies {free} B, .t().reshape(-1) copies {copied:,} B"
    return Finding(
        text,
        free == 0 and copied == 4096,
        (tensor_bytes.explain(elements=32 * 32, element_bytes=4), _merging(_transposed(layout))),
        "A view copies nothing. The transpose cannot become one dimension without a copy: its strides are (1, 32).",
    )


def _view_without_contiguity() -> Finding:
    # x[:, ::2] of a contiguous 4 × 6
    layout = Layout((4, 3), (6, 2))
    verdict, contiguous = explain_view(layout, (-1,)), _yes(layout.is_contiguous)
    text = f"x[:, ::2].view(-1) of a 4 × 6 works with stride {verdict.stride}, contiguous: {contiguous}"
    how = "The stride of dimension 0 is 6, which is what merging needs: the view exists."
    return Finding(text, verdict.works and not layout.is_contiguous, (_merging(layout),), how)


def _reshape() -> Finding:
    layout = _transposed(Layout.contiguous((2, 3)))
    verdict = explain_view(layout, (6,))
    text = f"x.t().reshape(6) of a 2 × 3 copies {verdict.reshape_copies} elements, because {verdict.reason}"
    return Finding(text, not verdict.works and verdict.reshape_copies == 6, (_merging(layout),), _NEEDED)


def _heads() -> Finding:
    b, s, h, d = 2, 3, 4, 5
    split = explain_view(Layout.contiguous((b, s, h * d)), (b, s, h, d))
    stride = split.stride or ()
    permuted = tuple(stride[i] for i in (0, 2, 1, 3))
    return Finding(
        f"b={b} s={s} h={h} d={d}: shape {(b, h, s, d)}, strides {permuted}, 0 B copied",
        permuted == (60, 5, 20, 1),
        (titled("Stride of h, beside d on its right", merging_stride.explain(stride=1, size=d)),),
        f"Splitting the last dimension gives strides {stride} for b, s, h, d; permuting them puts h before s.",
    )


TENSORS: tuple[Claim, ...] = (
    Claim(
        "T1",
        "Tensors",
        "strides of a 4 × 4",
        "A tensor is a pointer into storage plus metadata; a 4 × 4 has strides (4, 1), element (1, 2) is in cell 6.",
        "exact",
        _strides,
        Link("tensors", {"shape": "4, 4", "x": "x[1, 2]"}),
    ),
    Claim(
        "T2",
        "Tensors",
        "the cell of an element",
        "Notes: the cell of an element is x·stride[1] + y·stride[0].",
        "needs care",
        _index_order,
        Link("tensors", {"shape": "2, 3", "x": "x[1, 2]"}),
        "Right only with x the column and y the row. In general: offset + Σ iₖ·strideₖ.",
    ),
    Claim(
        "T3",
        "Tensors",
        "views share storage",
        "x[0], x[:, 1], x.view(3, 2) and x.transpose(1, 0) share storage with x.",
        "holds",
        _shared,
        Link("tensors", {"shape": "2, 3", "x": "x[:, 1]"}),
    ),
    Claim(
        "T4",
        "Tensors",
        "writing through a view",
        "Writing x[0][0] = 100 is seen through the transpose.",
        "holds",
        _written_through,
        Link("tensors", {"shape": "2, 3", "x": "x.transpose(1, 0)[0, 0] = 100"}),
    ),
    Claim(
        "T5",
        "Tensors",
        "view of a transpose",
        "The transpose of a 2 × 3 is not contiguous, and .view(2, 3) on it raises.",
        "holds",
        _transpose_view,
        Link("tensors", {"shape": "2, 3", "x": "x.t().view(2, 3)"}),
    ),
    Claim(
        "T6",
        "Tensors",
        "contiguous, then view",
        ".contiguous().view(2, 3) on the transpose works and is another storage.",
        "holds",
        _contiguous_first,
        Link("tensors", {"shape": "2, 3", "x": "x.t().contiguous().view(2, 3)"}),
    ),
    Claim(
        "T7",
        "Tensors",
        "views against copies",
        "Views are free; copies take memory and compute.",
        "holds",
        _views_are_free,
        Link("tensors", {"shape": "32, 32", "x": "x.t().reshape(-1)", "dtype": "float32"}),
    ),
    Claim(
        "T8",
        "Tensors",
        "view without contiguity",
        "Notes: view works only on contiguous tensors.",
        "needs care",
        _view_without_contiguity,
        Link("tensors", {"shape": "4, 6", "x": "x[:, ::2].view(-1)"}),
        "It needs dimensions that merge: stride equal to the inner stride times the inner size.",
    ),
    Claim(
        "T9",
        "Tensors",
        "reshape copies",
        "Notes: reshape does not require contiguity.",
        "holds",
        _reshape,
        Link("tensors", {"shape": "2, 3", "x": "x.t().reshape(6)"}),
        "It copies when it must, without saying so.",
    ),
    Claim(
        "T10",
        "Tensors",
        "splitting heads",
        "x.view(b, s, h, d).permute(0, 2, 1, 3) is rearrange(x, 'b s (h d) -> b h s d').",
        "holds",
        _heads,
        Link("tensors", {"shape": "2, 3, 20", "x": "rearrange(x, 'b s (h d) -> b h s d', h=4)"}),
        "Both only change strides.",
    ),
)
