"""Arguments and indices as literals: what a syntax node stands for when it is no tensor."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Literal as OneOf
from typing import TypeAlias

from core.tensors.operations.table import Takes
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
    found = read(node)
    return found if isinstance(found, int | float) else None


def literal(node: ast.expr, read: Read) -> Literal | None:
    """The kind and value of a literal; ``None`` when the node is none, so that it may be a tensor."""
    found = read(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        return None if found is None else ("data", found)  # torch takes a range as numbers, not as sizes
    if found is not None:
        return _kind(found), found
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


def _kind(found: Count) -> Takes:
    if isinstance(found, CountQuestion):
        several, whole = found.several, found.whole
    else:
        several, whole = isinstance(found, tuple), is_whole(found)
    if several:
        return "ints" if whole else "data"
    return "int" if whole else "float"


def is_whole(found: Count | None) -> bool:
    """Whether there is no fraction in ``found``, as far as its syntax says."""
    if isinstance(found, tuple):
        return all(isinstance(item, int) for item in found)
    return found.whole if isinstance(found, CountQuestion) else not isinstance(found, float)
