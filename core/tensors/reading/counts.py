"""Numbers in a program on tensors: ``n = 3``, ``x.size(0)``, ``b, n, d = x.shape``, ``d // 2``.

Reading tells them from tensors by their syntax and keeps what they ask about; they are worked out when the tensors are
there. Every result is bounded, whatever the arithmetic.
"""

from __future__ import annotations

import ast
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

from core.limits import LIMITS, limit
from core.tensors.reading.arguments import is_whole
from core.tensors.reading.values import MODULES, Asked, Count, ExpressionError

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

_OPERATORS: Mapping[str, str] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "item": "getitem",
}
"""What puts two parts together → the function of Python's ``operator`` module that does it."""

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
        self.asked: list[Asked] = []

    @abstractmethod
    def tensor(self, node: ast.expr) -> int: ...

    @abstractmethod
    def result(self, node: ast.expr) -> int: ...

    @abstractmethod
    def segment(self, node: ast.expr | ast.stmt) -> str: ...

    def kind(self, node: ast.expr) -> CountKind | None:
        return kind_of(node, self.kinds)

    def count(self, node: ast.expr) -> Count | None:
        """The number, or the sizes, that ``node`` stands for; ``None`` when it stands for none."""
        return None if self.kind(node) is None else self._read(node)

    def bind_count(self, name: str, found: Count, kind: CountKind) -> None:
        """Let ``name`` stand for a number; one that only tensors know is worked out once, however often it is used."""
        if isinstance(found, Asked):
            self.asked.append(found)
            found = replace(found, what="name", parts=(), step=len(self.asked) - 1, text=name)
        self.counts[name] = found
        self.kinds[name] = kind

    def _read(self, node: ast.expr) -> Count:
        text = self.segment(node)
        match node:
            case ast.Constant(value=int() | float() as value):
                return bounded(value, text)
            case ast.Name(id=name):
                return self.counts[name]
            case ast.UnaryOp(operand=operand):
                return combined("negative", [self._read(operand)], text)
            case ast.BinOp(left=left, op=symbol, right=right):
                parts = [self._read(left), self._read(right)]
                return combined(SYMBOLS[type(symbol)], parts, text, several=self.kind(node) == "sizes")
            case ast.Tuple(elts=items) | ast.List(elts=items):
                found: list[Count] = []
                for item in items:
                    part = self._read(item)
                    found += part if isinstance(part, tuple) else [part]
                return combined("tuple", found, text, several=True)
            case ast.Starred(value=value):
                found_ = self._read(value)
                return Asked("star", (found_,), text=text, several=True) if isinstance(found_, Asked) else found_
            case ast.Subscript(value=owner, slice=ast.Slice() as cut):
                bounds = [None if b is None else self._read(b) for b in (cut.lower, cut.upper, cut.step)]
                return combined("slice", [self._read(owner), *bounds], text, several=True)
            case ast.Subscript(value=owner, slice=index):
                return combined("item", [self._read(owner), self._read(index)], text)
            case ast.Call(func=ast.Name(), args=[counted]) if self.kind(counted) == "sizes":
                return combined("count", [self._read(counted)], text)
            case ast.Call(func=ast.Name(), args=[counted]):
                return Asked("len", step=self.result(counted), text=text)
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=dims, keywords=named):
                step = self.tensor(owner)
                given = tuple(self._read(dim) for dim in (*dims, *(keyword.value for keyword in named)))
                return Asked(name, given, step, text, several=name in PER_DIMENSION and not given)
            case ast.Attribute(value=owner, attr=name):
                return Asked(name, step=self.tensor(owner), text=text, several=name == "shape")
            case _:
                raise ExpressionError(f"`{text[:60]}` is not a number.")


def combined(what: str, parts: Sequence[Count | None], text: str, *, several: bool = False) -> Count:
    """The number or sizes that ``what`` makes of ``parts``: worked out at once where all of them are known.

    Raises `ExpressionError` quoting ``text`` beyond the caps and for what Python refuses, such as division by zero.
    """
    if any(isinstance(part, Asked) for part in parts):
        whole = what != "/" and all(is_whole(part) for part in parts)
        return Asked(what, tuple(parts), text=text, whole=whole, several=several)
    return _worked_out(what, parts, text)


