"""What an operation takes or gives as one tensor or several, and nested lists as torch takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.tensors.operations.values import Nested


def opened(tensors: Sequence[Any]) -> list[Any]:
    """``tensors`` with each split opened into its pieces."""
    return [piece for tensor in tensors for piece in (tensor if are_several(tensor) else (tensor,))]


def first_of(result: Any) -> Any:
    """The tensor a step is drawn with, when it made several."""
    return result[0] if are_several(result) else result


def are_several(result: Any) -> bool:
    """Whether an operation gave several tensors."""
    return isinstance(result, tuple | list)


def lists(items: Nested) -> Any:
    """Tuples as lists, at any depth."""
    return [lists(item) for item in items] if isinstance(items, tuple) else items


def is_even(items: Nested) -> bool:
    """Whether nested lists have the same lengths everywhere; torch refuses others by itself."""
    if not isinstance(items, tuple):
        return True
    shapes = {len(item) if isinstance(item, tuple) else -1 for item in items}
    return len(shapes) < 2 and all(is_even(item) for item in items)
