"""Views, and what is a view where strides allow it."""

from __future__ import annotations

from core.tensors.operations import guards, guards_of_results, guards_of_values
from core.tensors.operations.operation import (
    BOTH,
    EITHER,
    FEWER,
    INTS,
    METHOD,
    PART,
    PIECES,
    PROPERTY,
    REPEATED,
    RESTRIDE,
    RESTRIDED,
    STRIDES,
    TORCH,
    VIEW,
    Operation,
)

_COMPLEX = "torch.ones(2, 2, dtype=torch.complex64)"
_LISTED = ("tensor", "tensors")

_PLACES: tuple[Operation, ...] = (
    Operation("permute", VIEW, "x.permute(1, 0)", INTS, ("dims",), why=STRIDES),
    *(
        Operation(name, VIEW, f"x.{name}(0, 1)", ("int",), ("dim0", "dim1"), why=STRIDES)
        for name in ("transpose", "swapdims")
    ),
    Operation("swapaxes", VIEW, "x.swapaxes(0, 1)", ("int",), ("axis0", "axis1"), why=STRIDES),
    *(
        Operation(name, VIEW, f"x.{name}(0, -1)", INTS, ("source", "destination"), why=STRIDES)
        for name in ("movedim", "moveaxis")
    ),
    Operation("t", VIEW, "x.t()", why=STRIDES),
    *(Operation(name, VIEW, f"x.{name}", forms=PROPERTY, why=STRIDES) for name in ("T", "mT", "H", "mH")),
    Operation("adjoint", VIEW, "x.adjoint()", why=STRIDES),
    *(
        Operation(f"{name}_", RESTRIDE, f"x.{name}_(0, 1)", ("int",), keywords, METHOD, why=RESTRIDED, restrides=True)
        for name, keywords in (
            ("transpose", ("dim0", "dim1")),
            ("swapdims", ("dim0", "dim1")),
            ("swapaxes", ("axis0", "axis1")),
        )
    ),
    Operation("t_", RESTRIDE, "x.t_()", forms=METHOD, why=RESTRIDED, restrides=True),
    Operation("squeeze_", RESTRIDE, "x.squeeze_()", ("int",), ("dim",), METHOD, why=RESTRIDED, restrides=True),
    Operation("unsqueeze_", RESTRIDE, "x.unsqueeze_(0)", ("int",), ("dim",), METHOD, why=RESTRIDED, restrides=True),
)

_SIZES: tuple[Operation, ...] = (
    Operation("view", VIEW, "x.view(3, 2)", ("int", "ints", "dtype"), ("size", "dtype"), METHOD, guards.view_sizes),
    Operation("view_as", VIEW, "x.view_as(torch.empty(6))", ("tensor",), ("other",), METHOD),
    Operation("expand", VIEW, "x.expand(4, 2, 3)", INTS, ("size",), METHOD, guards.exact_sizes, why=REPEATED),
    Operation("expand_as", VIEW, "x.expand_as(torch.ones(4, 2, 3))", ("tensor",), ("other",), METHOD, why=REPEATED),
    Operation("broadcast_to", VIEW, "x.broadcast_to(4, 2, 3)", INTS, ("size",), BOTH, guards.exact_sizes, why=REPEATED),
    Operation(
        "broadcast_tensors",
        VIEW,
        "torch.broadcast_tensors(x[0], x)[0]",
        _LISTED,
        (),
        TORCH,
        guards.elementwise,
        subject=False,
        several=True,
        why=REPEATED,
    ),
    Operation(
        "meshgrid",
        VIEW,
        "torch.meshgrid(x[0], x[1], indexing='ij')[0]",
        (*_LISTED, "text"),
        ("indexing",),
        TORCH,
        guards_of_results.products,
        subject=False,
        several=True,
        why=REPEATED,
    ),
    Operation("squeeze", VIEW, "x.squeeze(1)", INTS, ("dim",), why=FEWER),
    Operation("unsqueeze", VIEW, "x.unsqueeze(0)", ("int",), ("dim",), why=FEWER),
    *(
        Operation(name, VIEW, f"torch.{name}({tensor})", forms=TORCH, why=FEWER)
        for name, tensor in (("atleast_1d", "x[0, 0]"), ("atleast_2d", "x[0]"), ("atleast_3d", "x"))
    ),
    Operation(
        "unflatten",
        VIEW,
        "x.unflatten(1, (3, 1))",
        INTS,
        ("dim", "sizes"),
        guard=guards.view_sizes,
        why="splitting one dimension always works: the outer stride is the inner one times the inner size",
    ),
)

