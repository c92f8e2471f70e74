"""Reads up to twelve lines on ``x`` into a plan of single operations. Nothing is evaluated and torch is not needed.

The text is capped *before* Python's parser sees it (`core.tensors.text`), the syntax tree before it is walked; what
an expression may hold is said in `core.tensors.expressions`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from core.limits import limit
from core.tensors.arguments import number
from core.tensors.expressions import BINARY, MODULES, ExpressionReader
from core.tensors.operations import OPERATIONS, REFUSED
from core.tensors.plan import Plan, PlanStep
from core.tensors.table import NAMING, PIECE, UPDATING, WRITING
from core.tensors.text import EXAMPLE, tidy
from core.tensors.values import ExpressionError, Index, Slot


def read_expression(text: str) -> Plan:
    """Parse ``text``, up to twelve lines, into a `Plan`.

    Understands chains of operations on ``x``, operators, functions of torch and einops, names that a line assigns
    (``y = x.t()``, ``q, k, v = x.chunk(3)``), and writes (``x[0] = 1``, ``y += 1``). Raises `ExpressionError`, and
    nothing else, for anything it does not understand.
    """
    return _Reader(tidy(text)).read()


_UPDATES = ("+", "-", "*", "/", "//", "%", "**")

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


class _Reader(ExpressionReader):
    """Walks the lines: assignments, writes, and expressions whose result is shown."""

    def read(self) -> Plan:
        for statement in self._statements():
            match statement:
                case ast.Expr(value=ast.Name() as name):
                    self._show(name)
                case ast.Expr(value=value):
                    self.result(value)
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

    # ----------------------------------------------------------------------------------------- statements

    def _show(self, node: ast.Name) -> None:
        """A line that is only a name: shown as a step, unless that is what the step before has just shown."""
        number = self.named(node)
        if number != len(self.steps):
            self._alias(number, node, node.id)

    def _alias(self, number: int, node: ast.expr | ast.stmt, name: str) -> None:
        shown = self.segment(node)
        added = self.add(PlanStep(NAMING, "name", (number,), shown, shown, node.lineno, name=name))
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
                    self._alias(self.named(node.value), node, name)
                else:
                    self._bind(name, self.result(node.value))
            case ast.Subscript() as target:
                self._write(target, node.value, "=", node)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self._unpack(elements, node)
            case _:
                raise ExpressionError(
                    f"{self.quote(node)}: an assignment names a tensor, y = x.t(), or writes through brackets, "
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
        number = self.named(node.value) if isinstance(node.value, ast.Name) else self.result(node.value)
        if number not in self.bundles:
            raise ExpressionError("Only several tensors can be unpacked, for example y, z = x.chunk(2).")
        self.steps[number - 1] = replace(self.steps[number - 1], unpack=len(names))
        shown = self.segment(node.value)
        for piece, name in enumerate(names):
            step = PlanStep(PIECE, "piece", (number,), name, f"{shown}[{piece}]", node.lineno, pick=piece, name=name)
            self.names[name] = self.add(step)

    def _check_name(self, name: str) -> None:
        most = limit("expression_name")
        if len(name) > most or not _NAME.fullmatch(name) or "__" in name:
            raise ExpressionError(
                f"`{name[:40]}` cannot be a name here: a letter, then letters, digits and _, at most {most} in all."
            )
        if name in MODULES or ("bare", name) in OPERATIONS:
            raise ExpressionError(f"`{name}` is already the name of something else; call the tensor y or z.")

    def _update(self, node: ast.AugAssign) -> None:
        symbol = BINARY.get(type(node.op), "")
        if symbol not in _UPDATES:
            raise ExpressionError(f"{self.quote(node)}: {', '.join(f'{known}=' for known in _UPDATES)} are understood.")
        if isinstance(node.target, ast.Attribute):
            raise ExpressionError(f"{self.quote(node)}: only a name or square brackets can be written to.")
        self._write(node.target, node.value, f"{symbol}=", node)

    def _write(self, target: ast.Name | ast.Subscript, value: ast.expr, symbol: str, node: ast.stmt) -> None:
        base = self.tensor(target if isinstance(target, ast.Name) else target.value)
        inputs = [base]
        index: Index | None = None
        shown = f" {symbol} {self.segment(value)}"
        if isinstance(target, ast.Subscript):
            index = self.index(target, inputs)
            shown = self.brackets(target) + shown
        found = number(value)
        if found is None:
            inputs.append(self.tensor(value))
        step = PlanStep(
            WRITING if symbol == "=" else UPDATING,
            "write",
            tuple(inputs),
            shown.strip(),
            self.segment(node),
            node.lineno,
            args=(Slot(len(inputs) - 1) if found is None else found,),
            index=index,
            symbol=symbol,
        )
        number_ = self.add(step)
        if isinstance(target, ast.Name):
            self._bind(target.id, number_)


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
