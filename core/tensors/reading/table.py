"""The operations an expression may use: one row each, how they are written, what they take, and why they copy or not.

What an operation could allocate is bounded by its guard, see `core.tensors.reading.guards`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.tensors.reading import guards
from core.tensors.reading.guards import Guard

Group: TypeAlias = Literal[
    "Always a view", "A view if it can, else a copy", "A new tensor", "Named axes", "Written in place", "Small tensors"
]
Takes: TypeAlias = Literal[
    "int", "ints", "data", "float", "bool", "none", "dtype", "format", "text", "tensor", "tensors"
]
Written: TypeAlias = Literal["method", "property", "torch", "bare", "F"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: how it may be written and what it takes.

    forms: ``method`` x.name(…), ``property`` x.name, ``torch`` torch.name(x, …), ``bare`` name(x, …) as in einops,
    ``F`` F.name(x, …). takes: kinds of arguments after the tensor it works on. keywords: parameters that may be
    named; ``*`` means any (axes of einops). subject: its first argument is the tensor it works on.
    several: it returns several tensors. writes: it writes into the tensor it works on. why: the reason for what it
    does to memory, as the end of a sentence; empty where the layouts decide.
    """

    name: str
    group: Group
    example: str
    takes: tuple[Takes, ...] = ()
    keywords: tuple[str, ...] = ()
    forms: tuple[Written, ...] = ("method", "torch")
    guard: Guard | None = None
    subject: bool = True
    several: bool = False
    writes: bool = False
    why: str = ""


_VIEW: Group = "Always a view"
_EITHER: Group = "A view if it can, else a copy"
_NEW: Group = "A new tensor"
_AXES: Group = "Named axes"
_WRITE: Group = "Written in place"
_SMALL: Group = "Small tensors"
_METHOD: tuple[Written, ...] = ("method",)
_PROPERTY: tuple[Written, ...] = ("property",)
_TORCH: tuple[Written, ...] = ("torch",)
_BARE: tuple[Written, ...] = ("bare",)
_INTS: tuple[Takes, ...] = ("int", "ints")
_SUMS: tuple[Takes, ...] = ("int", "ints", "bool", "none", "dtype")
_SIZES: tuple[Takes, ...] = ("int", "ints", "dtype")

_STRIDES = "the same cells, read with other strides"
PART = "a part of the same cells: only offset, sizes and strides change"
REPEATED = "stride 0 reads one cell many times"
_PIECES = "each piece is a part of the same cells"
_COMPUTED = "computed values need cells of their own"
_COPIED = "each element is copied as often as asked; expand would read its cell again instead"