_PARTS: tuple[Operation, ...] = (
    Operation("narrow", VIEW, "x.narrow(1, 0, 2)", ("int", "tensor"), ("dim", "start", "length"), why=PART),
    Operation("select", VIEW, "x.select(0, 1)", ("int",), ("dim", "index"), why=PART),
    Operation(
        "diagonal",
        VIEW,
        "x.diagonal()",
        ("int",),
        ("offset", "dim1", "dim2"),
        why="one step along the diagonal is one step in both dimensions, so the strides add up",
    ),
    Operation(
        "unfold",
        VIEW,
        "x.unfold(1, 2, 1)",
        ("int",),
        ("dimension", "size", "step"),
        METHOD,
        why="windows may overlap: the same cells, read with one stride more",
    ),
    Operation(
        "as_strided",
        VIEW,
        "x.as_strided((2, 2), (1, 2))",
        ("int", "ints", "none"),
        ("size", "stride", "storage_offset"),
        guard=guards.strided,
        why="the layout is taken as given; only the bounds of the storage are checked",
    ),
    Operation("detach", VIEW, "x.detach()", why="the same cells, outside the gradient graph"),
    *(
        Operation(
            name, VIEW, f"{_COMPLEX}.{name}", forms=(*PROPERTY, *TORCH), why="every second number of the same cells"
        )
        for name in ("real", "imag")
    ),
    Operation(
        "view_as_real",
        VIEW,
        f"torch.view_as_real({_COMPLEX})",
        forms=TORCH,
        why="a complex number is two real ones side by side: a dimension of 2 with stride 1",
    ),
    Operation(
        "view_as_complex",
        VIEW,
        "torch.view_as_complex(torch.ones(3, 2))",
        forms=TORCH,
        why="two real numbers side by side are read as one complex number",
    ),
    Operation(
        "conj",
        VIEW,
        f"{_COMPLEX}.conj()",
        why="the same cells, with a note that the imaginary part counts negative",
    ),
    Operation(
        "chunk", VIEW, "x.chunk(2)[0]", ("int",), ("chunks", "dim"), BOTH, guards.chunks, several=True, why=PIECES
    ),
    Operation(
        "split", VIEW, "x.split(1)[0]", INTS, ("split_size", "dim"), BOTH, guards.split_pieces, several=True, why=PIECES
    ),
    Operation(
        "split_with_sizes",
        VIEW,
        "x.split_with_sizes((1, 2), 1)[0]",
        INTS,
        ("split_sizes", "dim"),
        BOTH,
        guards.split_pieces,
        several=True,
        why=PIECES,
    ),
    Operation(
        "unbind", VIEW, "x.unbind(0)[0]", ("int",), ("dim",), BOTH, guards.unbind_pieces, several=True, why=PIECES
    ),
    Operation(
        "tensor_split",
        VIEW,
        "x.tensor_split(2)[1]",
        (*INTS, "tensor"),
        ("sections", "indices", "dim"),
        BOTH,
        guards.sections,
        several=True,
        why=PIECES,
        measured=guards_of_values.cuts,
    ),
    *(
        Operation(name, VIEW, example, INTS, ("sections", "indices"), BOTH, guards.sections, several=True, why=PIECES)
        for name, example in (
            ("hsplit", "x.hsplit(3)[1]"),
            ("vsplit", "x.vsplit(2)[1]"),
            ("dsplit", "x.view(1, 2, 3).dsplit(3)[1]"),
        )
    ),
)

SHORT_CASTS = ("float", "double", "half", "bfloat16", "long", "int", "short", "bool")
"""Casts with a method of their own: ``x.float()`` is ``x.to(torch.float32)``."""

_EITHERS: tuple[Operation, ...] = (
    Operation("reshape", EITHER, "x.reshape(3, 2)", INTS, ("shape",), guard=guards.view_sizes),
    Operation("reshape_as", EITHER, "x.reshape_as(torch.empty(6))", ("tensor",), ("other",), METHOD),
    Operation("flatten", EITHER, "x.flatten()", ("int",), ("start_dim", "end_dim")),
    Operation("ravel", EITHER, "x.ravel()"),
    Operation("contiguous", EITHER, "x.contiguous()", ("format",), ("memory_format",), METHOD),
    Operation(
        "to",
        EITHER,
        "x.to(torch.float32)",
        ("dtype", "bool", "format", "tensor"),
        ("dtype", "other", "copy", "memory_format"),
        METHOD,
    ),
    Operation("type_as", EITHER, "x.type_as(torch.ones(1))", ("tensor",), ("other",), METHOD),
    *(Operation(name, EITHER, f"x.{name}()", ("format",), ("memory_format",), METHOD) for name in SHORT_CASTS),
    Operation("resolve_conj", EITHER, "x.resolve_conj()", why="what is to count as conjugate is written out"),
)

ROWS: tuple[Operation, ...] = (*_SIZES, *_PLACES, *_PARTS, *_EITHERS)
