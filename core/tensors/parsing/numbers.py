"""Constants and functions of plain numbers: ``math.sqrt(d)``, ``float('-inf')``, ``int(8 * d / 3)``, ``np.pi``."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

CONSTANTS: Mapping[str, float] = {
    f"{module}.{name}": value
    for module in ("math", "np", "torch")
    for name, value in (("pi", math.pi), ("inf", math.inf), ("e", math.e))
}

_ROUNDED = ("int", "math.floor", "math.ceil", "round")
_WHOLE_OF_WHOLE = ("abs", "min", "max", "sum", "math.prod", "np.prod")


def _of_several(function: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
    """A function that takes sizes, or several numbers."""

    def of(first: Any, *others: Any) -> Any:
        return function((first, *others) if others or not isinstance(first, tuple) else cast("tuple[Any, ...]", first))

    return of


def _rounded(value: float, digits: int = 0) -> float:
    if abs(digits) > 20:  # Python works out 10 to this power
        raise ValueError("at most 20 digits")
    return round(value, digits) if digits else round(value)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "int": int,
    "float": float,
    "abs": abs,
    "round": _rounded,
    "min": _of_several(min),
    "max": _of_several(max),
    "sum": _of_several(sum),
    "math.prod": _of_several(math.prod),
    "np.prod": _of_several(math.prod),
    "math.floor": math.floor,
    "math.ceil": math.ceil,
    **{
        f"{module}.{name}": getattr(math, name)
        for module in ("math", "np")
        for name in ("sqrt", "log", "log2", "log10", "exp", "cos", "sin", "tan")
    },
    "math.pow": math.pow,
}
"""What is understood, and the function of Python that works it out."""

NUMBERS = frozenset((*CONSTANTS, *FUNCTIONS))
BUILTINS = tuple(name for name in FUNCTIONS if "." not in name)

_INFINITE = {"inf": math.inf, "-inf": -math.inf, "infinity": math.inf, "-infinity": -math.inf}
FLOAT_INFO = ("min", "max", "eps", "tiny", "smallest_normal", "resolution")
"""What ``torch.finfo`` tells of a dtype."""


def written(node: ast.expr) -> str:
    """``math.sqrt`` for the syntax node of it; empty for a node that is none of `NUMBERS`."""
    match node:
        case ast.Name(id=name):
            path = name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            path = f"{module}.{name}"
        case _:
            return ""
    return path if path in NUMBERS else ""


def infinite(node: ast.expr) -> float | None:
    """The value of ``float('-inf')``; ``None`` for any other node."""
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)], keywords=[]):
            return _INFINITE.get(text.strip().lower().removeprefix("+"))
        case _:
            return None


def about_dtype(node: ast.expr) -> tuple[ast.expr, str] | None:
    """The dtype asked about and what is asked, of ``torch.finfo(x.dtype).min``; ``None`` for any other node."""
    match node:
        case ast.Attribute(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch"), attr="finfo"),
                args=[dtype],
                keywords=[],
            ),
            attr=name,
        ) if name in FLOAT_INFO:
            return dtype, name
        case _:
            return None


def stays_whole(path: str, parts_whole: bool) -> bool:
    """Whether a function gives a whole number, of parts that are whole or not."""
    return path in _ROUNDED or (path in _WHOLE_OF_WHOLE and parts_whole)
