"""The arguments of an operation: numbers, dtypes, patterns, tensors, lists of tensors; what is left out, and said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from core.limits import limit
from core.tensors.operations.operation import Operation, Takes
from core.tensors.operations.values import Device, DType, ExpressionError, MemoryFormat, Nested, Slot, Value
from core.tensors.parsing.objects import Named, Ref
from core.wording import listed

Given: TypeAlias = "list[tuple[str, Any, str]]"
"""Arguments: the name, empty for one by its place; the value; and the text of it in backticks."""

_TAKES: dict[Takes, str] = {
    "int": "whole numbers",
    "ints": "whole numbers",
    "data": "lists of numbers",
    "float": "numbers",
    "bool": "True or False",
    "none": "None",
    "dtype": "a dtype",
    "format": "a memory format",
    "text": "a pattern in quotes",
    "tensor": "a tensor",
    "tensors": "a list of tensors",
}
_DEVICE = re.compile(r"(cuda|cpu|mps|xpu|meta)(:[0-9]+)?")

_IGNORED = ("pin_memory", "non_blocking")
_NUMPY: Mapping[str, str] = {"axis": "dim", "keepdims": "keepdim"}
"""Names that numpy gives to arguments and torch takes as well."""

_PYTHON = ("split", "unflatten", "norm", "unique", "tensordot", "meshgrid")
"""Operations that torch has in Python, which take no names of numpy."""

_MAKERS = ("_like", "new_", "Parameter")
_TYPES = {"bool": "bool", "int": "int64", "float": "float64"}


class Arguments:
    """What one call gives its operation. inputs: the steps it takes; device: where its result is put."""

    def __init__(self, operation: Operation, notes: dict[str, None]) -> None:
        self.operation = operation
        self.notes = notes
        self.inputs: list[int] = []
        self.device = ""
        self.args: list[Value] = []
        self.keywords: list[tuple[str, Value]] = []

    def slot(self, ref: Ref) -> Slot:
        """A tensor as one more input."""
        self.inputs.append(ref.number)
        return Slot(len(self.inputs) - 1)

    def take(self, given: Given) -> None:
        """All arguments after the tensor that the operation works on."""
        operation = self.operation
        places = [self._value(value, text) for name, value, text in given if not name]
        left_over = places[len(operation.keywords) :] if operation.keywords and "tensors" not in operation.takes else []
        if any(isinstance(value, Slot) for value in left_over):  # which torch may take for `out`
            raise ExpressionError(
                f"{operation.name} takes {' and '.join(operation.keywords)} here. For example: {operation.example}."
            )
        self.args += [value for value in places if not isinstance(value, Device)]
        for name, value, text in given:
            if name and not self._ignored(name, value, text):
                self.keywords.append((self._parameter(name), self._value(value, text)))

    def _ignored(self, name: str, value: Any, text: str) -> bool:
        """Whether an argument changes no shape, stride or value; a device is taken down."""
        operation = self.operation
        makes = not operation.subject or any(part in operation.name for part in _MAKERS) or operation.name == "to"
        if name in operation.keywords or not makes or "dtype" not in operation.takes:
            return False
        if name == "device":
            self.place(value, text)
            return True
        if name in _IGNORED and isinstance(value, bool):
            self.notes[f"`{name}=` is left out: every tensor here lies in the memory of the CPU."] = None
            return True
        return False

    def place(self, value: Any, text: str) -> Device:
        """Take the device ``value`` for where the result lies."""
        name = value.name if isinstance(value, Device) else str(value or "cpu") if not isinstance(value, Ref) else ""
        if isinstance(value, int) and not isinstance(value, bool):
            name = f"cuda:{value}"
        if not _DEVICE.fullmatch(name):
            raise ExpressionError(f"{text} is no device; 'cuda:0' and 'cpu' are.")
        self.device = "cpu" if name in ("cpu", "meta") else name if ":" in name else f"{name}:0"
        if self.device != "cpu":
            self.notes[
                f"`{self.device}` is assumed: what moves there is followed and its bytes counted; the values are "
                "worked out on the CPU."
            ] = None
        return Device(self.device)

    def _parameter(self, name: str) -> str:
        operation = self.operation
        named = name if name in operation.keywords or operation.name in _PYTHON else _NUMPY.get(name, name)
        if named not in operation.keywords and (operation.keywords != ("*",) or named.startswith("_")):
            raise ExpressionError(f"{operation.name} takes no `{name[:40]}=` here. For example: {operation.example}.")
        return named

    def _value(self, value: Any, text: str) -> Value:
        takes = self.operation.takes
        if isinstance(value, Ref):
            if value.several and "tensors" in takes:
                return (self.slot(value),)
            if value.several:
                raise ExpressionError(f"{text} gives several tensors; pick one, for example {text[1:-1]}[0].")
            if "tensor" not in takes:
                raise ExpressionError(self._no_argument(text))
            return self.slot(value)
        if self.operation.name == "to" and (
            isinstance(value, Device) or (isinstance(value, str) and _DEVICE.fullmatch(value))
        ):
            return self.place(value, text)
        if isinstance(value, list | tuple) and any(isinstance(item, Ref) for item in cast("list[Any]", value)):
            items = cast("list[Any]", value)
            if "tensors" not in takes or not all(isinstance(item, Ref) for item in items):
                raise ExpressionError(self._no_argument(text))
            return tuple(self.slot(item) for item in items)
        if isinstance(value, list | tuple) and not value and "tensors" in takes:
            return ()
        kind, plain = literal(value)
        if kind is None:
            raise ExpressionError(
                f"{text} is not a number, a tuple of numbers, a dtype or a pattern. For example: "
                f"{self.operation.example}."
            )
        allowed = {"int": ("int", "float"), "ints": ("ints", "data")}.get(kind, (kind,))
        if not set(allowed) & set(takes):
            raise ExpressionError(self._no_argument(text))
        return plain

    def _no_argument(self, text: str) -> str:
        takes = list(dict.fromkeys(_TAKES[kind] for kind in self.operation.takes)) or ["nothing"]
        return (
            f"{text} is no argument of `{self.operation.name}`, which takes {listed(takes, 'or')} here. For example: "
            f"{self.operation.example}."
        )


def literal(value: Any) -> tuple[Takes | None, Value]:
    """The kind of a value that is no tensor, as operations tell them apart; ``None`` for one that none takes."""
    match value:
        case None:
            return "none", None
        case bool():
            return "bool", value
        case int():
            return "int", value
        case float():
            return "float", value
        case str():
            return "text", value
        case DType():
            return "dtype", value
        case MemoryFormat():
            return "format", value
        case Named(module="", name=name) if name in _TYPES:
            return "dtype", DType(_TYPES[name])
        case range():
            return "data", tuple(value)  # torch takes a range as numbers, not as sizes
        case tuple() | list():
            plain = nested(cast("Sequence[Any]", value))
            whole = isinstance(plain, tuple) and all(
                isinstance(item, int) and not isinstance(item, bool) for item in plain
            )
            return (None if plain is None else "ints" if whole else "data"), plain
        case _:
            return None, None


def nested(value: Any) -> Nested | None:
    """A number, a truth value, or lists of them as tuples; ``None`` when anything else is inside."""
    if isinstance(value, list | tuple):
        items = [nested(item) for item in cast("Sequence[Any]", value)]
        return None if any(item is None for item in items) else tuple(item for item in items if item is not None)
    return value if isinstance(value, int | float) else None


def check_argument(value: Any) -> None:
    """Refuse a whole number that is too large for a size, a stride or an index, wherever it stands in ``value``."""
    if isinstance(value, tuple):
        for item in cast("tuple[Any, ...]", value):
            check_argument(item)
    elif isinstance(value, slice):
        cut = cast("slice[Any, Any, Any]", value)
        check_argument((cut.start, cut.stop, cut.step))
    elif isinstance(value, int) and abs(value) > limit("expression_integer"):
        raise ExpressionError(f"A number that an operation takes is at most {limit('expression_integer'):,}.")
