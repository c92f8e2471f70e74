"""What lines say that are no tensors: the record of an answer, and how values are written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from core.tensors.operations.values import Device, DType
from core.tensors.parsing.plan import PlanStep

HELPERS: Mapping[str, int] = {"get_memory_usage": 1, "same_storage": 2}
"""Functions of the lecture that are known by their names, and how many tensors each takes."""

MOST_SHOWN = 240
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What a line said. text: what was asked; value: the answer; holds: of ``assert``, ``None`` for what is shown."""

    line: int
    text: str
    value: str
    holds: bool | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a tensor or its storage begins, to be compared only."""

    storage: int
    byte: int


class Machine(Protocol):
    """What runs the steps that are read, as soon as their statement is complete."""

    counted: bool

    def advance(self, steps: list[PlanStep]) -> Exception | None: ...
    def tensor(self, number: int) -> Any: ...
    def number(self, count: Any) -> Any: ...
    def device(self, number: int) -> str: ...
    def storage(self, number: int) -> int: ...
    def gradient(self, number: int) -> int | None: ...
    def allocated(self, device: str) -> int: ...
    def reached(self, number: int) -> list[int]: ...
    def clear(self, number: int) -> None: ...
    def seed(self, number: int) -> None: ...
    def forget(self, number: int, name: str) -> None: ...
    def has_run(self, number: int) -> bool: ...
    def unpacks(self, number: int, wanted: int) -> bool: ...
    def mark(self) -> Any: ...
    def back(self, mark: Any) -> None: ...


def written_value(value: Any) -> str:
    """A value as a person reads it: of a tensor, its values while they are few, else its shape."""
    if hasattr(value, "untyped_storage"):
        if value.is_meta or value.numel() > 16:
            return f"tensor of shape {tuple(value.shape)}, {str(value.dtype).removeprefix('torch.')}"
        return f"tensor({_list_text(value.tolist())})"
    if isinstance(value, float):
        return str(value) if math.isfinite(value) and value == round(value, 6) else f"{value:.6g}"
    if isinstance(value, DType):
        return f"torch.{value.name}"
    if isinstance(value, Device):
        return value.name
    if isinstance(value, Cell):
        return f"byte {value.byte} of storage {value.storage}"
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        inner = ", ".join(written_value(item) for item in items[:24])
        return f"({inner}{',' if len(items) == 1 else ''})"
    return str(value)[:MOST_SHOWN]


def _list_text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_list_text(item) for item in cast('list[Any]', value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
