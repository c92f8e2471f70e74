"""Reads the expressions of one line: chains of operations on tensors, operators, indices and arguments.

Every syntax node must be one of a few kinds, every name one of `core.tensors.reading.operations` or one that an
earlier line assigned, every argument a literal or a tensor. Nothing is evaluated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from core.limits import limit
from core.tensors.reading.arguments import literal, nested
from core.tensors.reading.counts import SYMBOLS, CountReader
from core.tensors.reading.operations import ANSWERS, OPERATIONS, find
from core.tensors.reading.plan import Form, PlanStep
from core.tensors.reading.table import ELEMENTWISE, INDEXING, PICKING, PIECE, Operation, Takes
from core.tensors.reading.text import EXAMPLE
from core.tensors.reading.values import MODULES, Asked, ExpressionError, Index, IndexItem, Slot, Value

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


class ExpressionReader(CountReader):
    """Walks the syntax tree and appends a `PlanStep` per operation. Step 0, ``x``, is implied."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.steps: list[PlanStep] = []
        self.names: dict[str, int] = {"x": 0}
        self.bundles: set[int] = set()
        """Steps whose result is several tensors of which none is picked yet."""
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    # ----------------------------------------------------------------------------------------------- text

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        last, column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[last - 1] + column

    def segment(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.cut(start, end)

    def cut(self, start: int, end: int) -> str:
        """The text from ``start`` to ``end`` on one line, without the space that broken lines leave at brackets."""
        joined = re.sub(r"(?<=[(\[])\s*\n\s*|\s*\n\s*(?=[)\].])", "", self.text[start:end])
        return re.sub(r"\s*\n\s*", " ", joined)

    def quote(self, node: ast.expr | ast.stmt) -> str:
        return f"`{self.segment(node)[:60]}`"

    def add(self, step: PlanStep) -> int:
        if len(self.steps) >= limit("expression_steps"):
            raise ExpressionError(f"More than {limit('expression_steps')} operations; each one is shown.")
        self.steps.append(step)
        return len(self.steps)

    # -------------------------------------------------------------------------------------------- tensors

    def named(self, node: ast.Name) -> int:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.kinds:
            raise ExpressionError(f"`{node.id[:40]}` stands for a number here, not a tensor. For example: {EXAMPLE}.")
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
            return self._call(node, None)
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
            shown = self.segment(node)
            symbol = _UNARY[type(node.op)]
            return self.add(PlanStep(ELEMENTWISE, "unary", (source,), shown, shown, node.lineno, symbol=symbol))
        name = _SYNTAX_NAMES.get(type(node), "this syntax")
        raise ExpressionError(f"{self.quote(node)} ({name}) is not understood here. For example: {EXAMPLE}.")

    def _no_tensor(self, node: ast.expr) -> str:
        """What to say of a number that stands where a tensor must."""
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) | ast.Attribute(attr=name):
                return f"{self.quote(node)} is a number, not a tensor: {ANSWERS[name]}."
            case ast.BinOp():
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
        if ("method", node.attr) in OPERATIONS:
            raise ExpressionError(
                f"`.{node.attr}` needs brackets, for example {OPERATIONS['method', node.attr].example}."
            )
        operation = find("property", node.attr)
        source = self.tensor(node.value)
        shown = self.segment(node)
        return self.add(PlanStep(operation, "property", (source,), f".{node.attr}", shown, node.lineno))

    def _called(self, node: ast.Call) -> tuple[Form, str, ast.expr | None]:
        """How a call is written, the name of the operation, and the tensor it is a method of."""
        match node.func:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="einops"), attr=name):
                return "bare", name, None
            case ast.Attribute(value=ast.Name(id="torch"), attr=name):
                return "torch", name, None
            case ast.Attribute(value=ast.Name(id="F"), attr=name):
                return "F", name, None
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

    def _taken(self, number: int, pick: int, shown: str, node: ast.expr) -> int:
        return self.add(PlanStep(PIECE, "piece", (number,), shown, shown, node.lineno, pick=pick))

    def _made(self, number: int) -> PlanStep:
        """The step that made a tensor, which names hand on."""
        step = self.steps[number - 1]
        while step.form == "name" and step.inputs[0]:
            step = self.steps[step.inputs[0] - 1]
        return step

    def _several(self, operation: Operation, form: Form, node: ast.Call) -> bool:
        """Whether a call gives several tensors, by the arguments it has."""
        if not operation.several_with:
            return operation.several
        rest = node.args if form == "method" else node.args[1:]
        given = (keyword.value for keyword in node.keywords if keyword.arg == operation.several_with)
        said = any(
            not isinstance(value, ast.Constant) or (value.value is not False and value.value is not None)
            for value in given
        )
        return said or (bool(rest) and self.kind(rest[0]) == "number")

    def _restride(self, number: int) -> None:
        """Let every name of the tensor that step ``number`` gave another layout stand for that step."""

        def first(step: int) -> int:
            while step and (self.steps[step - 1].form == "name" or self.steps[step - 1].operation.restrides):
                step = self.steps[step - 1].inputs[0]
            return step

        mine = [name for name, step in self.names.items() if first(step) == first(number)]
        self.names |= dict.fromkeys(mine, number)
        self.steps[number - 1] = replace(self.steps[number - 1], name=next(iter(mine), ""))

    def _call(self, node: ast.Call, outer: ast.Subscript | ast.Attribute | None) -> int:
        """A method or function. ``outer`` is the subscript or field that picks one of several results."""
        form, name, receiver = self._called(node)
        operation = find(form, name)  # type: ignore[arg-type]
        inputs: list[int] = []
        rest: Sequence[ast.expr] = node.args
        if receiver is not None:
            inputs.append(self.tensor(receiver))
        elif operation.subject:
            if not rest:
                raise ExpressionError(f"`{name}` needs a tensor first, for example {operation.example}.")
            inputs.append(self.tensor(rest[0]))
            rest = rest[1:]
        args = tuple(self._positional(operation, argument, inputs) for argument in rest)
        keywords = tuple(self._keyword(operation, keyword, inputs) for keyword in node.keywords)
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
            args=args,
            keywords=keywords,
            pick=None if outer is None else self._picked(operation, outer),
            at=(name_at, end),
        )
        number = self.add(step)
        if operation.restrides:
            self._restride(number)
        if outer is None and self._several(operation, form, node):
            self.bundles.add(number)
        return number

    def _picked(self, operation: Operation, outer: ast.Subscript | ast.Attribute) -> int:
        return operation.fields.index(outer.attr) if isinstance(outer, ast.Attribute) else self._piece(outer)

    def _subscript(self, node: ast.Subscript) -> int:
        base = node.value
        if isinstance(base, ast.Call):
            form, name, _ = self._called(base)
            operation = OPERATIONS.get((form, name))  # type: ignore[arg-type]
            if operation is not None and self._several(operation, form, base):
                return self._call(base, node)
        if isinstance(base, ast.Name) and self.names.get(base.id) in self.bundles:
            shown = self.segment(node)
            step = PlanStep(PIECE, "piece", (self.names[base.id],), shown, shown, node.lineno, pick=self._piece(node))
            return self.add(step)
        inputs = [self.tensor(base)]
        index = self.index(node, inputs)
        picks = any(isinstance(item, Slot | tuple) or (isinstance(item, Asked) and item.several) for item in index)
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

    def _piece(self, node: ast.Subscript) -> int:
        pick = self.count(node.slice)
        if not isinstance(pick, int):
            raise ExpressionError(f"Pick one of the tensors with a whole number, not `[{self.segment(node.slice)}]`.")
        return pick

    def brackets(self, node: ast.Subscript) -> str:
        opening = self.text.index("[", self.span(node.value)[1])
        return self.cut(opening, self.span(node)[1])

    def index(self, node: ast.Subscript, inputs: list[int]) -> Index:
        """Read what stands in square brackets; tensors in it are added to ``inputs``."""
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = tuple(self._index_item(item, inputs) for item in items)
        if sum(item is None for item in index) > limit("tensor_rank"):
            raise ExpressionError(f"Too many new dimensions; at most {limit('tensor_rank')} are drawn.")
        return index

    def _index_item(self, node: ast.expr, inputs: list[int]) -> IndexItem:
        if isinstance(node, ast.Slice):
            parts = [None if p is None else self._bound(p) for p in (node.lower, node.upper, node.step)]
            return slice(*parts)
        if isinstance(node, ast.List):
            values = self.count(node) if self.kind(node) else nested(node, self.count)
            if isinstance(values, tuple) or (isinstance(values, Asked) and values.whole):
                return values  # type: ignore[return-value]
        if isinstance(node, ast.Constant):
            return ... if node.value is Ellipsis else self._bound(node)
        if isinstance(node, ast.List | ast.Tuple) or self.kind(node) is not None:
            return self._bound(node)
        inputs.append(self.tensor(node))
        return Slot(len(inputs) - 1)

    def _bound(self, node: ast.expr) -> int | Asked | None:
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        found = self.count(node) if self.kind(node) == "number" else None
        if not isinstance(found, int) and not (isinstance(found, Asked) and found.whole):
            raise ExpressionError(
                f"`[{self.segment(node)[:60]}]`: an index is a whole number, a slice, None, `...`, a list of whole "
                "numbers, or a tensor."
            )
        return found

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
        at = self.text.index(symbol, self.span(left)[1])
        added = self.cut(start, at + len(symbol)) if numbers[0] else self.cut(at, end)
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

    # ------------------------------------------------------------------------------------------ arguments

    def _positional(self, operation: Operation, node: ast.expr, inputs: list[int]) -> Value:
        """An argument by its place, which may be sizes with a star, ``x.view(*x.shape[:2], -1)``."""
        if isinstance(node, ast.Starred) and self.kind(node.value) == "sizes" and "int" in operation.takes:
            return Asked("star", (self.count(node.value),), text=self.segment(node), several=True)
        return self._argument(operation, node, inputs)

    def _argument(self, operation: Operation, node: ast.expr, inputs: list[int]) -> Value:
        if "tensors" in operation.takes and isinstance(node, ast.List | ast.Tuple):
            first = len(inputs)
            inputs += [self.tensor(item) for item in node.elts]
            return tuple(Slot(slot) for slot in range(first, len(inputs)))
        found = literal(node, self.count)
        if found is None and "tensor" in operation.takes and not isinstance(node, ast.List | ast.Tuple):
            inputs.append(self.tensor(node))
            return Slot(len(inputs) - 1)
        if found is None:
            raise ExpressionError(self._no_argument(operation, node, known=False))
        kind, value = found
        allowed = {"int": ("int", "float"), "ints": ("ints", "data")}.get(kind, (kind,))
        if not set(allowed) & set(operation.takes):
            raise ExpressionError(self._no_argument(operation, node, known=True))
        return value

    def _no_argument(self, operation: Operation, node: ast.expr, known: bool) -> str:
        """What to say of an argument that ``operation`` does not take. known: it is a literal of a kind understood."""
        example = f"For example: {operation.example}."
        if any(isinstance(part, ast.Constant) and _DEVICE.fullmatch(str(part.value)) for part in ast.walk(node)):
            return f"{self.quote(node)}: {ANSWERS['device']}. {example}"
        if not known:
            return f"{self.quote(node)} is not a number, a tuple of numbers, a dtype or a pattern. {example}"
        takes = list(dict.fromkeys(_TAKES[kind] for kind in operation.takes)) or ["nothing"]
        words = " or ".join(part for part in (", ".join(takes[:-1]), takes[-1]) if part)
        return f"{self.quote(node)} is no argument of `{operation.name}`, which takes {words} here. {example}"

    def _keyword(self, operation: Operation, node: ast.keyword, inputs: list[int]) -> tuple[str, Value]:
        name = node.arg or "**"
        if name == "device":
            raise ExpressionError(f"`device=`: {ANSWERS[name]}. For example: {operation.example}.")
        if name not in operation.keywords and (operation.keywords != ("*",) or name.startswith("_") or not node.arg):
            raise ExpressionError(f"{operation.name} takes no `{name[:40]}=` here. For example: {operation.example}.")
        return name, self._argument(operation, node.value, inputs)


def _operators() -> str:
    return f"{' '.join(BINARY.values())} and comparisons"
