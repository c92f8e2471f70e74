"""Reads the expressions of one line: chains of operations on tensors, operators, indices and arguments.

Every syntax node must be one of a few kinds, every name one of `core.tensors.operations.lookup` or one that an
earlier line assigned, every argument a literal or a tensor. Nothing is evaluated.
"""

from __future__ import annotations

import ast
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from core.limits import limit
from core.tensors.operations.lookup import ANSWERS, OPERATIONS, find, no_layer
from core.tensors.operations.operation import Operation
from core.tensors.operations.table import ELEMENTWISE, INDEXING, PICKING, PIECE
from core.tensors.operations.values import MODULES, CountQuestion, ExpressionError, Index, IndexItem, Slot, Value
from core.tensors.parsing.arguments import nested
from core.tensors.parsing.call_arguments import ArgumentReader, opens
from core.tensors.parsing.counts import SYMBOLS
from core.tensors.parsing.plan import Form, PlanStep
from core.tensors.parsing.text import EXAMPLE

_SYNTAX_NAMES: dict[type[ast.AST], str] = {
    ast.Lambda: "lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.IfExp: "if … else",
    ast.BoolOp: "and / or",
    ast.NamedExpr: ":=",
    ast.JoinedStr: "an f-string",
    ast.Starred: "a starred argument",
    ast.Tuple: "a tuple",
    ast.List: "a list",
    ast.Constant: "a value without x",
    ast.Slice: "a slice outside brackets",
    ast.Await: "await",
}

BINARY: dict[type[ast.operator], str] = {
    **SYMBOLS,
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.Invert: "~"}


