"""Works expressions out, node by node: plain values at once, operations on tensors as steps that run on the way.

Every syntax node must be one of a few kinds, every name one of `core.tensors.operations.lookup` or one that an
earlier line assigned. Python evaluates nothing of the text.
"""

from __future__ import annotations

import ast
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import Any, cast

from core.limits import limit
from core.tensors.operations.lookup import OPERATIONS
from core.tensors.operations.table import ELEMENTWISE
from core.tensors.operations.values import Device, DType, ExpressionError, Slot, Value
from core.tensors.parsing.access import AccessReader
from core.tensors.parsing.facts import MOST_SHOWN, written_value
from core.tensors.parsing.numbers import MOST_ITEMS, SYMBOLS, bounded, operator_of, worked_out
from core.tensors.parsing.objects import Class, Frame, Function, Named, Ref
from core.tensors.parsing.text import EXAMPLE

_SPEC = re.compile(r"[<>^=+, ]?\d{0,2},?(\.\d{1,2})?[a-zA-Z%]?")


class ExpressionReader(AccessReader):
    """Values of expressions."""

    def worked_out(self, node: ast.expr) -> Any:
        found = self._VALUES.get(type(node))
        if found is None:
            raise ExpressionError(f"{self.quote(node)} (this syntax) is not understood here. For example: {EXAMPLE}.")
        return found(self, node)

    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bytes | complex):
            raise ExpressionError(f"{self.quote(node)} is not understood here. For example: {EXAMPLE}.")
        return bounded(node.value, self.segment(node)) if node.value is not ... else ...

    def _listed(self, node: ast.Tuple | ast.List) -> Any:
        with self.holding() as held:
            mark = len(held)
            for item in node.elts:
                if isinstance(item, ast.Starred):
                    held += self.items(self.value(item.value), item.value)
                else:
                    held.append(self.value(item))
            values = held[mark:]
        if len(values) > MOST_ITEMS:
            raise ExpressionError(f"{self.quote(node)}: more than {MOST_ITEMS} items.")
        return tuple(values) if isinstance(node, ast.Tuple) else values

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise ExpressionError(f"{self.quote(node)}: name each key.")
            result[self.key(self.value(key), key)] = self.value(value)
        return result

    def _called(self, node: ast.Call) -> Any:
        return self.call(node)[0]

    def _binary(self, node: ast.BinOp) -> Any:
        symbol = SYMBOLS[type(node.op)]
        with self.holding() as held:
            held.append(self.value(node.left))
            held.append(self.value(node.right))
            left, right = held[-2:]
        return self.put_together(node, node.left, left, symbol, node.right, right)

    def put_together(self, node: ast.expr, one: ast.expr, left: Any, symbol: str, other: ast.expr, right: Any) -> Any:
        """What an operator makes of two values, at least one of them a tensor, or of two plain ones."""
        if not isinstance(left, Ref) and not isinstance(right, Ref):
            if not isinstance(left, int | float | str | tuple | list) or not isinstance(
                right, int | float | str | tuple | list
            ):
                raise ExpressionError(f"{self.quote(node)} is not worked out here.")
            with self.raising(node):
                return worked_out(symbol, left, right, self.segment(node))
        inputs: list[int] = []
        args: list[Value] = []
        for side, value in ((one, left), (other, right)):
            if isinstance(value, Ref):
                inputs.append(self.one(value, side).number)
                args.append(Slot(len(inputs) - 1))
            elif isinstance(value, int | float):
                args.append(value)
            else:
                raise ExpressionError(f"{self.quote(side)} stands for no tensor here. For example: {EXAMPLE}.")
        operation = OPERATIONS["method", "matmul"] if symbol == "@" else ELEMENTWISE
        if symbol == "@" and len(inputs) < 2:
            raise ExpressionError("@ multiplies two tensors, for example x @ x.t().")
        text = self.segment(node)
        source = text
        if self.typed:
            start, end = self.span(node)
            at = self.text.find(symbol, self.span(one)[1], end)
            if at >= 0:
                source = self.cut(start, at + len(symbol)) if not isinstance(left, Ref) else self.cut(at, end)
        return self.step(operation, "binary", inputs, node, source, text, args=tuple(args), symbol=symbol)

    def _unary(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return not self.truth(node.operand)
        value = self.value(node.operand)
        if isinstance(value, int | float) and not isinstance(node.op, ast.Invert):
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(value, int):
            return ~int(value)
        symbol = SYMBOLS.get(type(node.op))
        if symbol is None:
            return self.one(value, node.operand)
        return self.step(ELEMENTWISE, "unary", (self.one(value, node.operand).number,), node, symbol=symbol)

    def _compare(self, node: ast.Compare) -> Any:
        left, one = self.value(node.left), node.left
        for symbol, other in zip(node.ops, node.comparators, strict=True):
            with self.holding() as held:
                held.append(left)
                right = self.value(other)
            result = self._compared(node, one, left, symbol, other, right)
            if other is node.comparators[-1]:
                return result
            if isinstance(result, Ref):
                result = self.machine.tensor(result.number)
            with self.raising(node):
                if not bool(result):
                    return False
            left, one = right, other
        return True

    def _compared(
        self, node: ast.Compare, one: ast.expr, left: Any, symbol: ast.cmpop, other: ast.expr, right: Any
    ) -> Any:
        match symbol:
            case ast.Is() | ast.IsNot():
                return self._same(left, right) == isinstance(symbol, ast.Is)
            case ast.In() | ast.NotIn():
                if isinstance(right, dict):
                    return (self.key(left, one) in cast("dict[Any, Any]", right)) == isinstance(symbol, ast.In)
                if not isinstance(right, str | tuple | list | range) or (
                    isinstance(right, str) and not isinstance(left, str)
                ):
                    raise ExpressionError(f"{self.quote(node)}: `in` looks into a text or a tuple.")
                with self.raising(node):
                    return (self._seen(left) in self._seen(right)) == isinstance(symbol, ast.In)
            case _ if isinstance(left, int | float | Ref) and isinstance(right, int | float | Ref):
                if isinstance(left, Ref) or isinstance(right, Ref):
                    return self.put_together(node, one, left, SYMBOLS[type(symbol)], other, right)
                return operator_of(SYMBOLS[type(symbol)])(left, right)
            case _:
                with self.raising(node):
                    return bool(operator_of(SYMBOLS[type(symbol)])(_plain(self._seen(left)), _plain(self._seen(right))))

    def _same(self, left: Any, right: Any) -> bool:
        if isinstance(left, Ref) and isinstance(right, Ref):
            return self.machine.tensor(left.number) is self.machine.tensor(right.number)
        return left is right or (isinstance(left, Named | DType | Class) and left == right)

    def _bool(self, node: ast.BoolOp) -> Any:
        for part in node.values[:-1]:
            if self.truth(part) == isinstance(node.op, ast.Or):
                return self.value(part)
        return self.value(node.values[-1])

    def _either(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.truth(node.test) else node.orelse)

    def _joined(self, node: ast.JoinedStr) -> str:
        return "".join(self._part(part) for part in node.values)[:MOST_SHOWN]

    def _part(self, node: ast.expr) -> str:
        """A piece of an f-string."""
        if isinstance(node, ast.Constant):
            return str(node.value)
        if not isinstance(node, ast.FormattedValue):
            raise ExpressionError(f"{self.quote(node)} is not understood in an f-string.")
        value = self._seen(self.value(node.value))
        how = self._joined(node.format_spec) if isinstance(node.format_spec, ast.JoinedStr) else ""
        if how and not _SPEC.fullmatch(how):
            raise ExpressionError(f"`:{how[:20]}` is no format that is understood; :.2f and :, are.")
        if how and hasattr(value, "item") and value.numel() == 1 and not value.is_meta:
            value = value.item()
        if not how or not isinstance(value, int | float | str):
            return (
                repr(value)[:MOST_SHOWN] if isinstance(value, str) and node.conversion == 114 else written_value(value)
            )
        try:
            return format(value, how)[:MOST_SHOWN]
        except ValueError as problem:
            raise ExpressionError(f"`:{how}`: {problem}.") from None

    def _comprehended(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> Any:
        made: list[Any] = []
        with self.inside(Frame({}, self.frame, self.frame.sizes)), self.holding() as held:
            held.append(made)
            for _ in self._rounds(node.generators):
                if isinstance(node, ast.DictComp):
                    made.append((self.key(self.value(node.key), node.key), self.value(node.value)))
                else:
                    made.append(self.value(node.elt))
                if len(made) > limit("expression_steps"):
                    raise ExpressionError(f"{self.quote(node)}: at most {limit('expression_steps')} items.")
        return dict(made) if isinstance(node, ast.DictComp) else made

    def _rounds(self, generators: Sequence[ast.comprehension]) -> Iterator[None]:
        """Once for every item that a comprehension makes, with its names bound."""
        part, rest = generators[0], generators[1:]
        for item in self.rounds(part.iter):
            self.bind(part.target, item, part.target)
            if all(self.truth(test) for test in part.ifs):
                yield from self._rounds(rest) if rest else (None,)

    def rounds(self, node: ast.expr) -> Iterator[Any]:
        """What a loop goes over; see `each`."""
        value = self.value(node)
        self.held.append(value)
        if isinstance(value, Sized) and len(value) > limit("expression_steps"):
            raise ExpressionError(f"{self.quote(node)}: at most {limit('expression_steps')} rounds are run.")
        return self.each(value, node)

    @abstractmethod
    def bind(self, target: ast.expr, value: Any, node: ast.expr | ast.stmt) -> None:
        """Let names, or parts of something, be ``value``."""

    def function(self, node: ast.FunctionDef | ast.Lambda, cls: Class | None = None) -> Function:
        """A function with the defaults that its parameters have now."""
        args = node.args
        pairs = list(zip([*args.posonlyargs, *args.args][::-1], args.defaults[::-1], strict=False))[::-1]
        pairs += [(arg, value) for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True) if value]
        return Function(node, self.frame, {arg.arg: self.value(value) for arg, value in pairs}, self.typed, cls)

    _VALUES: Mapping[type[ast.expr], Callable[[Any, Any], Any]] = {
        ast.Constant: _constant,
        ast.Name: AccessReader._name,
        ast.Tuple: _listed,
        ast.List: _listed,
        ast.Dict: _dict,
        ast.Subscript: AccessReader._subscript,
        ast.Slice: AccessReader._slice,
        ast.Attribute: AccessReader._attribute,
        ast.Call: _called,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.Compare: _compare,
        ast.BoolOp: _bool,
        ast.IfExp: _either,
        ast.JoinedStr: _joined,
        ast.ListComp: _comprehended,
        ast.GeneratorExp: _comprehended,
        ast.DictComp: _comprehended,
        ast.Lambda: function,
    }


def _plain(value: Any) -> Any:
    """``value`` as it compares: a device without its number stands for the first; a type by its name."""
    if isinstance(value, Device):
        return "cuda:0" if value.name == "cuda" else value.name
    if isinstance(value, Named):
        return value.path
    return tuple(map(_plain, cast("Sequence[Any]", value))) if isinstance(value, tuple | range) else value