_VIEWS: tuple[Operation, ...] = (
    Operation("view", _VIEW, "x.view(3, 2)", ("int", "ints", "dtype"), ("size", "dtype"), _METHOD, guards.view_sizes),
    Operation("view_as", _VIEW, "x.view_as(torch.empty(6))", ("tensor",), ("other",), _METHOD),
    Operation("permute", _VIEW, "x.permute(1, 0)", _INTS, ("dims",), why=_STRIDES),
    Operation("transpose", _VIEW, "x.transpose(0, 1)", ("int",), ("dim0", "dim1"), why=_STRIDES),
    Operation("t", _VIEW, "x.t()", why=_STRIDES),
    Operation("T", _VIEW, "x.T", forms=_PROPERTY, why=_STRIDES),
    Operation("mT", _VIEW, "x.mT", forms=_PROPERTY, why=_STRIDES),
    Operation("movedim", _VIEW, "x.movedim(0, -1)", _INTS, ("source", "destination"), why=_STRIDES),
    Operation("swapaxes", _VIEW, "x.swapaxes(0, 1)", ("int",), ("axis0", "axis1"), why=_STRIDES),
    Operation("expand", _VIEW, "x.expand(4, 2, 3)", _INTS, ("size",), _METHOD, guards.exact_sizes, why=REPEATED),
    Operation("expand_as", _VIEW, "x.expand_as(torch.ones(4, 2, 3))", ("tensor",), ("other",), _METHOD, why=REPEATED),
    Operation(
        "broadcast_to", _VIEW, "x.broadcast_to(4, 2, 3)", _INTS, ("size",), guard=guards.exact_sizes, why=REPEATED
    ),
    Operation("squeeze", _VIEW, "x.squeeze(1)", _INTS, ("dim",), why="a size-1 dimension takes no step"),
    Operation("unsqueeze", _VIEW, "x.unsqueeze(0)", ("int",), ("dim",), why="a size-1 dimension takes no step"),
    Operation(
        "unflatten",
        _VIEW,
        "x.unflatten(1, (3, 1))",
        _INTS,
        ("dim", "sizes"),
        guard=guards.view_sizes,
        why="splitting one dimension always works: the outer stride is the inner one times the inner size",
    ),
    Operation("narrow", _VIEW, "x.narrow(1, 0, 2)", ("int",), ("dim", "start", "length"), why=PART),
    Operation("select", _VIEW, "x.select(0, 1)", ("int",), ("dim", "index"), why=PART),
    Operation(
        "diagonal",
        _VIEW,
        "x.diagonal()",
        ("int",),
        ("offset", "dim1", "dim2"),
        why="one step along the diagonal is one step in both dimensions, so the strides add up",
    ),
    Operation(
        "unfold",
        _VIEW,
        "x.unfold(1, 2, 1)",
        ("int",),
        ("dimension", "size", "step"),
        _METHOD,
        why="windows may overlap: the same cells, read with one stride more",
    ),
    Operation(
        "as_strided",
        _VIEW,
        "x.as_strided((2, 2), (1, 2))",
        ("int", "ints", "none"),
        ("size", "stride", "storage_offset"),
        guard=guards.strided,
        why="the layout is taken as given; only the bounds of the storage are checked",
    ),
    Operation("detach", _VIEW, "x.detach()", why="the same cells, outside the gradient graph"),
    Operation(
        "real",
        _VIEW,
        "torch.ones(2, dtype=torch.complex64).real",
        forms=_PROPERTY,
        why="every second number of the same cells",
    ),
    Operation(
        "imag",
        _VIEW,
        "torch.ones(2, dtype=torch.complex64).imag",
        forms=_PROPERTY,
        why="every second number of the same cells",
    ),
    Operation(
        "chunk", _VIEW, "x.chunk(2)[0]", ("int",), ("chunks", "dim"), guard=guards.chunks, several=True, why=_PIECES
    ),
    Operation(
        "split",
        _VIEW,
        "x.split(1)[0]",
        _INTS,
        ("split_size", "dim"),
        guard=guards.split_pieces,
        several=True,
        why=_PIECES,
    ),
    Operation(
        "unbind", _VIEW, "x.unbind(0)[0]", ("int",), ("dim",), guard=guards.unbind_pieces, several=True, why=_PIECES
    ),
    Operation(
        "tensor_split",
        _VIEW,
        "x.tensor_split(2)[1]",
        _INTS,
        ("sections", "indices", "dim"),
        guard=guards.sections,
        several=True,
        why=_PIECES,
    ),
    Operation(
        "hsplit",
        _VIEW,
        "x.hsplit(3)[1]",
        _INTS,
        ("sections", "indices"),
        guard=guards.sections,
        several=True,
        why=_PIECES,
    ),
)

SHORT_CASTS = ("float", "double", "half", "bfloat16", "long", "int", "bool")
"""Casts with a method of their own: ``x.float()`` is ``x.to(torch.float32)``."""

_EITHERS: tuple[Operation, ...] = (
    Operation("reshape", _EITHER, "x.reshape(3, 2)", _INTS, ("shape",), guard=guards.view_sizes),
    Operation("flatten", _EITHER, "x.flatten()", ("int",), ("start_dim", "end_dim")),
    Operation("ravel", _EITHER, "x.ravel()"),
    Operation("contiguous", _EITHER, "x.contiguous()", ("format",), ("memory_format",), _METHOD),
    Operation(
        "to", _EITHER, "x.to(torch.float32)", ("dtype", "bool", "format"), ("dtype", "copy", "memory_format"), _METHOD
    ),
    *(Operation(name, _EITHER, f"x.{name}()", forms=_METHOD) for name in SHORT_CASTS),
)

