"""What guards and pictures ask a tensor."""

from __future__ import annotations

from typing import Any

from core.tensors.operations.values import ExpressionError


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
