"""What lines say that are no tensors, how values are written, and what the reader asks of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from core.tensors.operations.values import Device, DType, MemoryFormat
from core.tensors.parsing.objects import Bound, Cell, Class, Function, Instance, Module, Named, Storage
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


class StatementRunner(Protocol):
    """What runs the steps that are read, one by one."""

    counted: bool

    def run(self, step: PlanStep) -> Exception | None: ...
    def last(self) -> int: ...
    def tensor(self, number: int) -> Any: ...
    def device(self, number: int) -> str: ...
    def storage(self, number: int) -> int: ...
    def gradient(self, number: int) -> int | None: ...
    def allocated(self, device: str) -> int: ...
    def reached(self, number: int) -> list[int]: ...
    def clear(self, number: int) -> None: ...
    def seed(self, number: int) -> None: ...
    def rename(self, number: int, name: str) -> None: ...
    def settle(self, names: Mapping[str, int], held: frozenset[int]) -> None: ...
    def name(self, number: int) -> str: ...
    def operation(self, number: int) -> Any: ...
    def mark(self) -> Any: ...
    def back(self, mark: Any) -> None: ...


def written_value(value: Any) -> str:
    """A value as a person reads it: of a tensor, its values while they are few, else its shape."""
    if hasattr(value, "untyped_storage"):
        if value.is_meta or value.numel() > 16:
            return f"tensor of shape {tuple(value.shape)}, {str(value.dtype).removeprefix('torch.')}"
        return f"tensor({_list_text(value.tolist())})"
    match value:
        case float():
            return str(value) if math.isfinite(value) and value == round(value, 6) else f"{value:.6g}"
        case DType() | MemoryFormat():
            return f"torch.{value.name}"
        case Device():
            return value.name
        case Cell():
            return f"byte {value.byte} of storage {value.storage}"
        case tuple() | list():
            items = cast("tuple[Any, ...]", value)
            inner = ", ".join(written_value(item) for item in items[:24])
            ends = "[]" if isinstance(value, list) else "()"
            return f"{ends[0]}{inner}{',' if isinstance(value, tuple) and len(items) == 1 else ''}{ends[1]}"
        case dict():
            pairs = cast("dict[Any, Any]", value)
            return f"{{{', '.join(f'{written_value(key)}: {written_value(item)}' for key, item in pairs.items())}}}"
        case Instance():
            return f"a {value.cls.name}"
        case Function() | Bound() | Named():
            return f"the function {value.name}"
        case Class():
            return f"the class {value.name}"
        case Module():
            return f"the module {value.path}"
        case Storage():
            return "a storage"
        case _:
            return str(value)[:MOST_SHOWN]


def _list_text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_list_text(item) for item in cast('list[Any]', value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