_NEWS: tuple[Operation, ...] = (
    Operation(
        "clone", _NEW, "x.clone()", ("format",), ("memory_format",), why="clone always copies; that is its purpose"
    ),
    Operation(
        "flip", _NEW, "x.flip(0)", _INTS, ("dims",), why="a view would need a negative stride, and torch has none"
    ),
    Operation(
        "roll", _NEW, "x.roll(1)", _INTS, ("shifts", "dims"), why="the jump back to the start has another stride"
    ),
    Operation("repeat", _NEW, "x.repeat(2, 1)", _INTS, ("repeats",), _METHOD, guards.repeats, why=_COPIED),
    Operation("tile", _NEW, "x.tile(2, 1)", _INTS, ("dims",), guard=guards.repeats, why=_COPIED),
    Operation(
        "repeat_interleave",
        _NEW,
        "x.repeat_interleave(2)",
        ("int",),
        ("repeats", "dim"),
        guard=guards.interleaved,
        why=_COPIED,
    ),
    Operation(
        "index_select",
        _NEW,
        "x.index_select(0, torch.tensor([1]))",
        ("int", "tensor"),
        ("dim", "index"),
        guard=guards.selected,
        why="picked elements need not lie at even steps",
    ),
    Operation(
        "triu", _NEW, "x.triu()", ("int",), ("diagonal",), why="the zeros must not be written into the tensor itself"
    ),
    Operation(
        "tril", _NEW, "x.tril()", ("int",), ("diagonal",), why="the zeros must not be written into the tensor itself"
    ),
    Operation(
        "diag",
        _NEW,
        "torch.diag(x)",
        ("int",),
        ("diagonal",),
        guard=guards.squared,
        why="diag makes a new tensor; the view is diagonal()",
    ),
    Operation("sum", _NEW, "x.sum(0)", _SUMS, ("dim", "keepdim", "dtype"), why=_COMPUTED),
    Operation("mean", _NEW, "x.float().mean(0)", _SUMS, ("dim", "keepdim", "dtype"), why=_COMPUTED),
    *(
        Operation(
            name,
            _NEW,
            f"x.{name}(2)",
            ("int", "float", "tensor"),
            ("other",),
            guard=guards.one_operand,
            why=_COMPUTED,
        )
        for name in ("add", "sub", "mul", "div")
    ),
    Operation("matmul", _NEW, "x @ x.t()", ("tensor",), ("other",), guard=guards.matmul, why=_COMPUTED),
    Operation(
        "cat",
        _NEW,
        "torch.cat([x, x])",
        ("tensors", "int"),
        ("dim",),
        _TORCH,
        guards.joined,
        subject=False,
        why="tensors from several places need one storage to lie side by side",
    ),
    Operation(
        "stack",
        _NEW,
        "torch.stack([x, x])",
        ("tensors", "int"),
        ("dim",),
        _TORCH,
        guards.joined,
        subject=False,
        why="tensors from several places need one storage to lie side by side",
    ),
    Operation(
        "unfold",
        _NEW,
        "F.unfold(x.float().view(1, 1, 2, 3), 2)",
        _INTS,
        ("kernel_size", "dilation", "padding", "stride"),
        ("F",),
        guards.columns,
        why="overlapping patches as columns: each element is copied once per patch",
    ),
)

_NAMED: tuple[Operation, ...] = (
    Operation(
        "einsum", _AXES, "torch.einsum('ij->ji', x)", ("text", "tensor"), (), _TORCH, guards.einsum, subject=False
    ),
    Operation("rearrange", _AXES, "rearrange(x, 'a b -> b a')", ("text", "int"), ("*",), _BARE, guards.pattern),
    Operation("reduce", _AXES, "reduce(x, 'a b -> a', 'sum')", ("text", "int"), ("*",), _BARE, guards.pattern),
    Operation("repeat", _AXES, "repeat(x, 'a b -> a r b', r=2)", ("text", "int"), ("*",), _BARE, guards.pattern),
    Operation(
        "einsum",
        _AXES,
        "einsum(x, x, 'a c, b c -> a b')",
        ("text", "tensor"),
        (),
        _BARE,
        guards.einops_einsum,
        subject=False,
    ),
)