def _worked_out(what: str, parts: Sequence[Any], text: str) -> Count:
    try:
        match what:
            case "negative":
                return bounded(-parts[0], text)
            case "tuple":
                return bounded(tuple(parts), text)
            case "count":
                return len(parts[0])
            case "slice":
                return tuple(parts[0][slice(*parts[1:])])
            case "unpack":
                return _unpacked(*parts)
            case "**" if all(isinstance(part, int) for part in parts) and abs(parts[0]) > 1 and parts[1] > 30:
                raise ExpressionError(_TOO_LARGE)  # before Python works out a number of a million digits
            case _:
                return bounded(getattr(operator, _OPERATORS[what])(*parts), text)
    except (ArithmeticError, IndexError, TypeError, ValueError) as problem:
        if isinstance(problem, ExpressionError):
            raise
        raise ExpressionError(f"`{text[:60]}`: {problem}.") from None


_TOO_LARGE = f"A number in an expression is at most {LIMITS['expression_integer'].value:,}."


def bounded(value: Any, text: str) -> Count:
    """``value`` when it is a number, or sizes, within the caps. Raises `ExpressionError` for any other."""
    if isinstance(value, tuple):
        items = cast(tuple[Any, ...], value)
        if len(items) > 4 * limit("tensor_rank"):
            raise ExpressionError(f"`{text[:60]}`: more sizes than a tensor can have.")
        return tuple(_number(item) for item in items)
    return _number(value)


def _number(value: Any) -> int | float:
    # The size first: an integer of 309 digits has no float that could be finite or not.
    if isinstance(value, complex) or abs(value) > limit("expression_integer") or not math.isfinite(value):
        raise ExpressionError(_TOO_LARGE)
    return value


def _unpacked(sizes: Sequence[Any], wanted: int, star: int | None) -> tuple[Any, ...]:
    """The sizes, one per name; the name at ``star`` takes all that the others leave."""
    if star is not None:
        rest = len(sizes) - wanted + 1
        if rest < 0:
            raise ValueError(f"not enough values to unpack (expected at least {wanted - 1}, got {len(sizes)})")
        return (*sizes[:star], tuple(sizes[star : star + rest]), *sizes[star + rest :])
    if len(sizes) > wanted:
        raise ValueError(f"too many values to unpack (expected {wanted}, got {len(sizes)})")
    if len(sizes) < wanted:
        raise ValueError(f"not enough values to unpack (expected {wanted}, got {len(sizes)})")
    return tuple(sizes)


class Counts:
    """Works numbers out once their tensors are there; ``tensors`` grows while the program runs."""

    def __init__(self, named: Sequence[Asked], tensors: Sequence[Any]) -> None:
        self.named = named
        self.tensors = tensors
        self.known: list[Any] = []

    def all(self) -> None:
        """Work out every number that a name stands for, also those that no operation uses."""
        if self.named:
            self._named(len(self.named) - 1)

    def _named(self, number: int) -> Any:
        # Each once, and in order: names made of names would otherwise double the work, or nest deeper, with every line.
        for earlier in range(len(self.known), number + 1):
            self.known.append(self.value(self.named[earlier]))
        return self.known[number]

    def value(self, part: Any) -> Any:
        """The number or tuple of sizes that ``part`` stands for; anything else is given back.

        Raises `ExpressionError` with the words of torch or Python where there is none.
        """
        if isinstance(part, slice):
            whole = cast("slice[Any, Any, Any]", part)
            return slice(self.value(whole.start), self.value(whole.stop), self.value(whole.step))
        if not isinstance(part, Asked):
            return part
        if part.what == "name":
            return self._named(part.step)
        found: Any = self._asked(part) if part.step >= 0 else _worked_out(part.what, self.parts(part.parts), part.text)
        if part.whole and isinstance(found, float):
            raise ExpressionError(f"`{part.text[:60]}` is {found:g} here, which is no whole number.")
        return found

    def parts(self, parts: Sequence[Any]) -> list[Any]:
        """All of ``parts``, those with a star opened."""
        found: list[Any] = []
        for part in parts:
            if isinstance(part, Asked) and part.what == "star":
                found += self.value(part.parts[0])
            else:
                found.append(self.value(part))
        return found

    def _asked(self, part: Asked) -> Any:
        tensor = self.tensors[part.step]
        try:
            if part.what == "len":
                found: Any = len(tensor)
            else:
                found = getattr(tensor, part.what)
                found = found(*self.parts(part.parts)) if callable(found) else found
        except (IndexError, TypeError, RuntimeError) as problem:
            raise ExpressionError(f"`{part.text[:60]}`: {str(problem).splitlines()[0][:200]}.") from None
        return bounded(found, part.text)