class ExpressionReader(ArgumentReader):
    """Walks the syntax tree and appends a `PlanStep` per operation. Step 0, ``x``, is implied."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    # ----------------------------------------------------------------------------------------------- text

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        last, column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[last - 1] + column

    def segment(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.cut(start, end) if end > start else ast.unparse(node)  # nobody typed it

    def cut(self, start: int, end: int) -> str:
        """The text from ``start`` to ``end`` on one line, without the space that broken lines leave at brackets."""
        joined = re.sub(r"(?<=[(\[])\s*\n\s*|\s*\n\s*(?=[)\].])", "", self.text[start:end])
        return re.sub(r"\s*\n\s*", " ", joined)

    def quote(self, node: ast.expr | ast.stmt) -> str:
        return f"`{self.segment(node)[:60]}`"

    # -------------------------------------------------------------------------------------------- tensors

    def named(self, node: ast.Name) -> int:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.kinds:
            raise ExpressionError(f"`{node.id[:40]}` stands for a number here, not a tensor. For example: {EXAMPLE}.")
        if node.id in self.lists:
            raise ExpressionError(
                f"`{node.id[:40]}` stands for several tensors; pick one, {node.id[:40]}[0], or join them, "
                f"torch.cat({node.id[:40]})."
            )
        if node.id in self.literals:
            raise ExpressionError(f"`{node.id[:40]}` stands for no tensor here. For example: {EXAMPLE}.")
        known = ", ".join(self.names)
        raise ExpressionError(
            f"`{node.id[:40]}` is not known; {known} {'is' if len(self.names) == 1 else 'are'}. For example: {EXAMPLE}."
        )

    def tensor(self, node: ast.expr) -> int:
        """Read a node that must give one tensor; returns the number of its step."""
        number = self.result(node)
        if number in self.bundles:
            raise ExpressionError(
                f"{self.quote(node)} gives several tensors; pick one, for example {self.quote(node)[1:-1]}[0]."
            )
        return number

    def result(self, node: ast.expr) -> int:
        """Read a node that must give a tensor or several; returns the number of its step."""
        if isinstance(node, ast.Name):
            return self.named(node)
        if self.kind(node) is not None:
            raise ExpressionError(self._no_tensor(node))
        if isinstance(node, ast.Call):
            return self._opened(node) if opens(node) else self._call(node, None)
        if isinstance(node, ast.Attribute):
            return self._property(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.BinOp):
            symbol = BINARY.get(type(node.op))
            if symbol is None:
                raise ExpressionError(f"{self.quote(node)}: of the operators, {_operators()} are understood.")
            return self._binary(node, node.left, symbol, node.right)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
            return self._binary(node, node.left, _COMPARE[type(node.ops[0])], node.comparators[0])
        if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            source = self.tensor(node.operand)
            text = self.segment(node)
            symbol = _UNARY[type(node.op)]
            return self.add(PlanStep(ELEMENTWISE, "unary", (source,), text, text, node.lineno, symbol=symbol))
        name = _SYNTAX_NAMES.get(type(node), "this syntax")
        raise ExpressionError(f"{self.quote(node)} ({name}) is not understood here. For example: {EXAMPLE}.")

    def _opened(self, node: ast.Call) -> int:
        """``list(x)``: several tensors as they are, or the rows of a single one."""
        inner = self.result(node.args[0])
        return inner if inner in self.bundles else self.rows(inner, node)

    def rows(self, number: int, node: ast.expr | ast.stmt) -> int:
        """The rows of a tensor, which is what Python's own unpacking takes of it."""
        text = self.segment(node)
        result = self.add(PlanStep(OPERATIONS["method", "unbind"], "method", (number,), text, text, node.lineno))
        self.bundles.add(result)
        return result

    def _no_tensor(self, node: ast.expr) -> str:
        """What to say of a number that stands where a tensor must."""
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) | ast.Attribute(attr=name) if (
                name in ANSWERS
            ):
                return f"{self.quote(node)} is a number or sizes, where a tensor is asked for."
            case ast.BinOp() | ast.Call() | ast.Attribute():
                return f"{self.quote(node)} is a number and has no x in it. For example: {EXAMPLE}."
            case _:
                name = _SYNTAX_NAMES.get(type(node), "a number")
                return f"{self.quote(node)} ({name}) is not understood here. For example: {EXAMPLE}."

    def _property(self, node: ast.Attribute) -> int:
        if isinstance(node.value, ast.Name) and node.value.id in MODULES:
            raise ExpressionError(f"{self.quote(node)} is not a tensor. For example: {EXAMPLE}.")
        field = self._field(node)
        if field is not None:
            return field
        if node.attr == "grad":
            return self.gradient(node)
        if ("method", node.attr) in OPERATIONS:
            raise ExpressionError(
                f"`.{node.attr}` needs brackets, for example {OPERATIONS['method', node.attr].example}."
            )
        operation = find("property", node.attr)
        source = self.tensor(node.value)
        text = self.segment(node)
        return self.add(PlanStep(operation, "property", (source,), f".{node.attr}", text, node.lineno))

    @abstractmethod
    def gradient(self, node: ast.Attribute) -> int:
        """The step that made ``w.grad``."""

    def _called(self, node: ast.Call) -> tuple[Form, str, ast.expr | None]:
        """How a call is written, the name of the operation, and the tensor it is a method of."""
        match node.func:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="einops"), attr=name):
                return "bare", name, None
            case ast.Attribute(value=ast.Name(id="torch"), attr=name):
                return "torch", name, None
            case ast.Attribute(value=ast.Name(id="F"), attr=name):
                return "F", name, None
            case ast.Attribute(value=ast.Name(id="nn"), attr="Parameter"):
                return "nn", "Parameter", None
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="nn"), attr="init"), attr=name):
                return "init", name, None
            case (
                ast.Attribute(value=ast.Name(id="nn"), attr=name)
                | ast.Call(func=ast.Attribute(value=ast.Name(id="nn"), attr=name))
            ):
                raise ExpressionError(no_layer(name))
            case ast.Attribute(value=receiver, attr=name):
                return "method", name, receiver
            case _:
                raise ExpressionError(f"{self.quote(node.func)} cannot be called. For example: {EXAMPLE}.")

    def _field(self, node: ast.Attribute) -> int | None:
        """One of several results by its name, ``x.topk(2).indices``; ``None`` for anything else."""
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name | ast.Attribute):
            form, name, _ = self._called(node.value)
            operation = OPERATIONS.get((form, name))  # type: ignore[arg-type]
            if operation is not None and node.attr in operation.fields and self._several(operation, form, node.value):
                return self._call(node.value, node)
        if isinstance(node.value, ast.Name) and self.names.get(node.value.id) in self.bundles:
            number = self.names[node.value.id]
            fields = self._made(number).operation.fields
            if node.attr in fields:
                return self._taken(number, fields.index(node.attr), self.segment(node), node)
        return None

    def _taken(self, number: int, pick: int, text: str, node: ast.expr) -> int:
        return self.add(PlanStep(PIECE, "piece", (number,), text, text, node.lineno, pick=pick))

    def _made(self, number: int) -> PlanStep:
        """The step that made a tensor, which names hand on."""
        step = self.steps[number - 1]
        while step.form == "name" and step.inputs[0]:
            step = self.steps[step.inputs[0] - 1]
        return step

    def _several(self, operation: Operation, form: Form, node: ast.Call) -> bool:
        """Whether a call gives several tensors, by the arguments it has."""
        rest = node.args if form == "method" else node.args[1:]
        return operation.gives_several(rest, node.keywords, lambda item: self.kind(item) == "number")

    def _restride(self, number: int) -> None:
        """Let every name of the tensor that step ``number`` gave another layout stand for that step."""

        def first(step: int) -> int:
            while step and (self.steps[step - 1].form == "name" or self.steps[step - 1].operation.restrides):
                step = self.steps[step - 1].inputs[0]
            return step

        parts = [name for name, step in self.names.items() if first(step) == first(number)]
        self.names |= dict.fromkeys(parts, number)
        self.steps[number - 1] = replace(self.steps[number - 1], name=next(iter(parts), ""))

    def _call(self, node: ast.Call, outer: ast.Subscript | ast.Attribute | None) -> int:
        """A method or function. ``outer`` is the subscript or field that picks one of several results."""
        form, name, receiver = self._called(node)
        operation = find(form, name)  # type: ignore[arg-type]
        self.device = {"cuda": "cuda:0", "cpu": "cpu"}.get(name, "") if form == "method" else ""
        inputs: list[int] = []
        rest: Sequence[ast.expr] = node.args
        args: list[Value] = []
        named = node.keywords
        if receiver is not None:
            inputs.append(self.tensor(receiver))
        elif operation.subject:
            if not rest and named and named[0].arg == "input" and form != "bare":
                rest, named = [named[0].value], named[1:]
            if not rest:
                raise ExpressionError(f"`{name}` needs a tensor first, for example {operation.example}.")
            several = self.listed(rest[0]) if form == "bare" else None
            if several is None:
                inputs.append(self.tensor(rest[0]))
            elif several:
                args.append(self.slots(several, inputs))
                operation = replace(operation, subject=False)
            else:
                raise ExpressionError(f"`{name}` needs a tensor first, for example {operation.example}.")
            rest = rest[1:]
        own, self.device = self.device, ""
        args += self.arguments(operation, rest, inputs)
        keywords = tuple(self.keywords(operation, named, inputs))
        device, self.device = self.device or own, ""
        if not inputs and {"tensor", "tensors"} & set(operation.takes) and "float" not in operation.takes:
            raise ExpressionError(f"{name} needs at least one tensor, for example {operation.example}.")
        name_at = self.span(node.func)[1] - len(name)
        start, end = self.span(outer or node)
        step = PlanStep(
            operation,
            form,
            tuple(inputs),
            self.cut(start, end) if receiver is None else f".{self.cut(name_at, end)}",
            self.segment(outer or node),
            node.lineno,
            args=tuple(args),
            keywords=keywords,
            pick=None if outer is None else self._picked(operation, outer),
            at=(name_at, end),
            device=device,
        )
        number = self.add(step)
        if operation.restrides:
            self._restride(number)
        if outer is None and self._several(operation, form, node):
            self.bundles.add(number)
        return number

    def _picked(self, operation: Operation, outer: ast.Subscript | ast.Attribute) -> int:
        return operation.fields.index(outer.attr) if isinstance(outer, ast.Attribute) else self._piece(outer)

    def gives_several(self, node: ast.expr) -> bool:
        """Whether a call, or what a slice of its result, gives several tensors."""
        match node:
            case ast.Subscript(value=owner, slice=ast.Slice()):
                return self.gives_several(owner)
            case ast.Name(id=name):
                return self.names.get(name) in self.bundles
            case ast.Call(func=ast.Name() | ast.Attribute()):
                form, name, _ = self._called(node)
                operation = OPERATIONS.get((form, name))  # type: ignore[arg-type]
                return operation is not None and self._several(operation, form, node)
            case _:
                return False

    def _subscript(self, node: ast.Subscript) -> int:
        base = node.value
        if isinstance(base, ast.Name) and base.id in self.lists:
            return self._item(self.lists[base.id], node)
        if isinstance(node.slice, ast.Slice) and self.gives_several(base):
            return self.some(node, self.result(base), self._slice(node.slice))
        if isinstance(base, ast.Call) and self.gives_several(base):
            return self._call(base, node)
        if isinstance(base, ast.Name) and self.names.get(base.id) in self.bundles:
            text = self.segment(node)
            step = PlanStep(PIECE, "piece", (self.names[base.id],), text, text, node.lineno, pick=self._piece(node))
            return self.add(step)
        inputs = [self.tensor(base)]
        index = self.index(node, inputs)
        picks = any(
            isinstance(item, Slot | tuple) or (isinstance(item, CountQuestion) and item.several) for item in index
        )
        step = PlanStep(
            PICKING if picks else INDEXING,
            "index",
            tuple(inputs),
            self.brackets(node),
            self.segment(node),
            node.lineno,
            index=index,
        )
        return self.add(step)

    def some(self, node: ast.expr, number: int, part: slice, name: str = "") -> int:
        """Some of several tensors, which stay several: ``x.chunk(4)[1:]``."""
        text = name or self.segment(node)
        added = self.add(PlanStep(PIECE, "piece", (number,), text, text, node.lineno, index=(part,), name=name))
        self.bundles.add(added)
        return added

    def _item(self, numbers: Sequence[int], node: ast.Subscript) -> int:
        """One of a list of tensors that a line made: the very step, so that nothing is added."""
        pick = self._piece(node)
        if not -len(numbers) <= pick < len(numbers):
            raise ExpressionError(f"{self.quote(node)}: the list has {len(numbers)} tensors.")
        return numbers[pick]

    def _piece(self, node: ast.Subscript) -> int:
        pick = self.count(node.slice)
        if not isinstance(pick, int):
            raise ExpressionError(f"Pick one of the tensors with a whole number, not `[{self.segment(node.slice)}]`.")
        return pick

    def brackets(self, node: ast.Subscript) -> str:
        start, end = self.span(node.value)[1], self.span(node)[1]
        opening = self.text.find("[", start, end)
        return self.cut(opening, end) if opening >= 0 else f"[{ast.unparse(node.slice)}]"  # nobody typed it

    def index(self, node: ast.Subscript, inputs: list[int]) -> Index:
        """Read what stands in square brackets; tensors in it are added to ``inputs``."""
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = tuple(self._index_item(item, inputs) for item in items)
        if sum(item is None for item in index) > limit("tensor_rank"):
            raise ExpressionError(f"Too many new dimensions; at most {limit('tensor_rank')} are drawn.")
        return index

    def _index_item(self, node: ast.expr, inputs: list[int]) -> IndexItem:
        if isinstance(node, ast.Slice):
            return self._slice(node)
        if isinstance(node, ast.List):
            values = self.count(node) if self.kind(node) else nested(node, self.count)
            if isinstance(values, tuple) or (isinstance(values, CountQuestion) and values.whole):
                return values  # type: ignore[return-value]
        if isinstance(node, ast.Name) and self.literals.get(node.id) == ("none", None):
            return None
        if isinstance(node, ast.Constant):
            return ... if node.value is Ellipsis else self._bound(node)
        if isinstance(node, ast.List | ast.Tuple) or self.kind(node) is not None:
            return self._bound(node)
        inputs.append(self.tensor(node))
        return Slot(len(inputs) - 1)

    def _slice(self, node: ast.Slice) -> slice:
        return slice(*(None if part is None else self._bound(part) for part in (node.lower, node.upper, node.step)))

    def _bound(self, node: ast.expr) -> int | CountQuestion | None:
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        count = self.count(node) if self.kind(node) == "number" else None
        if not isinstance(count, int) and not (isinstance(count, CountQuestion) and count.whole):
            raise ExpressionError(
                f"`[{self.segment(node)[:60]}]`: an index is a whole number, a slice, None, `...`, a list of whole "
                "numbers, or a tensor."
            )
        return count

    def _binary(self, node: ast.expr, left: ast.expr, symbol: str, right: ast.expr) -> int:
        numbers = [self.kind(side) == "number" for side in (left, right)]
        if all(numbers):
            raise ExpressionError(f"{self.quote(node)} has no x in it. For example: {EXAMPLE}.")
        inputs: list[int] = []
        args: list[Value] = []
        for side, is_number in zip((left, right), numbers, strict=True):
            if not is_number:
                inputs.append(self.tensor(side))
            args.append(self.count(side) if is_number else Slot(len(inputs) - 1))
        operation = ELEMENTWISE
        if symbol == "@":
            if len(inputs) < 2:
                raise ExpressionError("@ multiplies two tensors, for example x @ x.t().")
            operation = OPERATIONS["method", "matmul"]
        start, end = self.span(node)
        at = self.text.find(symbol, self.span(left)[1], end)
        added = self.segment(node) if at < 0 else self.cut(start, at + len(symbol)) if numbers[0] else self.cut(at, end)
        step = PlanStep(
            operation,
            "binary",
            tuple(inputs),
            added,
            self.segment(node),
            node.lineno,
            args=tuple(args),
            symbol=symbol,
        )
        return self.add(step)


def _operators() -> str:
    return f"{' '.join(BINARY.values())} and comparisons"
