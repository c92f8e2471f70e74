"""What an operation takes or gives as one tensor or several, nested lists as torch takes them, and what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from core.tensors.operations.values import ExpressionError


def opened(tensors: Sequence[Any]) -> list[Any]:
    """``tensors`` with each split opened into its pieces."""
    return [piece for tensor in tensors for piece in (tensor if are_several(tensor) else (tensor,))]


def first_of(result: Any) -> Any:
    """The tensor a step is drawn with, when it made several."""
    return result[0] if are_several(result) else result


def are_several(result: Any) -> bool:
    """Whether an operation gave several tensors."""
    return isinstance(result, tuple | list)


def lists(items: Any) -> Any:
    """Tuples as lists, at any depth."""
    return [lists(item) for item in cast("tuple[Any, ...]", items)] if isinstance(items, tuple) else items


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
