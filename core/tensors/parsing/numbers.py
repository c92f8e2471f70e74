"""Plain numbers: arithmetic within bounds, and the constants and functions of Python, ``math`` and ``np``."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from core.limits import LIMITS, limit
from core.tensors.operations.values import ExpressionError

SYMBOLS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.USub: "-",
    ast.Invert: "~",
}
"""Operators as they are written."""

_FUNCTIONS: Mapping[str, str] = dict(
    (
        *(("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv"), ("//", "floordiv"), ("%", "mod"), ("**", "pow")),
        *(("@", "matmul"), ("&", "and_"), ("|", "or_"), ("^", "xor"), ("<<", "lshift"), (">>", "rshift")),
        *(("==", "eq"), ("!=", "ne"), ("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge")),
    )
)
"""Symbol → the function of Python's ``operator`` module that stands for it between two operands."""

MOST_ITEMS = 256
"""Items of a list, a tuple or a range."""


def operator_of(symbol: str) -> Callable[..., Any]:
    """The function that ``symbol`` stands for: ``iadd`` for ``+=``."""
    if symbol in _FUNCTIONS:
        return getattr(operator, _FUNCTIONS[symbol])
    return getattr(operator, f"i{_FUNCTIONS[symbol.removesuffix('=')].removesuffix('_')}")


CONSTANTS: Mapping[str, float] = {
    f"{module}.{name}": value
    for module in ("math", "np", "torch")
    for name, value in (("pi", math.pi), ("inf", math.inf), ("e", math.e), ("nan", math.nan))
}


def _of_several(function: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
    """A function that takes sizes, or several numbers."""

    def of(first: Any, *others: Any) -> Any:
        many = isinstance(first, tuple | list | range)
        return function((first, *others) if others or not many else cast("Sequence[Any]", first))

    return of


def _number(kind: Callable[[Any], Any]) -> Callable[..., Any]:
    """``int`` or ``float`` of a number or a short text."""

    def of(value: Any = 0) -> Any:
        return kind(value.strip()[:64] if isinstance(value, str) else value)

    return of


def _rounded(value: float, digits: int | None = None) -> float:
    if abs(digits or 0) > 20:  # Python works out 10 to this power
        raise ValueError("at most 20 digits")
    return round(value, digits)


def _range(*parts: Any) -> range:
    result = range(*parts)
    if len(result) > MOST_ITEMS:
        raise ExpressionError(f"A range has at most {MOST_ITEMS} numbers here, and this one has {len(result):,}.")
    return result


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "int": _number(int),
    "float": _number(float),
    "bool": bool,
    "abs": abs,
    "round": _rounded,
    "divmod": divmod,
    "min": _of_several(min),
    "max": _of_several(max),
    "sum": sum,
    "range": _range,
    "sorted": sorted,
    "math.prod": _of_several(math.prod),
    "np.prod": _of_several(math.prod),
    "math.pow": math.pow,
    **{f"math.{name}": getattr(math, name) for name in ("floor", "ceil", "gcd", "isqrt", "isclose", "isnan", "isinf")},
    **{
        f"{module}.{name}": getattr(math, name)
        for module in ("math", "np")
        for name in ("sqrt", "log", "log2", "log10", "exp", "cos", "sin", "tan", "log1p", "tanh")
    },
}
"""What is understood of plain values, and the function that works it out."""


_TOO_LARGE = f"A number in an expression is at most {LIMITS['expression_number'].value:,}."


def bounded(value: Any, text: str) -> Any:
    """``value`` when it is within the caps, whatever it is. Raises `ExpressionError` for any other."""
    if isinstance(value, bool | str | None):
        return value[:2000] if isinstance(value, str) else value
    if isinstance(value, complex) or (isinstance(value, int) and abs(value) > limit("expression_number")):
        raise ExpressionError(_TOO_LARGE)
    if isinstance(value, tuple | list):
        items = cast("Sequence[Any]", value)
        if len(items) > MOST_ITEMS:
            raise ExpressionError(f"`{text[:60]}`: more than {MOST_ITEMS} items.")
        for item in items:
            bounded(item, text)
    return cast(Any, value)


def worked_out(symbol: str, left: Any, right: Any, text: str) -> Any:
    """What an operator makes of two plain values.

    Raises `ExpressionError` quoting ``text`` beyond the caps, and what Python raises, such as for a division by zero.
    """
    if symbol == "**" and isinstance(left, int) and abs(left) > 1 and isinstance(right, int) and right > 60:
        raise ExpressionError(_TOO_LARGE)  # before Python works out a number of a million digits
    if symbol == "<<" and isinstance(right, int) and right > 64:
        raise ExpressionError(_TOO_LARGE)
    for many, times in ((left, right), (right, left)):
        if symbol == "*" and isinstance(many, str | tuple | list) and isinstance(times, int):
            size = len(cast("Sequence[Any]", many)) * max(times, 0)
            if size > MOST_ITEMS:
                raise ExpressionError(f"`{text[:60]}`: more than {MOST_ITEMS} items.")
    if symbol == "%" and isinstance(left, str):
        raise ExpressionError(f"`{text[:60]}`: a text is put together by an f-string here.")
    return bounded(operator_of(symbol)(left, right), text)
