"""What an expression may contain besides tensors: numbers, tuples, dtypes, memory formats, patterns; and its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import TypeAlias

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
class Device:
    """A device, as typed. Every tensor here lies in the memory of the CPU, so it is never used."""

    name: str


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a tensor among the arguments: ``number`` counts the inputs of the step."""

    number: int


DTYPES: Mapping[str, str] = {
    **{name: name for name in ("int64", "int32", "int16", "int8", "uint8", "bool")},
    **{name: name for name in ("float64", "float32", "float16", "bfloat16", "complex64")},
    **{name: name for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "complex128")},
    **{name: name for name in ("uint16", "uint32", "uint64")},
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "double": "float64",
    "float": "float32",
    "half": "float16",
}
"""Element types an expression may name, with torch's aliases, and what each stands for."""

MEMORY_FORMATS: tuple[str, ...] = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")

Nested: TypeAlias = "int | float | bool | tuple[Nested, ...]"
"""A number, or a tuple of such at any depth: the data of torch.tensor, or an index list."""

Value: TypeAlias = "int | float | bool | str | DType | MemoryFormat | Device | Slot | tuple[Slot | Nested, ...] | None"
Keywords: TypeAlias = Mapping[str, Value]

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
