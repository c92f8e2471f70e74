"""Reads lines on ``x`` into a plan of single operations. Nothing is evaluated and torch is not needed.

The text is capped *before* Python's parser sees it (`core.tensors.parsing.text`), the syntax tree before it is walked;
what an expression may hold is said in `core.tensors.parsing.expressions`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar, cast

from core.limits import limit
from core.tensors.operations.guards import TooLargeError
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.annotations import annotated
from core.tensors.parsing.assignments import AssignmentReader
from core.tensors.parsing.facts import Fact, Machine
from core.tensors.parsing.plan import Plan, PlanStep
from core.tensors.parsing.simplified import plain
from core.tensors.parsing.syntax import no_statement, parsed
from core.tensors.parsing.text import check_lines, code_of, tidy
from core.tensors.parsing.unrolled import filled

_Node = TypeVar("_Node", bound="ast.stmt | ast.expr")
_SEEDS = ("torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "np.random.seed", "random.seed")


def read_expression(text: str) -> Plan:
    """Parse ``text`` into a `Plan`, without running anything.

    Understands chains of operations on ``x``, operators, functions of torch and einops, names that a line assigns
    (``y = x.t()``, ``q, k, v = x.chunk(3)``), writes (``x[0] = 1``, ``y += 1``), numbers (``n = x.size(0)``,
    ``b, n, d = x.shape``), functions and calls of them, comments, docstrings, and imports of what is there anyway.
    Raises `ExpressionError`, and nothing else, for anything it does not understand, and for branches, which are known
    only once the lines before them have run.
    """
    tidied = tidy(text)
    reader = Reader(code_of(tidied))
    reader.read()
    return replace(reader.plan(), text=tidied)


class Refused(Exception):  # noqa: N818 (not wrong: torch's own error, on its way to the `except` that takes it)
    """What torch refused, while its statement is left."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(str(problem))
        self.problem = problem


class _Left(Exception):  # noqa: N818
    """``break``, or ``return`` from a branch."""


class _Again(Exception):  # noqa: N818
    """``continue``."""


