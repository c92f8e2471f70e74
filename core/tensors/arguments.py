"""Arguments and indices as literals: what a syntax node stands for when it is no tensor."""

from __future__ import annotations

import ast
import math
from typing import TypeAlias

from core.limits import limit
from core.tensors.table import Takes
from core.tensors.values import DTYPES, MEMORY_FORMATS, DType, ExpressionError, MemoryFormat, Nested, Value

Literal: TypeAlias = tuple[Takes, Value]


def number(node: ast.expr) -> int | float | None:
    """The number a literal stands for, with at most one minus; ``None`` when it is no number.

    Raises `ExpressionError` for one that is too large.
    """
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool) or not isinstance(node.value, int | float):
        return None
    if not math.isfinite(node.value) or abs(node.value) > limit("expression_integer"):
        raise ExpressionError(f"A number in an expression is at most {limit('expression_integer'):,}.")
    return sign * node.value


def integer(node: ast.expr) -> int | None:
    """The whole number a literal stands for; ``None`` when it is none."""
    found = number(node)
    return found if isinstance(found, int) else None


def nested(node: ast.expr) -> Nested | None:
    """A number, a truth value, or lists of them; ``None`` when anything else is inside."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        items = [nested(item) for item in node.elts]
        return None if any(item is None for item in items) else tuple(item for item in items if item is not None)
    return number(node)


def literal(node: ast.expr) -> Literal | None:
    """The kind and value of a literal; ``None`` when the node is none, so that it may be a tensor."""
    found = number(node)
    if found is not None:
        return ("int" if isinstance(found, int) else "float"), found
    match node:
        case ast.Tuple() | ast.List():
            values = nested(node)
            if isinstance(values, tuple):
                return ("ints" if all(type(value) is int for value in values) else "data"), values
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
