"""Numbers in a program on tensors: ``n = 3``, ``x.size(0)``, ``b, n, d = x.shape``, ``d // 2``.

Reading tells them from tensors by their syntax and keeps what they ask about; they are worked out when the tensors are
there, see `core.tensors.parsing.evaluated`.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from core.tensors.operations.values import MODULES, Count, CountQuestion, DType, ExpressionError
from core.tensors.parsing.evaluated import bounded, combined
from core.tensors.parsing.numbers import CONSTANTS, about_dtype, infinite, written

CountKind: TypeAlias = Literal["number", "sizes"]

SYMBOLS: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
"""Arithmetic between numbers."""

PER_DIMENSION = ("size", "stride")
"""Methods that give one number per dimension, or that of one dimension."""

_METHODS = ("numel", "nelement", "dim", "ndimension", "storage_offset", "element_size")


def kind_of(node: ast.expr, names: Mapping[str, CountKind]) -> CountKind | None:
    """Whether ``node`` stands for a number, for several (a shape), or ``None`` for anything else.

    names: the kind of every name that stands for numbers.
    """
    match node:
        case ast.Constant(value=value):
            return "number" if isinstance(value, int | float) and not isinstance(value, bool) else None
        case ast.Name(id=name):
            return names.get(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return "number" if kind_of(operand, names) == "number" else None
        case ast.BinOp(left=left, op=symbol, right=right) if type(symbol) in SYMBOLS:
            kind = kind_of(left, names)
            both = kind is not None and kind == kind_of(right, names)
            return kind if both and (kind == "number" or isinstance(symbol, ast.Add)) else None
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return "sizes" if all(_is_part(item, names) for item in items) else None
        case ast.Subscript(value=owner, slice=index) if kind_of(owner, names) == "sizes":
            if isinstance(index, ast.Slice):
                bounds = (index.lower, index.upper, index.step)
                return "sizes" if all(b is None or kind_of(b, names) == "number" for b in bounds) else None
            return "number" if kind_of(index, names) == "number" else None
        case _ if written(node) in CONSTANTS or infinite(node) is not None or about_dtype(node) is not None:
            return "number"
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[part], keywords=[]):
            return "sizes" if kind_of(part, names) == "sizes" else None
        case ast.Call(func=ast.Name(id="range"), args=[_, *_] as parts, keywords=[]):
            return "sizes" if len(parts) < 4 and {kind_of(part, names) for part in parts} == {"number"} else None
        case ast.Call(func=function, args=parts, keywords=[]) if written(function) and parts:
            kinds = [kind_of(part, names) for part in parts]
            return "number" if kinds == ["sizes"] or set(kinds) == {"number"} else None
        case ast.Attribute(value=owner, attr="shape" | "ndim" as name) if not _is_module(owner):
            return "sizes" if name == "shape" else "number"
        case ast.Call(func=ast.Name(id="len"), args=[_], keywords=[]):
            return "number"
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if not _is_module(owner):
            return _called(name, [*node.args, *(k.value for k in node.keywords if k.arg == "dim")], node, names)
        case _:
            return None


def _is_part(node: ast.expr, names: Mapping[str, CountKind]) -> bool:
    if isinstance(node, ast.Starred):
        return kind_of(node.value, names) == "sizes"
    return kind_of(node, names) == "number"


def _called(name: str, dims: Sequence[ast.expr], node: ast.Call, names: Mapping[str, CountKind]) -> CountKind | None:
    if len(dims) != len(node.args) + len(node.keywords):
        return None  # a keyword that these methods do not take
    if name in _METHODS and not dims:
        return "number"
    if name in PER_DIMENSION and len(dims) < 2 and all(kind_of(dim, names) == "number" for dim in dims):
        return "number" if dims else "sizes"
    return None


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in MODULES


class CountReader(ABC):
    """Reads the nodes that `kind_of` tells to be numbers. The tensors in them are read by the subclass."""

    def __init__(self) -> None:
        self.kinds: dict[str, CountKind] = {}
        """The names that stand for numbers."""
        self.counts: dict[str, Count] = {}
        """What they stand for."""
        self.questions: list[CountQuestion] = []

    @abstractmethod
    def tensor(self, node: ast.expr) -> int: ...

    @abstractmethod
    def result(self, node: ast.expr) -> int: ...

    @abstractmethod
    def dtype(self, node: ast.expr) -> DType | CountQuestion: ...

    @abstractmethod
    def segment(self, node: ast.expr | ast.stmt) -> str: ...

    def kind(self, node: ast.expr) -> CountKind | None:
        return kind_of(node, self.kinds)

    def count(self, node: ast.expr) -> Count | None:
        """The number, or the sizes, that ``node`` stands for; ``None`` when it stands for none."""
        return None if self.kind(node) is None else self._read(node)

    def bind_count(self, name: str, count: Count, kind: CountKind) -> None:
        """Let ``name`` stand for a number; one that only tensors know is worked out once, however often it is used."""
        if isinstance(count, CountQuestion):
            self.questions.append(count)
            count = replace(count, what="name", parts=(), step=len(self.questions) - 1, text=name)
        self.counts[name] = count
        self.kinds[name] = kind

    def _read(self, node: ast.expr) -> Count:
        text = self.segment(node)
        match node:
            case ast.Constant(value=int() | float() as value):
                return bounded(value, text)
            case _ if (result := infinite(node)) is not None:
                return result
            case _ if written(node) in CONSTANTS:
                return CONSTANTS[written(node)]
            case _ if (about := about_dtype(node)) is not None:
                return CountQuestion("finfo", (self.dtype(about[0]), about[1]), text=text, whole=False)
            case ast.Call(func=ast.Name(id="list" | "tuple"), args=[sizes]):
                return self._read(sizes)
            case ast.Call(func=ast.Name(id="range"), args=given):
                return combined("range", [self._read(part) for part in given], text, several=True)
            case ast.Call(func=function, args=given) if written(function):
                return combined(written(function), [self._read(part) for part in given], text)
            case ast.Name(id=name):
                return self.counts[name]
            case ast.UnaryOp(operand=operand):
                return combined("negative", [self._read(operand)], text)
            case ast.BinOp(left=left, op=symbol, right=right):
                parts = [self._read(left), self._read(right)]
                return combined(SYMBOLS[type(symbol)], parts, text, several=self.kind(node) == "sizes")
            case ast.Tuple(elts=items) | ast.List(elts=items):
                opened: list[Count] = []
                for item in items:
                    part = self._read(item)
                    opened += part if isinstance(part, tuple) else [part]
                return combined("tuple", opened, text, several=True)
            case ast.Starred(value=value):
                found_ = self._read(value)
                return (
                    CountQuestion("star", (found_,), text=text, several=True)
                    if isinstance(found_, CountQuestion)
                    else found_
                )
            case ast.Subscript(value=owner, slice=ast.Slice() as cut):
                bounds = [None if b is None else self._read(b) for b in (cut.lower, cut.upper, cut.step)]
                return combined("slice", [self._read(owner), *bounds], text, several=True)
            case ast.Subscript(value=owner, slice=index):
                return combined("item", [self._read(owner), self._read(index)], text)
            case ast.Call(func=ast.Name(), args=[counted]) if self.kind(counted) == "sizes":
                return combined("count", [self._read(counted)], text)
            case ast.Call(func=ast.Name(), args=[counted]):
                return CountQuestion("len", step=self.result(counted), text=text)
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=dims, keywords=named):
                step = self.tensor(owner)
                given = tuple(self._read(dim) for dim in (*dims, *(keyword.value for keyword in named)))
                return CountQuestion(name, given, step, text, several=name in PER_DIMENSION and not given)
            case ast.Attribute(value=owner, attr=name):
                return CountQuestion(name, step=self.tensor(owner), text=text, several=name == "shape")
            case _:
                raise ExpressionError(f"`{text[:60]}` is not a number.")