_NUMBERS = "new numbers, new storage"
_IN_PLACE = "written in place: no new storage"

_WRITES: tuple[Operation, ...] = (
    Operation("fill_", _WRITE, "x.fill_(7)", ("int", "float"), ("value",), _METHOD, writes=True, why=_IN_PLACE),
    Operation("zero_", _WRITE, "x.zero_()", forms=_METHOD, writes=True, why=_IN_PLACE),
    *(
        Operation(
            f"{name}_",
            _WRITE,
            f"x.{name}_(1)",
            ("int", "float", "tensor"),
            ("other",),
            _METHOD,
            guards.one_operand,
            writes=True,
            why=_IN_PLACE,
        )
        for name in ("add", "sub", "mul")
    ),
    Operation(
        "div_",
        _WRITE,
        "x.float().div_(2)",
        ("int", "float", "tensor"),
        ("other",),
        _METHOD,
        guards.one_operand,
        writes=True,
        why=_IN_PLACE,
    ),
    Operation(
        "copy_",
        _WRITE,
        "x.copy_(x.flip(0))",
        ("tensor",),
        ("other",),
        _METHOD,
        guards.elementwise,
        writes=True,
        why=_IN_PLACE,
    ),
)

_DATA: tuple[Operation, ...] = (
    Operation(
        "tensor",
        _SMALL,
        "torch.tensor([[1, 2], [3, 4]])",
        ("data", "int", "float", "bool", "dtype"),
        ("dtype",),
        _TORCH,
        subject=False,
        why=_NUMBERS,
    ),
    *(
        Operation(
            name,
            _SMALL,
            f"torch.{name}(2, 3)",
            _SIZES,
            ("size", "dtype"),
            _TORCH,
            guards.exact_sizes,
            subject=False,
            why=why,
        )
        for name, why in (
            ("zeros", _NUMBERS),
            ("ones", _NUMBERS),
            ("empty", "new storage; filled with zeros here, because fresh memory may hold another visitor’s numbers"),
        )
    ),
    Operation(
        "arange",
        _SMALL,
        "torch.arange(6)",
        ("int", "float"),
        ("start", "end", "step", "dtype"),
        _TORCH,
        guards.counted,
        subject=False,
        why=_NUMBERS,
    ),
)

ROWS: tuple[Operation, ...] = (*_VIEWS, *_EITHERS, *_NEWS, *_NAMED, *_WRITES, *_DATA)

ELEMENTWISE = Operation("elementwise", _NEW, "x * 2 + x", guard=guards.elementwise, why=_COMPUTED)
"""``+ - * / // % **``, comparisons and ``& |`` between tensors and numbers."""

INDEXING = Operation("indexing", _VIEW, "x[0, None, ::2]", why=PART)
"""Square brackets with integers, slices, None and Ellipsis."""

PICKING = Operation("picking", _NEW, "x[x > 2]", why="picked elements need not lie at even steps")
"""Square brackets with a mask, a list or a tensor of integers."""

WRITING = Operation("write", _WRITE, "x[0, 0] = 100", why=_IN_PLACE)
"""A number or tensor assigned through square brackets."""

UPDATING = Operation("update", _WRITE, "x[:, 1] += 1", why=_IN_PLACE)
"""``+= -= *= /= //= %= **=`` on a name or through square brackets."""

NAMING = Operation("name", _VIEW, "y = x", why="a name is no tensor: nothing is made")
"""A second name for a tensor, or a line that only shows one."""

PIECE = Operation("piece", _VIEW, "y, z = x.chunk(2)", why=_PIECES)
"""One of the tensors that split, chunk or unbind made."""
