"""Reads an expression on ``x`` into a plan of single operations. Nothing is evaluated and torch is not needed.

The text is capped in length, characters and bracket depth *before* Python's parser sees it; then every syntax node
must be one of a few kinds, every name one of `core.tensors.operations`, every argument a literal.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Literal, TypeAlias

from core.limits import limit
from core.tensors.operations import (
    DTYPES,
    ELEMENTWISE,
    INDEXING,
    MEMORY_FORMATS,
    OPERATIONS,
    WRITING,
    DType,
    ExpressionError,
    MemoryFormat,
    Operation,
    Takes,
    Value,
    Written,
    check_size,
    find,
)

EXAMPLE = "x.t().view(2, 3)"

Form: TypeAlias = Written | Literal["index", "binary", "negative", "write"]
IndexItem: TypeAlias = int | slice | EllipsisType | None
Index: TypeAlias = tuple[IndexItem, ...]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One operation of a plan.

    inputs: numbers of the steps whose tensors it takes; step 0 is ``x`` itself. args and keywords: its literals.
    index: what stands in the brackets, for ``index`` and ``write``. pick: which of several results is taken.
    sides: for ``binary``, a number on the left or right, ``None`` where a tensor stands. value: what is written.
    source: the text this step adds; expression: the text up to its end. name_at: where its name stands in the text.
    """

    operation: Operation
    form: Form
    inputs: tuple[int, ...]
    source: str
    expression: str
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    index: Index = ()
    pick: int | None = None
    symbol: str = ""
    sides: tuple[int | float | None, int | float | None] = (None, None)
    value: int | float | None = None
    name_at: int = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """The operations of one expression in the order in which they run; the last one is the result."""

    text: str
    steps: tuple[PlanStep, ...]


def read_expression(text: str) -> Plan:
    """Parse ``text`` into a `Plan`.

    Understands chains of operations on ``x``, arithmetic with ``+ - * / @``, functions of torch and einops, and one
    assignment ``x[…] = number``. Raises `ExpressionError`, and nothing else, for anything it does not understand.
    """
    text = text.strip()
    _check_text(text)
    return _Reader(text).read()


def read_shape(text: str) -> tuple[int, ...]:
    """The start shape a person typed: ``2, 3``, ``(2, 3)``, ``2 × 3`` or ``()`` for a single number.

    Raises `ExpressionError` with an example for anything else, and beyond the caps on rank and elements.
    """
    inner = text.strip()
    example = "For example: 2, 3."
    if not inner:
        raise ExpressionError(f"Empty. Type the sizes of x with commas, or () for a single number. {example}")
    if len(inner) > limit("number_chars"):
        raise ExpressionError(f"A shape of {len(inner):,} characters is too long. {example}")
    if inner[:1] + inner[-1:] in ("()", "[]"):
        inner = inner[1:-1]
        if not inner.strip():
            return ()
    sizes = [part for part in re.split(r"\s*[,×x]\s*|\s+", inner.strip().removesuffix(",")) if part is not None]
    if not all(re.fullmatch(r"[0-9]{1,12}", size) for size in sizes):
        raise ExpressionError(f"“{text.strip()}” is not a shape: sizes are whole numbers with commas. {example}")
    shape = tuple(int(size) for size in sizes)
    check_size(shape, "The start tensor")
    return shape


# ------------------------------------------------------------------------------------------ before parsing


_FOREIGN = re.compile(r"""[^A-Za-z0-9_ .,:()\[\]'"+\-*/@=>]""")


def _check_text(text: str) -> None:
    if not text:
        raise ExpressionError(f"Empty. Type an expression on x, for example {EXAMPLE}.")
    if len(text) > limit("expression_chars"):
        raise ExpressionError(
            f"That is {len(text):,} characters long; an expression has at most {limit('expression_chars')}."
        )
    foreign = _FOREIGN.search(text)
    if foreign:
        raise ExpressionError(
            f"The character {foreign.group()!a} has no place in an expression on x. For example: {EXAMPLE}."
        )
    depth = deepest = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        deepest = max(deepest, depth)
    if deepest > limit("expression_depth"):
        raise ExpressionError(f"{deepest} brackets inside one another; at most {limit('expression_depth')} are read.")


