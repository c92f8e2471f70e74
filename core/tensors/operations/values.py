"""The error of what is not run, and whole numbers among arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast


class ExpressionError(ValueError):
    """An expression this product does not run; the message says what, why, and what would be understood."""


def items(value: Any) -> list[Any]:
    """What a list or tuple among the arguments of a row holds; of any other argument, that itself."""
    inner: Any = cast("dict[str, Any]", value).get("list", value) if isinstance(value, dict) else value
    return cast("list[Any]", inner) if isinstance(inner, list) else [inner]


def integers(values: Sequence[Any]) -> tuple[int, ...]:
    """All integers in arguments of a row, lists opened once."""
    every = (item for value in values for item in items(value))
    return tuple(item for item in every if isinstance(item, int) and not isinstance(item, bool))
