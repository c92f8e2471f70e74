"""Bytes of a tensor, the address of an element, and the stride that merges dimensions, as formulas."""

from __future__ import annotations

from core.formula import Source, Symbol, formula

_VIEWS = Source("PyTorch, Tensor Views", "", "https://docs.pytorch.org/docs/stable/tensor_view.html")
_VIEW = Source(
    "PyTorch, torch.Tensor.view", "", "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html"
)
_STRIDE = Source(
    "PyTorch, torch.Tensor.stride", "", "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.stride.html"
)


@formula(
    r"\v{elements} \cdot \v{element_bytes}",
    result=Symbol("M", "memory of the elements", "bytes"),
    symbols={"elements": Symbol("n", "elements", "count"), "element_bytes": Symbol("b", "bytes per element", "bytes")},
    sources=(_VIEWS,),
)
def tensor_bytes(elements: float, element_bytes: float) -> float:
    """Bytes of separate elements: elements times bytes per element.

    Elements that share a cell take less memory, and cells that no element uses take more.
    """
    return elements * element_bytes


@formula(
    r"\v{offset} + \v{row} \cdot \v{row_stride} + \v{column} \cdot \v{column_stride}",
    result=Symbol("c", "storage cell", "count"),
    symbols={
        "offset": Symbol("o", "storage offset", "count"),
        "row": Symbol("i_0", "index in dimension 0", "count"),
        "row_stride": Symbol("s_0", "stride of dimension 0", "count"),
        "column": Symbol("i_1", "index in dimension 1", "count"),
        "column_stride": Symbol("s_1", "stride of dimension 1", "count"),
    },
    sources=(_STRIDE,),
)
def matrix_cell(offset: float, row: float, row_stride: float, column: float, column_stride: float) -> float:
    """Storage cell of a matrix element: offset plus each index times its stride."""
    return offset + row * row_stride + column * column_stride


@formula(
    r"\v{stride} \cdot \v{size}",
    result=Symbol("s_{d}", "stride dimension d must have", "count"),
    symbols={
        "stride": Symbol("s_{d+1}", "stride of the dimension to its right", "count"),
        "size": Symbol("n_{d+1}", "size of the dimension to its right", "count"),
    },
    sources=(_VIEW,),
)
def merging_stride(stride: float, size: float) -> float:
    """Stride with which a dimension merges with its right neighbor.

    One step in the left dimension is then a walk through the whole right one, so a view may treat both as one
    dimension. Dimensions of size 1 never prevent a merge.
    """
    return stride * size