class Reader(AssignmentReader):
    """Walks the statements: assignments, writes, branches, and expressions whose result is shown.

    With a machine, every statement runs before the next one is read, so that branches and questions can be answered.
    facts: what lines said that are no tensors. executed: the statements that ran, with branches resolved, and whether
    each stands for itself: it makes no tensor that is to be shown.
    """

    def __init__(self, text: str, machine: Machine | None = None) -> None:
        super().__init__(text, machine)
        self.executed: list[tuple[ast.stmt, bool]] = []
        self.sizes: dict[str, int] = {}
        """Dimensions that annotations have named, and their sizes."""
        self.line = 1
        self.present: ast.stmt = ast.Pass()
        """The statement that is being run."""

    def read(self) -> None:
        """All statements. Raises `ExpressionError`, with ``line`` set, for the first that is not understood."""
        program = plain(parsed(self.text))
        self.notes = dict.fromkeys(program.notes) | self.notes
        check_lines(sum(not isinstance(statement, ast.Assert) for statement in program.statements))
        try:
            self._body(program.statements)
        except _Left:
            return
        if program.problem is not None:
            self.line = program.problem[0]
            raise program.problem[1]

    def plan(self) -> Plan:
        return Plan(
            self.text, tuple(self.steps), self.names, tuple(self.questions), tuple(self.notes), tuple(self.listings)
        )

    def run(self) -> None:
        """Run what has been read and not yet run. Raises `Refused` where torch refuses a step."""
        if self.machine is not None and (problem := self.machine.advance(self.steps)) is not None:
            raise Refused(problem)

    def _body(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        self.line = node.lineno
        match node:
            case ast.If(test=test, body=body, orelse=other):
                self._body(body if self.truth(self._settled(test)) else other)
            case ast.Try():
                self._try(node)
            case ast.For():
                self._loop(node)
            case ast.With(body=body):
                before, self.tracked = self.tracked, False
                try:
                    self._body(body)
                finally:
                    self.tracked = before
            case ast.Break():
                raise _Left
            case ast.Continue():
                raise _Again
            case ast.Assert(test=test):
                self._assert(test, node)
            case ast.Raise():
                raise ExpressionError(f"{self.quote(node)}: nothing is raised here but what torch refuses.")
            case _:
                settled = self._settled(node)
                self.present = settled
                facts = len(self.facts)
                try:
                    self._simple(settled)
                    self.run()
                except Refused:
                    self.executed.append((settled, self._stands_alone(settled)))
                    raise
                alone = isinstance(settled, ast.Expr) and len(self.facts) > facts
                self.executed.append((settled, alone or self._stands_alone(settled)))

    def _stands_alone(self, node: ast.stmt) -> bool:
        """Whether a statement is run by Python as it stands, in a script."""
        match node:
            case ast.Assign(targets=[ast.Attribute()]) | ast.AugAssign(target=ast.Attribute()) | ast.Delete():
                return True
            case ast.Assign(targets=[ast.Name(id=name)]):
                return name in self.values or (name in self.literals and self._is_answer(node.value))
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="backward" | "retain_grad" | "manual_seed" | "seed"))):
                return True
            case _:
                return False

    def _simple(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Name(id="print" | "display" | "text"), args=args)):
                self._print(args, statement)
            case ast.Expr(value=ast.Call(func=func)) if ast.unparse(func) in _SEEDS:
                self._seed(statement)
            case ast.Expr(value=value) if self.is_fact(value) and not isinstance(value, ast.Name):
                self.facts.append(Fact(statement.lineno, self.segment(value), self.shown(value)))
            case ast.Expr(value=ast.Name(id=name)) if name in (*self.kinds, *self.values, *self.literals):
                self.facts.append(Fact(statement.lineno, name, self.shown(statement.value)))
            case ast.Expr(value=ast.Name() as name):
                self._show(name)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="backward")) as call):
                self._backward(owner, call)
            case ast.Expr(value=value):
                self._value(value)
            case ast.Assign(targets=[ast.Attribute(value=owner, attr="grad" | "requires_grad" as field)]):
                self._set_field(owner, field, statement)
            case ast.Assign():
                self._assign(statement)
            case ast.AnnAssign():
                self._annotated(statement)
            case ast.AugAssign():
                self._update(statement)
            case ast.Delete(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
                for target in targets:
                    self._forget(ast.unparse(target), statement)
            case _:
                raise ExpressionError(no_statement(self.segment(statement)))

    # ------------------------------------------------------------------------------------------- branches

    def _settled(self, node: _Node) -> _Node:
        """``node`` with the side that holds in the place of each ``a if test else b``, and comprehensions opened."""
        return cast(_Node, _Settler(self).visit(node))

    def _try(self, node: ast.Try) -> None:
        names, kinds, counts = dict(self.names), dict(self.kinds), dict(self.counts)
        lists, literals, bundles = dict(self.lists), dict(self.literals), set(self.bundles)
        try:
            self._body(node.body)
        except Refused as refused:
            handler = next((h for h in node.handlers if _takes(h.type, refused.problem)), None)
            if handler is None:
                raise
            line = self.line
            said = ast.parse("print(f'{type(error).__name__}: {error}')").body[0]
            except_ = ast.ExceptHandler(ast.Name("Exception", ast.Load()), "error", [said])
            self.executed[-1:] = [(ast.Try([self.present], [except_], [], []), True)]
            self.names, self.kinds, self.counts = names, kinds, counts
            self.lists, self.literals, self.bundles = lists, literals, bundles
            caught = handler.name or type(refused.problem).__name__
            self.facts.append(
                Fact(line, f"caught as `{caught}`", f"{type(refused.problem).__name__}: {_first_line(refused.problem)}")
            )
            if handler.name:
                self._check_name(handler.name)
                self.values[handler.name] = refused.problem
            self._body(handler.body)
        else:
            self._body(node.orelse)
        self._body(node.finalbody)

    def _loop(self, node: ast.For) -> None:
        """A loop over numbers that only the tensors know, or over tensors that stand in a list."""
        items = self._items(node.iter)
        if len(items) > limit("expression_lines"):
            raise ExpressionError(f"{self.quote(node)}: at most {limit('expression_lines')} rounds are run.")
        for item in items:
            assigned = ast.copy_location(ast.Assign([node.target], item), node)
            try:
                self._statement(assigned)
                self._body([deepcopy(statement) for statement in node.body])
            except _Again:
                continue
            except _Left:
                break

    def _items(self, node: ast.expr) -> list[ast.expr]:
        """What a loop goes over, as nodes that may stand in its place."""
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return list(items)
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner]):
                found = self._items(inner)
                return [
                    _at(ast.Tuple([_at(ast.Constant(i), node), item], ast.Load()), node) for i, item in enumerate(found)
                ]
            case ast.Call(func=ast.Name(id="zip"), args=[_, *_] as parts):
                columns = [self._items(part) for part in parts]
                return [_at(ast.Tuple(list(row), ast.Load()), node) for row in zip(*columns, strict=False)]
            case ast.Name(id=name) if name in self.lists:
                return [
                    _at(ast.Subscript(node, _at(ast.Constant(i), node), ast.Load()), node)
                    for i in range(len(self.lists[name]))
                ]
            case _ if self.kind(node) == "sizes":
                return [_at(ast.Constant(value), node) for value in self._numbered(node)]
            case ast.Name(id=name) if name in self.names and self.machine is not None:
                self.run()
                tensor = self.machine.tensor(self.names[name])
                if not isinstance(tensor, tuple) and not tensor.dim():
                    raise ExpressionError(f"{self.quote(node)} has no dimension that a loop could go over.")
                count = len(cast("Sequence[Any]", tensor))
                return [_at(ast.Subscript(node, _at(ast.Constant(i), node), ast.Load()), node) for i in range(count)]
            case _:
                raise ExpressionError(
                    f"{self.quote(node)}: a loop goes over range(…), sizes, a tensor or a list of tensors with a name."
                )

    # ------------------------------------------------------------------------------------------ what is asked

    def _aside(self, answer: Callable[[], str]) -> str:
        """What ``answer`` gives; the steps that it takes are no part of the program, unless one writes or fails."""
        if self.machine is None:
            return answer()
        before, mark, bundles, names = len(self.steps), self.machine.mark(), set(self.bundles), dict(self.names)
        try:
            return answer()
        except Refused:
            mark = None
            raise
        finally:
            if mark is not None:
                if any(_changes(step) for step in self.steps[before:]):
                    mark = self.machine.mark()  # what has run stays; what was not reached goes
                self.machine.back(mark)
                del self.steps[mark[0] - 1 :]
                gone = {name for name, number in self.names.items() if number >= mark[0]}
                self.names.update({name: number for name, number in names.items() if name in gone})
                self.bundles = bundles

    def _assert(self, test: ast.expr, node: ast.Assert) -> None:
        """Worked out, and shown with ✓ or ✗; the lines after it run either way."""
        text, settled = self.segment(test), self._settled(test)
        if self.machine is None:
            return
        holds: bool | None = None
        values = ""
        try:
            self.run()
            before = len(self.steps)
            holds = self._aside(lambda: "yes" if self.truth(settled) else "") == "yes"
            if not holds and len(self.steps) == before and isinstance(settled, ast.Compare) and len(settled.ops) == 1:
                values = self._aside(lambda: f"it is {self.shown(settled.left)}")
        except TooLargeError as problem:
            if not self.machine.counted:
                raise  # and all runs again, on tensors that are only counted
            values = f"not worked out: {problem}"
        except ExpressionError as problem:
            values = f"not worked out: {problem}" if holds is None else ""
        self.facts.append(Fact(node.lineno, f"assert {text}", values, holds))

    def _print(self, args: Sequence[ast.expr], node: ast.stmt) -> None:
        if self.machine is None:
            return
        self.run()
        parts: list[str] = []
        for arg in args:
            try:
                parts.append(self._aside(lambda arg=arg: self.shown(self._settled(arg))))
            except ExpressionError as problem:
                if isinstance(problem, TooLargeError) and not self.machine.counted:
                    raise
                parts.append(f"{self.segment(arg)[:40]} (not worked out)")
        self.facts.append(Fact(node.lineno, self.segment(node), " ".join(parts)))

    def _seed(self, node: ast.stmt) -> None:
        """``torch.manual_seed(0)``: from here on, random numbers are those that torch draws on a CPU."""
        call = cast(ast.Call, cast(ast.Expr, node).value)
        seed = self.count(call.args[0]) if len(call.args) == 1 and self.kind(call.args[0]) == "number" else None
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise ExpressionError(f"{self.quote(node)}: a seed is one whole number from 0.")
        if "torch" in ast.unparse(call.func):
            self.run()
            if self.machine is not None:
                self.machine.seed(seed)
            self.notes["From `manual_seed` on, random numbers are those that torch draws on a CPU."] = None

    def _annotated(self, node: ast.AnnAssign) -> None:
        """``x: Float[torch.Tensor, "batch seq"] = …``: the assignment, then the names held against the shape."""
        if not isinstance(node.target, ast.Name):
            raise ExpressionError(f"{self.quote(node)}: only a name takes an annotation.")
        name = node.target.id
        if node.value is not None:
            self._assign(ast.copy_location(ast.Assign([node.target], node.value), node))
        if not isinstance(node.annotation, ast.Subscript) or name not in self.names or self.machine is None:
            return
        match node.annotation:
            case ast.Subscript(value=kind, slice=ast.Tuple(elts=[_, ast.Constant(value=str() as dims)])):
                self.run()
                tensor = self.machine.tensor(self.names[name])
                if isinstance(tensor, tuple):
                    return
                dtype = str(tensor.dtype).removeprefix("torch.")
                wrong = annotated(ast.unparse(kind).split(".")[-1], dims, tuple(tensor.shape), dtype, self.sizes)
                said = wrong or f"shape {tuple(tensor.shape)}"
                self.facts.append(Fact(node.lineno, f"{name}: {ast.unparse(kind)}[{dims}]", said, not wrong))
            case _:
                return

    def _forget(self, name: str, node: ast.stmt) -> None:
        """``del y``: the name stands for nothing any more; its tensor keeps its step."""
        if name in self.names and self.steps:
            del self.names[name]
            self._forgotten(name)
        elif name in self.kinds or name in self.values or name in self.lists or name in self.literals:
            self._forget_others(name)
        else:
            raise ExpressionError(f"{self.quote(node)}: `{name[:40]}` is not known.")


