"""The error of what is not run, whole numbers among arguments, and caps on sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from core.limits import LIMITS, limit
from core.messages import Message, message
from core.units import scientific


class ExpressionError(ValueError):
    """An expression this product does not run; the message says what, why, and what would be understood."""


def integers(values: Sequence[Any]) -> tuple[int, ...]:
    """All integers in arguments as a row has them, lists opened once."""
    numbers: list[int] = []
    for value in values:
        inner = value.get("list", ()) if isinstance(value, dict) else value
        items = inner if isinstance(inner, list) else [inner]
        numbers += [item for item in items if isinstance(item, int) and not isinstance(item, bool)]
    return tuple(numbers)


def padded_numel(shape: Sequence[int]) -> int:
    """Elements of ``shape`` with every size below 1 counted as 1."""
    return math.prod(max(size, 1) for size in shape)


def check_length(count: int) -> None:
    """Reject more characters than an expression may have."""
    if count > (most := limit("expression_chars")):
        raise ExpressionError(message("tensors.problem.long", most=float(most)))


def check_elements(count: int, what: Message, cap: str = "tensor_elements") -> None:
    """Reject a tensor of ``count`` elements beyond the cap; ``what`` names it."""
    if count > (most := limit(cap)):
        elements = f"{count:,}" if count < 10**15 else scientific(float(min(count, 10**300)))
        reason = LIMITS[cap].reason
        raise ExpressionError(
            message("tensors.problem.elements", what=what, elements=elements, most=float(most), reason=reason)
        )


def check_size(shape: Sequence[int], what: Message, cap: str = "tensor_elements") -> None:
    """Reject a tensor of ``shape`` beyond the caps on rank and elements; ``what`` names it."""
    if len(shape) > (most := limit("tensor_rank")):
        raise ExpressionError(message("tensors.problem.rank", what=what, rank=float(len(shape)), most=float(most)))
    check_elements(padded_numel(shape), what, cap)