# ------------------------------------------------------------------------------------------------ parsing


_SYNTAX_NAMES: dict[type[ast.AST], str] = {
    ast.Lambda: "lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.IfExp: "if … else",
    ast.Compare: "a comparison",
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

_BINARY: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@"}


class _Reader:
    """Walks one syntax tree and appends a `PlanStep` per operation. Step 0, ``x``, is implied."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps: list[PlanStep] = []

    def read(self) -> Plan:
        statement = self._statement()
        if isinstance(statement, ast.Assign):
            self._assignment(statement)
        else:
            self._tensor(statement.value)
        return Plan(self.text, tuple(self.steps))

    def _statement(self) -> ast.Expr | ast.Assign:
        try:
            module = ast.parse(self.text)  # parses only; "exec" mode because an assignment is a statement
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            reason = problem.msg if isinstance(problem, SyntaxError) else "nested too deeply"
            raise ExpressionError(f"This is not a complete expression: {reason}. For example: {EXAMPLE}.") from None
        nodes = sum(1 for _ in ast.walk(module))
        if nodes > limit("expression_nodes"):
            raise ExpressionError(f"{nodes} syntax nodes; an expression has at most {limit('expression_nodes')}.")
        statement = module.body[0] if len(module.body) == 1 else None
        if isinstance(statement, ast.AugAssign):
            raise ExpressionError("Write the assignment out, for example x[0] = 100.")
        if not isinstance(statement, ast.Expr | ast.Assign):
            raise ExpressionError(f"One expression on x is understood, no other statement. For example: {EXAMPLE}.")
        return statement

    def _segment(self, node: ast.expr) -> str:
        return self.text[node.col_offset : node.end_col_offset]

    def _add(self, step: PlanStep) -> int:
        if len(self.steps) >= limit("expression_steps"):
            raise ExpressionError(f"More than {limit('expression_steps')} operations; a page shows each one.")
        self.steps.append(step)
        return len(self.steps)

    # ------------------------------------------------------------------------------------------- tensors

    def _tensor(self, node: ast.expr) -> int:
        """Read a node that must give a tensor; returns the number of its step."""
        if isinstance(node, ast.Name):
            if node.id == "x":
                return 0
            raise ExpressionError(f"`{node.id[:40]}` is not known; only x is. For example: {EXAMPLE}.")
        if isinstance(node, ast.Call):
            return self._call(node, None)
        if isinstance(node, ast.Attribute):
            return self._property(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            source = self._tensor(node.operand)
            shown = self._segment(node)
            return self._add(PlanStep(ELEMENTWISE, "negative", (source,), shown, shown))
        name = _SYNTAX_NAMES.get(type(node), "this syntax")
        raise ExpressionError(f"`{self._segment(node)[:60]}` ({name}) is not understood here. For example: {EXAMPLE}.")

    def _property(self, node: ast.Attribute) -> int:
        if isinstance(node.value, ast.Name) and node.value.id in ("torch", "einops"):
            raise ExpressionError(f"`{self._segment(node)[:60]}` is not a tensor. For example: {EXAMPLE}.")
        if ("method", node.attr) in OPERATIONS:
            raise ExpressionError(
                f"`.{node.attr}` needs brackets, for example {OPERATIONS['method', node.attr].example}."
            )
        operation = find("property", node.attr)
        source = self._tensor(node.value)
        return self._add(PlanStep(operation, "property", (source,), f".{node.attr}", self._segment(node)))

    def _call(self, node: ast.Call, pick: int | None, outer: ast.expr | None = None) -> int:
        """A method or function. ``outer`` is the subscript that picks one of several results."""
        inputs: list[int] = []
        rest: Sequence[ast.expr] = node.args
        receiver: ast.expr | None = None
        match node.func:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="einops"), attr=name):
                form: Written = "bare"
            case ast.Attribute(value=ast.Name(id="torch"), attr=name):
                form = "torch"
            case ast.Attribute(value=receiver, attr=name):
                form = "method"
            case _:
                raise ExpressionError(f"`{self._segment(node.func)[:60]}` cannot be called. For example: {EXAMPLE}.")
        operation = find(form, name)
        name_at = (node.func.end_col_offset or 0) - len(name)
        if receiver is not None:
            inputs.append(self._tensor(receiver))
        elif name != "einsum":
            if not rest:
                raise ExpressionError(f"`{name}` needs a tensor first, for example {operation.example}.")
            inputs.append(self._tensor(rest[0]))
            rest = rest[1:]
        args: list[Value] = []
        for argument in rest:
            if "tensor" in operation.takes and (args or "text" not in operation.takes):
                inputs.append(self._tensor(argument))
            else:
                args.append(self._argument(operation, argument))
        if not inputs:
            raise ExpressionError(f"{name} needs at least one tensor, for example {operation.example}.")
        if operation.name == "matmul" and len(inputs) != 2:
            raise ExpressionError("matmul takes two tensors, for example x @ x.t().")
        if operation.several and outer is None:
            raise ExpressionError(f"`{name}` gives several tensors; pick one, for example {operation.example}.")
        end = (outer or node).end_col_offset
        source = self.text[node.col_offset : end] if receiver is None else f".{self.text[name_at:end]}"
        return self._add(
            PlanStep(
                operation,
                form,
                tuple(inputs),
                source,
                self._segment(outer or node),
                args=tuple(args),
                keywords=tuple(self._keyword(operation, k) for k in node.keywords),
                pick=pick,
                name_at=name_at,
            )
        )

    def _subscript(self, node: ast.Subscript) -> int:
        call = node.value
        if isinstance(call, ast.Call) and self._gives_several(call):
            pick = _integer(node.slice)
            if pick is None:
                raise ExpressionError(
                    f"Pick one of the tensors with a whole number, not `[{self._segment(node.slice)}]`."
                )
            return self._call(call, pick, node)
        source = self._tensor(call)
        shown = self._brackets(node)
        return self._add(PlanStep(INDEXING, "index", (source,), shown, self._segment(node), index=self._index(node)))

    def _gives_several(self, call: ast.Call) -> bool:
        if not isinstance(call.func, ast.Attribute):
            return False
        of_torch = isinstance(call.func.value, ast.Name) and call.func.value.id == "torch"
        operation = OPERATIONS.get(("torch" if of_torch else "method", call.func.attr))
        return operation is not None and operation.several

    def _brackets(self, node: ast.Subscript) -> str:
        return self.text[self.text.rfind("[", 0, node.slice.col_offset) : node.end_col_offset]

    def _index(self, node: ast.Subscript) -> Index:
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = tuple(self._index_item(item) for item in items)
        if sum(item is None for item in index) > limit("tensor_rank"):
            raise ExpressionError(f"Too many new dimensions; at most {limit('tensor_rank')} are drawn.")
        return index

    def _index_item(self, node: ast.expr) -> IndexItem:
        if isinstance(node, ast.Slice):
            parts = [None if p is None else self._bound(p) for p in (node.lower, node.upper, node.step)]
            return slice(*parts)
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            return ...
        return self._bound(node)

    def _bound(self, node: ast.expr) -> int | None:
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        number = _integer(node)
        if number is None:
            raise ExpressionError(
                f"`[{self._segment(node)[:60]}]`: an index is a whole number, a slice, None or `...`; "
                "lists and masks are not among the operations here."
            )
        return number

    def _binary(self, node: ast.BinOp) -> int:
        symbol = _BINARY.get(type(node.op))
        if symbol is None:
            raise ExpressionError(f"`{self._segment(node)[:60]}`: of the operators, + - * / and @ are understood.")
        left, right = _number(node.left), _number(node.right)
        if left is not None and right is not None:
            raise ExpressionError(f"`{self._segment(node)[:60]}` has no x in it. Write numbers out: 6, not 2 * 3.")
        inputs = tuple(self._tensor(side) for side, n in ((node.left, left), (node.right, right)) if n is None)
        shown = self._segment(node)
        if symbol == "@":
            if len(inputs) < 2:
                raise ExpressionError("@ multiplies two tensors, for example x @ x.t().")
            operation = OPERATIONS["method", "matmul"]
        else:
            operation = ELEMENTWISE
        at = self.text.index(symbol, node.left.end_col_offset)
        added = self.text[at : node.end_col_offset] if left is None else self.text[node.col_offset : at + 1]
        return self._add(PlanStep(operation, "binary", inputs, added, shown, symbol=symbol, sides=(left, right)))

    def _assignment(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Subscript):
            raise ExpressionError("An assignment writes into x through brackets, for example x[0][0] = 100.")
        value = _number(node.value)
        if value is None:
            raise ExpressionError(f"Only a number can be written, not `{self._segment(node.value)[:60]}`.")
        source = self._tensor(target.value)
        shown = f"{self._brackets(target)} = {self._segment(node.value)}"
        self._add(PlanStep(WRITING, "write", (source,), shown, self.text, index=self._index(target), value=value))

    # ----------------------------------------------------------------------------------------- arguments

    def _argument(self, operation: Operation, node: ast.expr) -> Value:
        kind, value = self._literal(node)
        allowed = kind in operation.takes or (kind == "int" and "float" in operation.takes)
        if not allowed:
            raise ExpressionError(
                f"`{self._segment(node)[:60]}` is not an argument {operation.name} takes here. "
                f"For example: {operation.example}."
            )
        return value

    def _keyword(self, operation: Operation, node: ast.keyword) -> tuple[str, Value]:
        name = node.arg or "**"
        if name not in operation.keywords and (operation.keywords != ("*",) or name.startswith("_") or not node.arg):
            raise ExpressionError(f"{operation.name} takes no `{name[:40]}=` here. For example: {operation.example}.")
        return name, self._argument(operation, node.value)

    def _literal(self, node: ast.expr) -> tuple[Takes, Value]:
        number = _number(node)
        if number is not None:
            return ("int" if isinstance(number, int) else "float"), number
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                values = [_integer(item) for item in items]
                if all(value is not None for value in values):
                    return "ints", tuple(value for value in values if value is not None)
            case ast.Constant(value=None):
                return "none", None
            case ast.Constant(value=bool() as flag):
                return "bool", flag
            case ast.Constant(value=str() as string):
                return "text", string
            case ast.Attribute(value=ast.Name(id="torch"), attr=name):
                if name in DTYPES:
                    return "dtype", DType(DTYPES[name])
                if name in MEMORY_FORMATS:
                    return "format", MemoryFormat(name)
                raise ExpressionError(
                    f"`torch.{name[:40]}` is not known here. Dtypes: {', '.join(sorted(set(DTYPES.values())))}."
                )
            case _:
                pass
        raise ExpressionError(
            f"`{self._segment(node)[:60]}` is not a number, a tuple of numbers, a dtype or a pattern."
        )


def _number(node: ast.expr) -> int | float | None:
    """The number a literal stands for, with at most one minus; ``None`` when it is no number."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool) or not isinstance(node.value, int | float):
        return None
    if not math.isfinite(node.value) or abs(node.value) > limit("expression_integer"):
        raise ExpressionError(f"A number in an expression is at most {limit('expression_integer'):,}.")
    return sign * node.value


def _integer(node: ast.expr) -> int | None:
    number = _number(node)
    return number if isinstance(number, int) else None
