"""Names, square brackets and attributes: the parts of tensors, lists, modules and objects."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, cast

from core.limits import limit
from core.tensors.operations.lookup import OPERATIONS, REFUSED, find
from core.tensors.operations.table import PIECE
from core.tensors.operations.values import (
    DTYPES,
    MEMORY_FORMATS,
    Device,
    DType,
    ExpressionError,
    Index,
    IndexItem,
    MemoryFormat,
    Slot,
)
from core.tensors.parsing.arguments import nested
from core.tensors.parsing.evaluation import Evaluator
from core.tensors.parsing.facts import HELPERS
from core.tensors.parsing.imports import MODULES
from core.tensors.parsing.numbers import CONSTANTS, FUNCTIONS
from core.tensors.parsing.objects import Bound, Class, Instance, Module, Named, PythonError, Ref, Super
from core.tensors.parsing.text import EXAMPLE

_BARE = [name for form, name in OPERATIONS if form == "bare"]
PYTHON_CALLS = (
    *("len", "list", "tuple", "dict", "zip", "enumerate", "reversed", "map", "filter", "str", "repr", "type"),
    *("isinstance", "hasattr", "any", "all", *HELPERS),
)
"""Functions of plain values, besides those of numbers."""

_SPECIAL = ("print", "getattr", "super", "display", "text")

PYTHON = (*(name for name in FUNCTIONS if "." not in name), *PYTHON_CALLS, *_SPECIAL)
"""Functions of Python that are understood."""

_NO_INDEX = "an index is a whole number, a slice, None, `...`, a list of whole numbers, or a tensor"

_FILES = ("memmap", "load", "fromfile", "loadtxt", "genfromtxt", "from_file")
"""Functions of modules that read files."""

_FINFO = ("min", "max", "eps", "tiny", "smallest_normal", "resolution", "bits")
"""What ``torch.finfo`` tells of a dtype."""


class AccessReader(Evaluator):
    """Finds what a name, brackets or a dot stand for."""

    def _name(self, node: ast.Name) -> Any:
        frame = self.frame.find(node.id)
        if frame is not None:
            return frame.names[node.id]
        if node.id in MODULES:
            return Module(MODULES[node.id])
        if node.id in (*PYTHON, *_BARE):
            return Named("", node.id)
        if node.id == "self":
            raise ExpressionError("There is no self here; give its class, or a function instead.")
        known = ", ".join(name for name in self.frame.names if "." not in name)
        are = f"{known} {'are' if ',' in known else 'is'}" if known else "no name is"
        raise ExpressionError(f"`{node.id[:40]}` is not known; {are}. For example: {EXAMPLE}.")

    def _subscript(self, node: ast.Subscript) -> Any:
        base = node.value
        if isinstance(base, ast.Call):
            owner, done = self.call(base, node)
            if done:
                return owner
        else:
            owner = self.value(base)
        with self.holding() as held:
            held.append(owner)
            if isinstance(owner, Ref) and owner.several:
                return self._some(owner, node)
            if isinstance(owner, Ref):
                inputs: list[int] = []
                index = self.index(node.slice, inputs)
                return self._picked(owner, index, self.after(node, base), self.segment(node), node, inputs)
        return self.plain_item(owner, self.value(node.slice), node)

    def plain_item(self, owner: Any, at: Any, node: ast.expr) -> Any:
        """One item, or some, of a list, a tuple, a text or a dictionary."""
        if isinstance(owner, Instance) and "layers" in owner.fields:
            owner = owner.fields["layers"]
        with self.raising(node):
            if isinstance(owner, dict):
                return cast("dict[Any, Any]", owner)[self.key(at, node)]
            if isinstance(owner, tuple | list | str | range) and isinstance(at, int | slice):
                found: Any = cast("Sequence[Any]", owner)[at]
                return tuple(found) if isinstance(found, range) else found
        raise ExpressionError(f"{self.quote(node)}: square brackets take a part of a tensor, a list or sizes.")

    def _some(self, owner: Ref, node: ast.Subscript) -> Ref:
        """One of several tensors, or some, which stay several: ``x.chunk(4)[1:]``."""
        if isinstance(node.slice, ast.Slice):
            index = (self._slice(node.slice),)
            return self.severally(self.step(PIECE, "piece", (owner.number,), node, index=index))
        return self.piece(owner, self.whole(self.value(node.slice), node), self.segment(node), node)

    def whole(self, value: Any, node: ast.Subscript) -> int:
        if not isinstance(value, int):
            raise ExpressionError(f"Pick one of the tensors with a whole number, not `[{self.segment(node.slice)}]`.")
        return value

    def index(self, node: ast.expr, inputs: list[int]) -> Index:
        """What stands in square brackets; the numbers of tensors in it are added to ``inputs``."""
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        items: list[IndexItem] = []
        for part in parts:
            if isinstance(part, ast.Starred):
                opened = self.items(self.value(part.value), part.value)
                items += [self.index_item(item, part.value, inputs) for item in opened]
            else:
                value = self.value(part)
                one = len(parts) == 1
                items += self.index_items(value, part, inputs) if one else [self.index_item(value, part, inputs)]
        if sum(item is None for item in items) > limit("tensor_rank"):
            raise ExpressionError(f"Too many new dimensions; at most {limit('tensor_rank')} are drawn.")
        return tuple(items)

    def index_items(self, value: Any, node: ast.expr, inputs: list[int]) -> list[IndexItem]:
        """What stands in brackets alone, where a tuple is one item for each dimension."""
        values = list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else [value]
        return [self.index_item(item, node, inputs) for item in values]

    def index_item(self, value: Any, node: ast.expr, inputs: list[int]) -> IndexItem:
        match value:
            case bool():
                pass
            case None | int() | slice():
                return cast("IndexItem", value)
            case Ref():
                inputs.append(self.one(value, node).number)
                return Slot(len(inputs))
            case list() | tuple() | range():
                numbers = nested(list(value) if isinstance(value, range) else value)
                if isinstance(numbers, tuple) and not _has_fraction(numbers):
                    return numbers
            case _ if value is ...:
                return ...
            case _:
                pass
        raise ExpressionError(f"`[{self.segment(node)[:60]}]`: {_NO_INDEX}.")

    def _slice(self, node: ast.Slice) -> slice[int | None, int | None, int | None]:
        return slice(*(None if part is None else self._edge(part) for part in (node.lower, node.upper, node.step)))

    def _edge(self, node: ast.expr) -> int | None:
        value = self.value(node)
        if isinstance(value, Ref) and not value.several:
            tensor = self.machine.tensor(value.number)
            if not tensor.dim() and not tensor.is_floating_point() and not tensor.is_complex() and not tensor.is_meta:
                value = int(tensor)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise ExpressionError(f"`[{self.segment(node)[:60]}]`: {_NO_INDEX}.")
        return value

    def _attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Call):
            owner, done = self.call(node.value, node)
            if done:
                return owner
        else:
            owner = self.value(node.value)
        found = self.attribute(owner, node)
        if isinstance(found, Bound) and not isinstance(owner, Ref | Instance | Super):
            raise ExpressionError(f"{self.quote(node)}: `.{node.attr[:40]}` is not an operation here.")
        if isinstance(found, Bound) and isinstance(owner, Ref):
            example = OPERATIONS["method", node.attr].example if ("method", node.attr) in OPERATIONS else "x.size(0)"
            raise ExpressionError(f"`.{node.attr}` is a method, which needs round brackets, for example {example}.")
        return found

    def attribute(self, owner: Any, node: ast.Attribute) -> Any:
        """``owner.name``."""
        name = node.attr
        match owner:
            case Module(path=path):
                return self._of_module(path, name, node)
            case Ref(several=True):
                fields = self.machine.operation(owner.number).fields
                if name in fields:
                    return self.piece(owner, fields.index(name), self.segment(node), node)
                raise ExpressionError(
                    f"{self.quote(node.value)} gives several tensors; pick one, for example "
                    f"{self.segment(node.value)[:60]}[0]."
                )
            case Ref():
                return self.of_tensor(owner, node)
            case Instance():
                return self.of_instance(owner, name, node)
            case Super():
                return self.of_super(owner, name, node)
            case Class() | Named() if name == "__name__":
                return owner.name
            case Class():
                if (found := owner.find(name)) is not None:
                    return found
            case Device() if name in ("type", "index"):
                kind, _, index = owner.name.partition(":")
                return kind if name == "type" else int(index or 0) if kind != "cpu" else None
            case DType() if name in ("itemsize", "is_floating_point"):
                import torch

                return getattr(getattr(torch, owner.name), name)
            case Exception() if name == "args":
                return (str(owner),)
            case Named(module=module, name=outer):
                find("torch" if module == "torch" else "bare", outer)
            case dict() if name in cast("dict[str, Any]", owner) and name in _FINFO:
                return cast("dict[str, Any]", owner)[name]
            case _ if not isinstance(owner, int | float | None):
                return Bound(owner, name)
            case _:
                pass
        raise PythonError("AttributeError", f"{self.quote(node)}: {self.what(owner, node.value)}.")

    def _of_module(self, path: str, name: str, node: ast.Attribute) -> Any:
        whole = f"{path}.{name}"
        if whole in MODULES:
            return Module(MODULES[whole])
        if whole in CONSTANTS:
            return CONSTANTS[whole]
        if path in ("torch", "np") and name in DTYPES:
            return DType(DTYPES[name])
        if path == "torch" and name in MEMORY_FORMATS:
            return MemoryFormat(name)
        if name in REFUSED:
            raise ExpressionError(f"`{name}` is refused here by design: {REFUSED[name]}.")
        if name in _FILES:
            raise ExpressionError(
                f"`{whole}` opens a file, and none is opened here. Tensors stand for it: data = torch.arange(1000)."
            )
        made = self.layer(name) if path in ("nn", "torch.optim") else None
        return Named(path, name) if made is None else made

    @abstractmethod
    def layer(self, name: str) -> Class | None: ...

    @abstractmethod
    def of_tensor(self, owner: Ref, node: ast.Attribute) -> Any: ...

    @abstractmethod
    def of_instance(self, owner: Instance, name: str, node: ast.Attribute) -> Any: ...

    @abstractmethod
    def of_super(self, owner: Super, name: str, node: ast.Attribute) -> Any: ...

    @abstractmethod
    def call(self, node: ast.Call, outer: ast.Subscript | ast.Attribute | None = None) -> tuple[Any, bool]:
        """What a call gives, and whether ``outer``, which picks one of several results, is done with it."""


def _has_fraction(value: Any) -> bool:
    return any(map(_has_fraction, cast("Any", value))) if isinstance(value, tuple) else isinstance(value, float)
