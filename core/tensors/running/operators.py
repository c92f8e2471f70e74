"""The operators of Python between tensors, by their symbol."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

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
