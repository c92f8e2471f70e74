"""What arguments of a call may be besides tensors, the error of what is not run, and caps on sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import TypeAlias

from core.limits import LIMITS, limit
from core.messages import Message, message
from core.units import scientific

Shape: TypeAlias = tuple[int, ...]


class ExpressionError(ValueError):
    """An expression this product does not run; the message says what, why, and what would be understood."""


@dataclass(frozen=True, slots=True)
class DType:
    """A dtype named in an expression, ``torch.float32``."""

    name: str


@dataclass(frozen=True, slots=True)
class MemoryFormat:
    """A memory format named in an expression, ``torch.channels_last``."""

    name: str


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a tensor among the arguments: ``number`` counts the inputs of the step."""

    number: int


Nested: TypeAlias = "int | float | bool | tuple[Nested, ...]"
"""A number, or a tuple of such at any depth: the data of torch.tensor, or an index list."""

Value: TypeAlias = "int | float | bool | str | DType | MemoryFormat | Slot | tuple[Slot | Nested, ...] | None"
IndexItem: TypeAlias = "int | slice | EllipsisType | Slot | tuple[Nested, ...] | None"
"""One item in square brackets; a tuple is a list of integers, a slot is a tensor of integers or a mask."""

Index: TypeAlias = tuple[IndexItem, ...]


def integers(values: Sequence[Value]) -> tuple[int, ...]:
    """All integers in ``values``, tuples opened once."""
    numbers: list[int] = []
    for value in values:
        items = value if isinstance(value, tuple) else (value,)
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
