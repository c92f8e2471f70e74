"""The error of what is not run, and whole numbers among arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast


class ExpressionError(ValueError):
    """An expression this product does not run; the message says what, why, and what would be understood."""


def integers(values: Sequence[Any]) -> tuple[int, ...]:
    """Return all integers among the arguments of a row, including those one level inside lists and tuples."""
    found: list[Any] = []
    for value in values:
        inner: Any = cast("dict[str, Any]", value).get("list") if isinstance(value, dict) else value
        found += cast("list[Any]", inner) if isinstance(inner, list) else [inner]
    return tuple(item for item in found if isinstance(item, int) and not isinstance(item, bool))
