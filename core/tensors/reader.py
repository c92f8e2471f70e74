"""Reads an expression on ``x`` into a plan of single operations. Nothing is evaluated and torch is not needed.

The text is capped *before* Python's parser sees it (`core.tensors.text`); then every syntax node must be one of a few
kinds, every name one of `core.tensors.operations` or assigned by an earlier line, every argument a literal or tensor.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from core.limits import limit
from core.tensors.arguments import integer, literal, nested, number
from core.tensors.operations import OPERATIONS, REFUSED, find
from core.tensors.plan import Form, Plan, PlanStep
from core.tensors.table import ELEMENTWISE, INDEXING, NAMING, PICKING, PIECE, UPDATING, WRITING, Operation
from core.tensors.text import EXAMPLE, tidy
from core.tensors.values import ExpressionError, Index, IndexItem, Slot, Value


def read_expression(text: str) -> Plan:
    """Parse ``text``, up to twelve lines, into a `Plan`.

    Understands chains of operations on ``x``, operators, functions of torch and einops, names that a line assigns
    (``y = x.t()``, ``q, k, v = x.chunk(3)``), and writes (``x[0] = 1``, ``y += 1``). Raises `ExpressionError`, and
    nothing else, for anything it does not understand.
    """
    return _Reader(tidy(text)).read()


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

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
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
_UPDATES = ("+", "-", "*", "/", "//", "%", "**")

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_MODULES = ("torch", "einops", "F")


class _Reader:
    """Walks the syntax tree and appends a `PlanStep` per operation. Step 0, ``x``, is implied."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps: list[PlanStep] = []
        self.names: dict[str, int] = {"x": 0}
        self.bundles: set[int] = set()
        """Steps whose result is several tensors of which none is picked yet."""
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def read(self) -> Plan:
        for statement in self._statements():
            match statement:
                case ast.Expr(value=ast.Name() as name):
                    self._show(name)
                case ast.Expr(value=value):
                    self._result(value)
                case ast.Assign():
                    self._assign(statement)
                case ast.AugAssign():
                    self._update(statement)
                case _:
                    raise ExpressionError(
                        f"Expressions on x and assignments are understood, no other statement. For example: {EXAMPLE}."
                    )
        return Plan(self.text, tuple(self.steps), self.names)

    def _statements(self) -> list[ast.stmt]:
        try:
            module = ast.parse(self.text)  # parses only
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            reason = problem.msg if isinstance(problem, SyntaxError) else "nested too deeply"
            raise ExpressionError(f"This is not a complete expression: {reason}. For example: {EXAMPLE}.") from None
        _check_tree(module)
        return module.body

    # ----------------------------------------------------------------------------------------------- text

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        last, column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[last - 1] + column

    def _segment(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._span(node)
        return self._cut(start, end)

    def _cut(self, start: int, end: int) -> str:
        return re.sub(r"\s*\n\s*", " ", self.text[start:end])

    def _quote(self, node: ast.expr | ast.stmt) -> str:
        return f"`{self._segment(node)[:60]}`"

    def _add(self, step: PlanStep) -> int:
        if len(self.steps) >= limit("expression_steps"):
            raise ExpressionError(f"More than {limit('expression_steps')} operations; a page shows each one.")
        self.steps.append(step)
        return len(self.steps)

    # ----------------------------------------------------------------------------------------- statements

    def _show(self, node: ast.Name) -> None:
        """A line that is only a name: shown as a step, unless that is what the step before has just shown."""
        number = self._named(node)
        if number != len(self.steps):
            self._alias(number, node, node.id)

    def _alias(self, number: int, node: ast.expr | ast.stmt, name: str) -> None:
        shown = self._segment(node)
        added = self._add(PlanStep(NAMING, "name", (number,), shown, shown, node.lineno, name=name))
        self.names[name] = added
        if number in self.bundles:
            self.bundles.add(added)

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise ExpressionError("One name per assignment; write y = x.t() and z = y as two lines.")
        match node.targets[0]:
            case ast.Name(id=name):
                self._check_name(name)
                if isinstance(node.value, ast.Name):
                    self._alias(self._named(node.value), node, name)
                else:
                    self._bind(name, self._result(node.value))
            case ast.Subscript() as target:
                self._write(target, node.value, "=", node)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self._unpack(elements, node)
            case _:
                raise ExpressionError(
                    f"{self._quote(node)}: an assignment names a tensor, y = x.t(), or writes through brackets, "
                    "x[0][0] = 100."
                )

    def _bind(self, name: str, number: int) -> None:
        self.names[name] = number
        self.steps[number - 1] = replace(self.steps[number - 1], name=name)

    def _unpack(self, elements: Sequence[ast.expr], node: ast.Assign) -> None:
        names = [element.id for element in elements if isinstance(element, ast.Name)]
        if len(names) != len(elements) or not names:
            raise ExpressionError("Unpack into names, for example y, z = x.chunk(2).")
        for name in names:
            self._check_name(name)
        number = self._named(node.value) if isinstance(node.value, ast.Name) else self._result(node.value)
        if number not in self.bundles:
            raise ExpressionError("Only several tensors can be unpacked, for example y, z = x.chunk(2).")
        self.steps[number - 1] = replace(self.steps[number - 1], unpack=len(names))
        shown = self._segment(node.value)
        for piece, name in enumerate(names):
            step = PlanStep(PIECE, "piece", (number,), name, f"{shown}[{piece}]", node.lineno, pick=piece, name=name)
            self.names[name] = self._add(step)

    def _check_name(self, name: str) -> None:
        most = limit("expression_name")
        if len(name) > most or not _NAME.fullmatch(name) or "__" in name:
            raise ExpressionError(
                f"`{name[:40]}` cannot be a name here: a letter, then letters, digits and _, at most {most} in all."
            )
        if name in _MODULES or ("bare", name) in OPERATIONS:
            raise ExpressionError(f"`{name}` is already the name of something else; call the tensor y or z.")

    def _update(self, node: ast.AugAssign) -> None:
        symbol = _BINARY.get(type(node.op), "")
        if symbol not in _UPDATES:
            raise ExpressionError(
                f"{self._quote(node)}: {', '.join(f'{known}=' for known in _UPDATES)} are understood."
            )
        if isinstance(node.target, ast.Attribute):
            raise ExpressionError(f"{self._quote(node)}: only a name or square brackets can be written to.")
        self._write(node.target, node.value, f"{symbol}=", node)

    def _write(self, target: ast.Name | ast.Subscript, value: ast.expr, symbol: str, node: ast.stmt) -> None:
        base = self._tensor(target if isinstance(target, ast.Name) else target.value)
        inputs = [base]
        index: Index | None = None
        shown = f" {symbol} {self._segment(value)}"
        if isinstance(target, ast.Subscript):
            index = self._index(target, inputs)
            shown = self._brackets(target) + shown
        found = number(value)
        if found is None:
            inputs.append(self._tensor(value))
        step = PlanStep(
            WRITING if symbol == "=" else UPDATING,
            "write",
            tuple(inputs),
            shown.strip(),
            self._segment(node),
            node.lineno,
            args=(Slot(len(inputs) - 1) if found is None else found,),
            index=index,
            symbol=symbol,
        )
        number_ = self._add(step)
        if isinstance(target, ast.Name):
            self._bind(target.id, number_)

    # -------------------------------------------------------------------------------------------- tensors

    def _named(self, node: ast.Name) -> int:
        if node.id in self.names:
            return self.names[node.id]
        known = ", ".join(self.names)
        raise ExpressionError(
            f"`{node.id[:40]}` is not known; {known} {'is' if len(self.names) == 1 else 'are'}. For example: {EXAMPLE}."
        )

    def _tensor(self, node: ast.expr) -> int:
        """Read a node that must give one tensor; returns the number of its step."""
        number = self._result(node)
        if number in self.bundles:
            raise ExpressionError(
                f"{self._quote(node)} gives several tensors; pick one, for example {self._quote(node)[1:-1]}[0]."
            )
        return number

    def _result(self, node: ast.expr) -> int:
        """Read a node that must give a tensor or several; returns the number of its step."""
        if isinstance(node, ast.Name):
            return self._named(node)
        if isinstance(node, ast.Call):
            return self._call(node, None)
        if isinstance(node, ast.Attribute):
            return self._property(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.BinOp):
            symbol = _BINARY.get(type(node.op))
            if symbol is None:
                raise ExpressionError(f"{self._quote(node)}: of the operators, {_operators()} are understood.")
            return self._binary(node, node.left, symbol, node.right)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
            return self._binary(node, node.left, _COMPARE[type(node.ops[0])], node.comparators[0])
        if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            source = self._tensor(node.operand)
            shown = self._segment(node)
            symbol = _UNARY[type(node.op)]
            return self._add(PlanStep(ELEMENTWISE, "unary", (source,), shown, shown, node.lineno, symbol=symbol))
        name = _SYNTAX_NAMES.get(type(node), "this syntax")
        raise ExpressionError(f"{self._quote(node)} ({name}) is not understood here. For example: {EXAMPLE}.")

    def _property(self, node: ast.Attribute) -> int:
        if isinstance(node.value, ast.Name) and node.value.id in _MODULES:
            raise ExpressionError(f"{self._quote(node)} is not a tensor. For example: {EXAMPLE}.")
        if ("method", node.attr) in OPERATIONS:
            raise ExpressionError(
                f"`.{node.attr}` needs brackets, for example {OPERATIONS['method', node.attr].example}."
            )
        operation = find("property", node.attr)
        source = self._tensor(node.value)
        shown = self._segment(node)
        return self._add(PlanStep(operation, "property", (source,), f".{node.attr}", shown, node.lineno))

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
                raise ExpressionError(f"{self._quote(node.func)} cannot be called. For example: {EXAMPLE}.")

    def _call(self, node: ast.Call, outer: ast.Subscript | None) -> int:
        """A method or function. ``outer`` is the subscript that picks one of several results."""
        form, name, receiver = self._called(node)
        operation = find(form, name)  # type: ignore[arg-type]
        inputs: list[int] = []
        rest: Sequence[ast.expr] = node.args
        if receiver is not None:
            inputs.append(self._tensor(receiver))
        elif operation.subject:
            if not rest:
                raise ExpressionError(f"`{name}` needs a tensor first, for example {operation.example}.")
            inputs.append(self._tensor(rest[0]))
            rest = rest[1:]
        args = tuple(self._argument(operation, argument, inputs) for argument in rest)
        keywords = tuple(self._keyword(operation, keyword, inputs) for keyword in node.keywords)
        if not inputs and {"tensor", "tensors"} & set(operation.takes):
            raise ExpressionError(f"{name} needs at least one tensor, for example {operation.example}.")
        name_at = self._span(node.func)[1] - len(name)
        start, end = self._span(outer or node)
        step = PlanStep(
            operation,
            form,
            tuple(inputs),
            self._cut(start, end) if receiver is None else f".{self._cut(name_at, end)}",
            self._segment(outer or node),
            node.lineno,
            args=args,
            keywords=keywords,
            pick=None if outer is None else integer(outer.slice),
            at=(name_at, end),
        )
        number = self._add(step)
        if operation.several and outer is None:
            self.bundles.add(number)
        return number

    def _subscript(self, node: ast.Subscript) -> int:
        base = node.value
        if isinstance(base, ast.Call):
            form, name, _ = self._called(base)
            operation = OPERATIONS.get((form, name))  # type: ignore[arg-type]
            if operation is not None and operation.several:
                self._piece(node)
                return self._call(base, node)
        if isinstance(base, ast.Name) and self.names.get(base.id) in self.bundles:
            shown = self._segment(node)
            step = PlanStep(PIECE, "piece", (self.names[base.id],), shown, shown, node.lineno, pick=self._piece(node))
            return self._add(step)
        inputs = [self._tensor(base)]
        index = self._index(node, inputs)
        picks = any(isinstance(item, Slot | tuple) for item in index)
        step = PlanStep(
            PICKING if picks else INDEXING,
            "index",
            tuple(inputs),
            self._brackets(node),
            self._segment(node),
            node.lineno,
            index=index,
        )
        return self._add(step)

    def _piece(self, node: ast.Subscript) -> int:
        pick = integer(node.slice)
        if pick is None:
            raise ExpressionError(f"Pick one of the tensors with a whole number, not `[{self._segment(node.slice)}]`.")
        return pick

    def _brackets(self, node: ast.Subscript) -> str:
        opening = self.text.index("[", self._span(node.value)[1])
        return self._cut(opening, self._span(node)[1])

    def _index(self, node: ast.Subscript, inputs: list[int]) -> Index:
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
            values = nested(node)
            if isinstance(values, tuple):
                return values
        if isinstance(node, ast.Constant):
            return ... if node.value is Ellipsis else self._bound(node)
        if isinstance(node, ast.List | ast.Tuple) or number(node) is not None:
            return self._bound(node)
        inputs.append(self._tensor(node))
        return Slot(len(inputs) - 1)

    def _bound(self, node: ast.expr) -> int | None:
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        found = integer(node)
        if found is None:
            raise ExpressionError(
                f"`[{self._segment(node)[:60]}]`: an index is a whole number, a slice, None, `...`, a list of whole "
                "numbers, or a tensor."
            )
        return found

    def _binary(self, node: ast.expr, left: ast.expr, symbol: str, right: ast.expr) -> int:
        values = number(left), number(right)
        if None not in values:
            raise ExpressionError(f"{self._quote(node)} has no x in it. Write numbers out: 6, not 2 * 3.")
        inputs: list[int] = []
        args: list[Value] = []
        for side, value in zip((left, right), values, strict=True):
            if value is None:
                inputs.append(self._tensor(side))
            args.append(Slot(len(inputs) - 1) if value is None else value)
        operation = ELEMENTWISE
        if symbol == "@":
            if len(inputs) < 2:
                raise ExpressionError("@ multiplies two tensors, for example x @ x.t().")
            operation = OPERATIONS["method", "matmul"]
        start, end = self._span(node)
        at = self.text.index(symbol, self._span(left)[1])
        added = self._cut(at, end) if values[0] is None else self._cut(start, at + len(symbol))
        step = PlanStep(
            operation,
            "binary",
            tuple(inputs),
            added,
            self._segment(node),
            node.lineno,
            args=tuple(args),
            symbol=symbol,
        )
        return self._add(step)

    # ------------------------------------------------------------------------------------------ arguments

    def _argument(self, operation: Operation, node: ast.expr, inputs: list[int]) -> Value:
        if "tensors" in operation.takes and isinstance(node, ast.List | ast.Tuple):
            first = len(inputs)
            inputs += [self._tensor(item) for item in node.elts]
            return tuple(Slot(slot) for slot in range(first, len(inputs)))
        found = literal(node)
        if found is None and "tensor" in operation.takes and not isinstance(node, ast.List | ast.Tuple):
            inputs.append(self._tensor(node))
            return Slot(len(inputs) - 1)
        if found is None:
            raise ExpressionError(
                f"{self._quote(node)} is not a number, a tuple of numbers, a dtype or a pattern. "
                f"For example: {operation.example}."
            )
        kind, value = found
        allowed = {"int": ("int", "float"), "ints": ("ints", "data")}.get(kind, (kind,))
        if not set(allowed) & set(operation.takes):
            raise ExpressionError(
                f"{self._quote(node)} is not an argument {operation.name} takes here. For example: {operation.example}."
            )
        return value

    def _keyword(self, operation: Operation, node: ast.keyword, inputs: list[int]) -> tuple[str, Value]:
        name = node.arg or "**"
        if name not in operation.keywords and (operation.keywords != ("*",) or name.startswith("_") or not node.arg):
            raise ExpressionError(f"{operation.name} takes no `{name[:40]}=` here. For example: {operation.example}.")
        return name, self._argument(operation, node.value, inputs)


def _operators() -> str:
    return f"{' '.join(_BINARY.values())} and comparisons"


def _check_tree(module: ast.Module) -> None:
    """Cap the number of nodes and how deep they lie, and refuse what is left out by design, naming the reason."""
    nodes = deepest = 0
    level: list[ast.AST] = [module]
    while level:
        nodes += len(level)
        deepest += 1
        if nodes > limit("expression_nodes") or deepest > limit("expression_levels"):
            what = f"More than {limit('expression_nodes')} syntax nodes"
            if deepest > limit("expression_levels"):
                what = f"More than {limit('expression_levels')} syntax nodes inside one another"
            raise ExpressionError(f"{what}; write less at once.")
        for node in level:
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            if name in REFUSED:
                raise ExpressionError(f"`{name}` is refused here by design: {REFUSED[name]}.")
        level = [child for node in level for child in ast.iter_child_nodes(node)]
