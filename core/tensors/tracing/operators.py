"""The operators of Python between tensors, by their symbol; and what guards and pictures ask a tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from core.tensors.operations.values import ExpressionError

_OPERATORS: Mapping[str, str] = dict(
    (
        *(("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv"), ("//", "floordiv"), ("%", "mod"), ("**", "pow")),
        *(("@", "matmul"), ("&", "and_"), ("|", "or_")),
        *(("==", "eq"), ("!=", "ne"), ("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge")),
        *(("+=", "iadd"), ("-=", "isub"), ("*=", "imul"), ("/=", "itruediv")),
        *(("//=", "ifloordiv"), ("%=", "imod"), ("**=", "ipow")),
    )
)
"""Symbol → the function of Python's ``operator`` module that stands for it between two operands."""


def operator_of(symbol: str) -> Callable[..., Any]:
    """The function that ``symbol`` stands for."""
    return getattr(operator, _OPERATORS[symbol])


def largest(tensor: Any) -> tuple[int, int]:
    """The largest element of a tensor of whole numbers and the sum of all, 0 for none."""
    if tensor.is_floating_point() or tensor.is_complex() or not tensor.numel():
        return 0, 0
    if tensor.is_meta:
        raise ExpressionError("How large the result is hangs on values, and a tensor that is only counted has none.")
    return int(tensor.max()), int(tensor.sum())


def raw(tensor: Any) -> Any:
    """``tensor`` without the notes that its cells count as conjugate or negative."""
    plain = tensor.conj() if tensor.is_conj() else tensor
    return plain._neg_view() if plain.is_neg() else plain
