"""New tensors of the same elements: copied, turned, repeated, joined, padded."""

from __future__ import annotations

from core.tensors.operations import guards, guards_of_results, guards_of_values
from core.tensors.operations.operation import BOTH, COPIED, FUNCTIONAL, INTS, METHOD, NEW, SIDE, TORCH, Operation

_NEGATIVE = "a view would need a negative stride, and torch has none"
_ZEROS = "the zeros must not be written into the tensor itself"
_INSIDE = "the new values must not be written into the tensor itself"

ROWS: tuple[Operation, ...] = (
    Operation(
        "clone", NEW, "x.clone()", ("format",), ("memory_format",), why="clone always copies; that is its purpose"
    ),
    Operation("flip", NEW, "x.flip(0)", INTS, ("dims",), why=_NEGATIVE),
    Operation("fliplr", NEW, "x.fliplr()", why=_NEGATIVE),
    Operation("flipud", NEW, "x.flipud()", why=_NEGATIVE),
    Operation("rot90", NEW, "x.rot90()", INTS, ("k", "dims"), why=_NEGATIVE),
    Operation("roll", NEW, "x.roll(1)", INTS, ("shifts", "dims"), why="the jump back to the start has another stride"),
    Operation("repeat", NEW, "x.repeat(2, 1)", INTS, ("repeats",), METHOD, guards.repeats, why=COPIED),
    Operation("tile", NEW, "x.tile(2, 1)", INTS, ("dims",), BOTH, guards.repeats, why=COPIED),
    Operation(
        "repeat_interleave",
        NEW,
        "x.repeat_interleave(2)",
        ("int", "tensor"),
        ("repeats", "dim"),
        BOTH,
        guards.interleaved,
        why=COPIED,
        measured=guards_of_values.repeated,
    ),
    Operation("triu", NEW, "x.triu()", ("int",), ("diagonal",), why=_ZEROS),
    Operation("tril", NEW, "x.tril()", ("int",), ("diagonal",), why=_ZEROS),
    Operation(
        "diag",
        NEW,
        "torch.diag(x)",
        ("int",),
        ("diagonal",),
        BOTH,
        guards.squared,
        why="diag makes a new tensor; the view is diagonal()",
    ),
    Operation(
        "diag_embed",
        NEW,
        "x.diag_embed()",
        ("int",),
        ("offset", "dim1", "dim2"),
        BOTH,
        guards_of_results.embedded,
        why="the zeros beside the diagonal need cells of their own",
    ),
    Operation(
        "diagonal_scatter",
        NEW,
        "x.diagonal_scatter(torch.zeros(2))",
        ("tensor", "int"),
        ("src", "offset", "dim1", "dim2"),
        why=_INSIDE,
    ),
    Operation(
        "select_scatter",
        NEW,
        "x.select_scatter(torch.zeros(3), 0, 1)",
        ("tensor", "int"),
        ("src", "dim", "index"),
        why=_INSIDE,
    ),
    Operation(
        "slice_scatter",
        NEW,
        "x.slice_scatter(torch.zeros(1, 3), 0, 0, 1)",
        ("tensor", "int", "none"),
        ("src", "dim", "start", "end", "step"),
        why=_INSIDE,
    ),
    *(
        Operation(
            name, NEW, f"torch.{name}([x, x])", ("tensors", "int"), ("dim",), TORCH, guards.joined, False, why=SIDE
        )
        for name in ("cat", "concat", "concatenate", "stack")
    ),
    *(
        Operation(name, NEW, f"torch.{name}([x, x])", ("tensors",), (), TORCH, guards.joined, False, why=SIDE)
        for name in ("hstack", "vstack", "dstack", "column_stack", "row_stack")
    ),
    Operation(
        "block_diag",
        NEW,
        "torch.block_diag(x, x)",
        ("tensor",),
        (),
        TORCH,
        guards_of_results.blocks,
        subject=False,
        why=SIDE,
    ),
    Operation(
        "cartesian_prod",
        NEW,
        "torch.cartesian_prod(x[0], x[1])",
        ("tensor",),
        (),
        TORCH,
        guards_of_results.tuples,
        subject=False,
        why=SIDE,
    ),
    Operation(
        "pad",
        NEW,
        "F.pad(x, (1, 1))",
        (*INTS, "text", "float", "none"),
        ("pad", "mode", "value"),
        FUNCTIONAL,
        guards_of_results.padded,
        why="the rim needs cells that the tensor does not have",
    ),
    Operation(
        "unfold",
        NEW,
        "F.unfold(x.float().view(1, 1, 2, 3), 2)",
        INTS,
        ("kernel_size", "dilation", "padding", "stride"),
        FUNCTIONAL,
        guards.columns,
        why="overlapping patches as columns: each element is copied once per patch",
    ),
    *(
        Operation(
            name, NEW, example, ("int",), (parameter,), FUNCTIONAL, why="the elements are written in another order"
        )
        for name, example, parameter in (
            ("pixel_shuffle", "F.pixel_shuffle(torch.ones(1, 4, 2, 2), 2)", "upscale_factor"),
            ("pixel_unshuffle", "F.pixel_unshuffle(torch.ones(1, 1, 4, 4), 2)", "downscale_factor"),
        )
    ),
)
