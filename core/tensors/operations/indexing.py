"""Elements picked by indices and masks, and values put where indices say."""

from __future__ import annotations

from core.tensors.operations import guards, guards_of_results
from core.tensors.operations.operation import (
    BOTH,
    FUNCTIONAL,
    OPERAND,
    PICKED,
    SCATTERED,
    TORCH,
    Operation,
    computed,
)

_INSIDE = "the tensor itself keeps its values; with a _ at the end of the name it is written in place"
_COUNTED = "how many there are hangs on the values"
_WHERE = "which element comes from where hangs on the values, and strides cannot say that"

_SCATTERS: tuple[Operation, ...] = (
    Operation(
        "scatter",
        PICKED,
        "x.scatter(1, torch.tensor([[0], [2]]), 9)",
        ("int", "tensor", "float", "bool", "text"),
        ("dim", "index", "src", "value", "reduce"),
        why=_INSIDE,
    ),
    Operation(
        "scatter_add",
        PICKED,
        "x.scatter_add(0, torch.tensor([[1, 0, 1]]), x)",
        ("int", "tensor"),
        ("dim", "index", "src"),
        why=_INSIDE,
    ),
    Operation(
        "scatter_reduce",
        PICKED,
        "x.scatter_reduce(0, torch.tensor([[1, 0, 1]]), x, 'amax')",
        ("int", "tensor", "text", "bool"),
        ("dim", "index", "src", "reduce", "include_self"),
        why=_INSIDE,
    ),
    *(
        Operation(
            name,
            PICKED,
            f"x.{name}(0, torch.tensor([1]), x[:1])",
            ("int", "tensor", "float"),
            ("dim", "index", "source", *(("alpha",) if name == "index_add" else ())),
            why=_INSIDE,
        )
        for name in ("index_add", "index_copy")
    ),
    Operation(
        "index_fill",
        PICKED,
        "x.index_fill(0, torch.tensor([1]), 9)",
        ("int", "tensor", "float"),
        ("dim", "index", "value"),
        why=_INSIDE,
    ),
    Operation(
        "masked_fill",
        PICKED,
        "x.masked_fill(x > 2, 9)",
        OPERAND,
        ("mask", "value"),
        BOTH,
        guards.elementwise,
        why=_INSIDE,
    ),
    Operation(
        "masked_scatter",
        PICKED,
        "x.masked_scatter(x > 2, x)",
        ("tensor",),
        ("mask", "source"),
        BOTH,
        guards.elementwise,
        why=_INSIDE,
    ),
)

ROWS: tuple[Operation, ...] = (
    Operation(
        "index_select",
        PICKED,
        "x.index_select(0, torch.tensor([1]))",
        ("int", "tensor"),
        ("dim", "index"),
        BOTH,
        guards.selected,
        why=SCATTERED,
    ),
    Operation(
        "gather", PICKED, "x.gather(1, torch.tensor([[2], [0]]))", ("int", "tensor"), ("dim", "index"), why=SCATTERED
    ),
    Operation("take", PICKED, "x.take(torch.tensor([5, 0]))", ("tensor",), ("index",), why=SCATTERED),
    Operation(
        "take_along_dim",
        PICKED,
        "x.take_along_dim(x.argsort(1), 1)",
        ("tensor", "int", "none"),
        ("indices", "dim"),
        BOTH,
        guards.elementwise,
        why=SCATTERED,
    ),
    Operation(
        "masked_select",
        PICKED,
        "x.masked_select(x > 2)",
        ("tensor",),
        ("mask",),
        BOTH,
        guards.elementwise,
        why=SCATTERED,
    ),
    Operation(
        "where",
        PICKED,
        "torch.where(x > 2, x, 0)",
        OPERAND,
        ("self", "other"),
        TORCH,
        guards_of_results.chosen,
        why=_WHERE,
    ),
    Operation(
        "where",
        PICKED,
        "x.where(x > 2, 0)",
        OPERAND,
        ("condition", "other"),
        ("method",),
        guards.elementwise,
        why=_WHERE,
    ),
    Operation(
        "nonzero",
        PICKED,
        "x.nonzero(as_tuple=True)[1]",
        ("bool",),
        ("as_tuple",),
        BOTH,
        guards_of_results.places,
        why=_COUNTED,
        several_with="as_tuple",
    ),
    Operation("argwhere", PICKED, "x.argwhere()", (), (), BOTH, guards_of_results.places, why=_COUNTED),
    *_SCATTERS,
    Operation(
        "embedding",
        PICKED,
        "F.embedding(x, torch.randn(6, 2))",
        ("tensor", "int", "bool", "none"),
        ("weight", "padding_idx", "scale_grad_by_freq", "sparse"),
        FUNCTIONAL,
        guards_of_results.looked_up,
        why="a row of the weight is copied for every index",
    ),
    *(
        computed(name, example, (*OPERAND, "text", "none"), (parameter, "out_int32", "right", *more), TORCH)
        for name, example, parameter, more in (
            ("bucketize", "torch.bucketize(x, torch.tensor([1, 3]))", "boundaries", ()),
            ("searchsorted", "torch.searchsorted(torch.tensor([1, 3]), x)", "values", ("side", "sorter")),
        )
    ),
)