class _Settler(ast.NodeTransformer):
    """Resolves conditional expressions, and comprehensions over what only the tensors know."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        holds = self.reader.truth(self.visit(node.test))
        return self.visit(node.body if holds else node.orelse)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``torch.where(mask)`` is ``torch.nonzero(mask, as_tuple=True)``."""
        node = cast(ast.Call, self.generic_visit(node))
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="where") as func, args=[_], keywords=[]):
                both = _at(ast.Attribute(func.value, "nonzero", ast.Load()), func)
                flag = ast.keyword("as_tuple", _at(ast.Constant(True), node))
                return _at(ast.Call(both, node.args, [_at(flag, node)]), node)
            case _:
                return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._opened(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._opened(node)

    def _opened(self, node: ast.ListComp | ast.GeneratorExp) -> ast.AST:
        if len(node.generators) != 1 or not isinstance(node.generators[0].target, ast.Name):
            return self.generic_visit(node)
        part = node.generators[0]
        name = cast(ast.Name, part.target).id
        items: list[ast.expr] = []
        for item in self.reader._items(part.iter):  # pyright: ignore[reportPrivateUsage]
            tests = [self.visit(filled(name, item, test)) for test in part.ifs]
            if all(self.reader.truth(test) for test in tests):
                items.append(self.visit(filled(name, item, node.elt)))
            if len(items) > limit("expression_lines"):
                raise ExpressionError(f"{self.reader.quote(node)}: at most {limit('expression_lines')} items.")
        return ast.copy_location(ast.List(items, ast.Load()), node)


def _at(node: Any, place: ast.expr) -> Any:
    return ast.copy_location(node, place)


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).strip().splitlines()), "")[:200]


def _takes(kind: ast.expr | None, problem: Exception) -> bool:
    """Whether ``except kind`` takes what torch raised."""
    if kind is None:
        return True
    names = [ast.unparse(item) for item in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]
    return bool({cls.__name__ for cls in type(problem).__mro__} & set(names))


def _changes(step: PlanStep) -> bool:
    """Whether a step leaves an earlier tensor other than it was."""
    return step.form == "write" or step.operation.writes or step.operation.restrides
