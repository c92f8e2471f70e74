"""Arguments and indices as literals: what a syntax node stands for when it is no tensor."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Literal as OneOf
from typing import TypeAlias

from core.tensors.operations.operation import Takes
from core.tensors.operations.values import (
    DTYPES,
    MEMORY_FORMATS,
    Count,
    CountQuestion,
    DType,
    ExpressionError,
    MemoryFormat,
    Nested,
    Value,
)

Literal: TypeAlias = tuple[Takes | OneOf["device"], Value]
Read: TypeAlias = "Callable[[ast.expr], Count | None]"
"""The number that a node stands for, or several of them; ``None`` when it stands for none."""


def nested(node: ast.expr, read: Read) -> Nested | None:
    """A number, a truth value, or lists of them; ``None`` when anything else is inside."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        items = [nested(item, read) for item in node.elts]
        return None if any(item is None for item in items) else tuple(item for item in items if item is not None)
    count = read(node)
    return count if isinstance(count, int | float) else None


def literal(node: ast.expr, read: Read) -> Literal | None:
    """The kind and value of a literal; ``None`` when the node is none, so that it may be a tensor."""
    count = read(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        return None if count is None else ("data", count)  # torch takes a range as numbers, not as sizes
    if count is not None:
        return _kind(count), count
    match node:
        case ast.Tuple() | ast.List():
            values = nested(node, read)
            if isinstance(values, tuple):
                return "data", values
        case ast.Constant(value=None):
            return "none", None
        case ast.Constant(value=bool() as flag):
            return "bool", flag
        case ast.Constant(value=str() as string):
            return "text", string
        case ast.Name(id="bool" | "int" | "float" as name):
            return "dtype", DType({"bool": "bool", "int": "int64", "float": "float64"}[name])
        case ast.Attribute(value=ast.Name(id="torch"), attr=name):
            if name in DTYPES:
                return "dtype", DType(DTYPES[name])
            if name in MEMORY_FORMATS:
                return "format", MemoryFormat(name)
            raise ExpressionError(
                f"`torch.{name[:40]}` is not known here. Dtypes: {', '.join(sorted(set(DTYPES.values())))}."
            )
        case _:
            pass
    return None


def _kind(count: Count) -> Takes:
    if isinstance(count, CountQuestion):
        several, whole = count.several, count.whole
    else:
        several, whole = isinstance(count, tuple), is_whole(count)
    if several:
        return "ints" if whole else "data"
    return "int" if whole else "float"


def is_whole(count: Count | None) -> bool:
    """Whether there is no fraction in ``count``, as far as its syntax says."""
    if isinstance(count, tuple):
        return all(isinstance(item, int) for item in count)
    return count.whole if isinstance(count, CountQuestion) else not isinstance(count, float)
