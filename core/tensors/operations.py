"""The operations an expression may use: one row each, how they are written, what they take, what they could allocate.

A *guard* runs before its operation and refuses what would allocate more than core.limits allows. Views allocate
nothing, so their results are checked afterwards. Sizes are counted with every 0 as 1: a tensor of shape
(0, 10⁹) holds no element, but its sum over the first dimension would hold a thousand million.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias

from core.limits import LIMITS, limit
from core.units import scientific

Shape: TypeAlias = tuple[int, ...]
Group: TypeAlias = Literal[
    "Always a view", "A view if it can, else a copy", "A new tensor", "Named axes", "Written in place, as the last step"
]
Takes: TypeAlias = Literal["int", "ints", "float", "bool", "none", "dtype", "format", "text", "tensor"]
Written: TypeAlias = Literal["method", "property", "torch", "bare"]


class ExpressionError(ValueError):
    """An expression this product does not run; the message says what, why, and what would be understood."""


@dataclass(frozen=True, slots=True)
class DType:
    """A dtype named in an expression, ``torch.float32``."""

    name: str


@dataclass(frozen=True, slots=True)
class MemoryFormat:
    """A memory format named in an expression, ``torch.channels_last``."""

    name: str


DTYPES: Mapping[str, str] = {
    **{name: name for name in ("int64", "int32", "int16", "int8", "uint8")},
    **{name: name for name in ("float64", "float32", "float16", "bfloat16")},
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "double": "float64",
    "float": "float32",
    "half": "float16",
}
"""Element types an expression may name, with torch's aliases, and what each stands for."""

MEMORY_FORMATS: tuple[str, ...] = ("contiguous_format", "preserve_format", "channels_last")

Value: TypeAlias = int | float | bool | str | DType | MemoryFormat | tuple[int, ...] | None
Arguments: TypeAlias = tuple[Value, ...]
Keywords: TypeAlias = Mapping[str, Value]
Guard: TypeAlias = Callable[[Sequence[Shape], Arguments, Keywords], None]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: how it may be written and what it takes.

    forms: ``method`` x.name(…), ``property`` x.name, ``torch`` torch.name(x, …), ``bare`` name(x, …) as in einops.
    takes: kinds of literal arguments. keywords: parameters that may be named; ``*`` means any (axes of einops).
    several: it returns several tensors, of which one must be picked with an index.
    """

    name: str
    group: Group
    example: str
    takes: tuple[Takes, ...] = ()
    keywords: tuple[str, ...] = ()
    forms: tuple[Written, ...] = ("method", "torch")
    guard: Guard | None = None
    several: bool = False


# ------------------------------------------------------------------------------------------------ guards


def padded_numel(shape: Sequence[int]) -> int:
    """Elements of ``shape`` with every size below 1 counted as 1."""
    return math.prod(max(size, 1) for size in shape)


def check_elements(count: int, what: str) -> None:
    """Refuse a tensor of ``count`` elements beyond the cap; ``what`` names it in the message."""
    if count > limit("tensor_elements"):
        shown = f"{count:,}" if count < 10**15 else scientific(float(min(count, 10**300)))
        raise ExpressionError(
            f"{what} would have {shown} elements. Tensors here have at most {limit('tensor_elements'):,}: "
            f"{LIMITS['tensor_elements'].reason}."
        )


def check_size(shape: Sequence[int], what: str) -> None:
    """Refuse a tensor of ``shape`` beyond the caps on rank and elements; ``what`` names it in the message."""
    if len(shape) > limit("tensor_rank"):
        raise ExpressionError(f"{what} would have {len(shape)} dimensions. At most {limit('tensor_rank')} are drawn.")
    check_elements(padded_numel(shape), what)


def check_work(points: int, what: str) -> None:
    """Refuse a contraction of more than the capped number of multiply-adds."""
    if points > limit("contraction_points"):
        raise ExpressionError(
            f"{what} would take {points:,} multiply-adds; at most {limit('contraction_points'):,} are run here."
        )


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The sizes broadcasting could reach at most; for shapes that do not broadcast, torch refuses by itself."""
    columns = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return tuple(max(sizes) for sizes in columns)[::-1]


def integers(values: Sequence[Value]) -> tuple[int, ...]:
    """All integers in ``values``, tuples opened."""
    found: list[int] = []
    for value in values:
        items = value if isinstance(value, tuple) else (value,)
        found += [item for item in items if isinstance(item, int) and not isinstance(item, bool)]
    return tuple(found)


def named(names: Sequence[str], args: Arguments, keywords: Keywords) -> dict[str, Value]:
    """Arguments by parameter name, whichever way they were given."""
    return {**dict(zip(names, args, strict=False)), **keywords}


def _exact_sizes(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    # expand and broadcast_to: the arguments are the sizes of the result, -1 keeps one.
    check_size(integers((*args, *keywords.values())), "The result")


def _view_sizes(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    # view and reshape: torch refuses a wrong number of elements itself, while the product stays in range.
    sizes = integers((*args, *keywords.values()))
    if len(sizes) > limit("tensor_rank") + 1 or padded_numel(sizes) > 10**12:
        check_size(sizes, "The result")


def _strided(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    # torch checks the bounds of the storage, while the sum that reaches furthest stays in range.
    given = named(("size", "stride", "storage_offset"), args, keywords)
    sizes, strides = integers((given.get("size"),)), integers((given.get("stride"),))
    check_size(sizes, "The result")
    reach = sum((max(size, 1) - 1) * abs(stride) for size, stride in zip(sizes, strides, strict=False))
    if reach > 10**12:
        raise ExpressionError(f"as_strided would reach storage cell {reach:,}, far outside the storage.")


def _repeats(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    counts = integers((*args, *keywords.values()))
    pairs = zip_longest(reversed(shapes[0]), reversed(counts), fillvalue=1)
    check_size(tuple(max(size, 1) * max(count, 1) for size, count in pairs)[::-1], "The result")


def _interleaved(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    (repeats,) = integers((named(("repeats",), args, keywords).get("repeats"),)) or (1,)
    check_elements(padded_numel(shapes[0]) * max(repeats, 1), "The result")


def _chunks(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    counts = integers((named(("chunks",), args, keywords).get("chunks"),))
    if counts and counts[0] > limit("tensor_elements"):
        raise ExpressionError(f"chunk would make {counts[0]:,} tensors; at most {limit('tensor_elements'):,} here.")


def _elementwise(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    check_size(broadcast(shapes), "The result")


def _matmul(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    left, right = shapes
    if not left or not right:
        return  # torch refuses 0-d operands
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    result = (*broadcast((left[:-2], right[:-2])), *rows, *columns)
    check_size(result, "The product")
    check_work(padded_numel(result) * max(left[-1], 1), "The product")


_EQUATION = re.compile(r"[A-Za-z,.\-> ]*")
_AXIS = re.compile(r"\w+|\.\.\.")


def _einsum(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """Bound the whole iteration space: every intermediate of a pairwise contraction lies inside it."""
    equation = args[0] if args else None
    if not isinstance(equation, str) or not _EQUATION.fullmatch(equation):
        raise ExpressionError("einsum takes an equation of letters first, for example torch.einsum('ij,kj->ik', x, x).")
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:  # implicit output: the letters that occur once
        right = "".join(letter for letter in left if letter.isalpha() and left.count(letter) == 1)
    if max(len(term) for term in (*terms, right)) > limit("pattern_axes") + 3:
        raise ExpressionError(f"einsum takes at most {limit('pattern_axes')} letters per operand here.")
    if len(terms) != len(shapes):
        return  # torch refuses, before any work
    largest: dict[str, int] = {}
    ellipses: list[Shape] = []
    for term, shape in zip(terms, shapes, strict=True):
        before, dots, after = term.partition("...")
        if len(before) + len(after) > len(shape) or (not dots and len(before) != len(shape)):
            return  # torch refuses, before any work
        sizes = shape[: len(before)] + shape[len(shape) - len(after) :]
        for letter, size in zip(before + after, sizes, strict=True):
            largest[letter] = max(largest.get(letter, 1), size)
        ellipses.append(shape[len(before) : len(shape) - len(after)])
    check_work(math.prod(largest.values()) * padded_numel(broadcast(ellipses)), "einsum")
    kept = [largest.get(letter, 1) for letter in right if letter.isalpha()]
    check_size((*broadcast(ellipses), *kept), "The result")


def _pattern(shapes: Sequence[Shape], args: Arguments, keywords: Keywords) -> None:
    """Bound the axes of an einops pattern and the elements that new axes add."""
    pattern = args[0] if args else None
    if not isinstance(pattern, str):
        raise ExpressionError("einops takes the tensor, then a pattern, for example rearrange(x, 'a b -> b a').")
    left, _, right = pattern.partition("->")
    known, wanted = _AXIS.findall(left), _AXIS.findall(right)
    if max(len(known), len(wanted)) > limit("pattern_axes"):
        raise ExpressionError(f"einops patterns have at most {limit('pattern_axes')} axes per side here.")
    new = [size for name, size in keywords.items() if name not in known and isinstance(size, int)]
    new += [min(int(axis), 10**9) for axis in wanted if axis.isascii() and axis.isdigit() and len(axis) < 19]
    check_elements(padded_numel(shapes[0]) * padded_numel(new), "The result")


# ---------------------------------------------------------------------------------------------- the table


_VIEW: Group = "Always a view"
_EITHER: Group = "A view if it can, else a copy"
_NEW: Group = "A new tensor"
_AXES: Group = "Named axes"
_METHOD: tuple[Written, ...] = ("method",)
_PROPERTY: tuple[Written, ...] = ("property",)
_BARE: tuple[Written, ...] = ("bare",)

_ROWS: tuple[Operation, ...] = (
    Operation("view", _VIEW, "x.view(3, 2)", ("int", "ints", "dtype"), ("size", "dtype"), _METHOD, _view_sizes),
    Operation("permute", _VIEW, "x.permute(1, 0)", ("int", "ints"), ("dims",)),
    Operation("transpose", _VIEW, "x.transpose(0, 1)", ("int",), ("dim0", "dim1")),
    Operation("t", _VIEW, "x.t()"),
    Operation("T", _VIEW, "x.T", forms=_PROPERTY),
    Operation("mT", _VIEW, "x.mT", forms=_PROPERTY),
    Operation("movedim", _VIEW, "x.movedim(0, -1)", ("int", "ints"), ("source", "destination")),
    Operation("swapaxes", _VIEW, "x.swapaxes(0, 1)", ("int",), ("axis0", "axis1")),
    Operation("expand", _VIEW, "x.expand(4, 2, 3)", ("int", "ints"), forms=_METHOD, guard=_exact_sizes),
    Operation("broadcast_to", _VIEW, "x.broadcast_to(4, 2, 3)", ("int", "ints"), ("size",), guard=_exact_sizes),
    Operation("squeeze", _VIEW, "x.squeeze(1)", ("int", "ints"), ("dim",)),
    Operation("unsqueeze", _VIEW, "x.unsqueeze(0)", ("int",), ("dim",)),
    Operation("unflatten", _VIEW, "x.unflatten(1, (3, 1))", ("int", "ints"), ("dim", "sizes"), guard=_view_sizes),
    Operation("narrow", _VIEW, "x.narrow(1, 0, 2)", ("int",), ("dim", "start", "length")),
    Operation("select", _VIEW, "x.select(0, 1)", ("int",), ("dim", "index")),
    Operation("diagonal", _VIEW, "x.diagonal()", ("int",), ("offset", "dim1", "dim2")),
    Operation("unfold", _VIEW, "x.unfold(1, 2, 1)", ("int",), ("dimension", "size", "step"), _METHOD),
    Operation(
        "as_strided",
        _VIEW,
        "x.as_strided((2, 2), (1, 2))",
        ("int", "ints", "none"),
        ("size", "stride", "storage_offset"),
        guard=_strided,
    ),
    Operation("detach", _VIEW, "x.detach()"),
    Operation("chunk", _VIEW, "x.chunk(2)[0]", ("int",), ("chunks", "dim"), guard=_chunks, several=True),
    Operation("split", _VIEW, "x.split(1)[0]", ("int", "ints"), ("split_size", "dim"), several=True),
    Operation("unbind", _VIEW, "x.unbind(0)[0]", ("int",), ("dim",), several=True),
    Operation("reshape", _EITHER, "x.reshape(3, 2)", ("int", "ints"), ("shape",), guard=_view_sizes),
    Operation("flatten", _EITHER, "x.flatten()", ("int",), ("start_dim", "end_dim")),
    Operation("ravel", _EITHER, "x.ravel()"),
    Operation("contiguous", _EITHER, "x.contiguous()", ("format",), ("memory_format",), _METHOD),
    Operation(
        "to",
        _EITHER,
        "x.to(torch.float32)",
        ("dtype", "bool", "format"),
        ("dtype", "copy", "memory_format"),
        _METHOD,
    ),
    *(Operation(name, _EITHER, f"x.{name}()", forms=_METHOD) for name in ("float", "double", "half", "bfloat16")),
    *(Operation(name, _EITHER, f"x.{name}()", forms=_METHOD) for name in ("long", "int")),
    Operation("clone", _NEW, "x.clone()", ("format",), ("memory_format",)),
    Operation("flip", _NEW, "x.flip(0)", ("int", "ints"), ("dims",)),
    Operation("roll", _NEW, "x.roll(1)", ("int", "ints"), ("shifts", "dims")),
    Operation("repeat", _NEW, "x.repeat(2, 1)", ("int", "ints"), forms=_METHOD, guard=_repeats),
    Operation("repeat_interleave", _NEW, "x.repeat_interleave(2)", ("int",), ("repeats", "dim"), guard=_interleaved),
    Operation("triu", _NEW, "x.triu()", ("int",), ("diagonal",)),
    Operation("tril", _NEW, "x.tril()", ("int",), ("diagonal",)),
    Operation("sum", _NEW, "x.sum(0)", ("int", "ints", "bool", "none", "dtype"), ("dim", "keepdim", "dtype")),
    Operation("mean", _NEW, "x.float().mean(0)", ("int", "ints", "bool", "none", "dtype"), ("dim", "keepdim", "dtype")),
    Operation("matmul", _NEW, "x @ x.t()", ("tensor",), guard=_matmul),
    Operation("einsum", _AXES, "torch.einsum('ij->ji', x)", ("text", "tensor"), forms=("torch",), guard=_einsum),
    Operation("rearrange", _AXES, "rearrange(x, 'a b -> b a')", ("text", "int"), ("*",), _BARE, _pattern),
    Operation("reduce", _AXES, "reduce(x, 'a b -> a', 'sum')", ("text", "int"), ("*",), _BARE, _pattern),
    Operation("repeat", _AXES, "repeat(x, 'a b -> a r b', r=2)", ("text", "int"), ("*",), _BARE, _pattern),
)

OPERATIONS: Mapping[tuple[Written, str], Operation] = {(form, row.name): row for row in _ROWS for form in row.forms}
"""Every operation by the way it is written and its name."""

ELEMENTWISE = Operation("elementwise", _NEW, "x * 2 + x", guard=_elementwise)
"""``+``, ``-``, ``*`` and ``/`` between tensors and numbers."""

INDEXING = Operation("indexing", _VIEW, "x[0, None, ::2]")
"""Square brackets with integers, slices, None and Ellipsis."""


WRITING = Operation("write", "Written in place, as the last step", "x[0, 0] = 100")
"""A number assigned through square brackets."""


def catalogue() -> dict[Group, tuple[str, ...]]:
    """An example of every operation, by what it does to memory, in the order of the table."""
    groups: dict[Group, list[str]] = {}
    for row in (INDEXING, *_ROWS, ELEMENTWISE, WRITING):
        groups.setdefault(row.group, []).append(row.example)
    return {group: tuple(examples) for group, examples in groups.items()}


def find(form: Written, name: str) -> Operation:
    """The operation written ``name`` in this form. Raises `ExpressionError` naming the nearest one and all others."""
    found = OPERATIONS.get((form, name))
    if found is not None:
        return found
    shown = {"method": f".{name}(…)", "property": f".{name}", "torch": f"torch.{name}(…)", "bare": f"{name}(…)"}[form]
    for other in ("method", "property", "torch", "bare"):
        if (other, name) in OPERATIONS:
            raise ExpressionError(f"`{shown}` is not written that way here. Try {OPERATIONS[other, name].example}.")
    names = sorted({row.name for row in _ROWS}, key=str.lower)
    near = difflib.get_close_matches(name[:40], names, n=1, cutoff=0.6)
    guess = f" Did you mean `{near[0]}`?" if near else ""
    raise ExpressionError(f"`{shown[:60]}` is not an operation here.{guess} There are: {', '.join(names)}.")
