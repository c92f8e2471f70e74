"""Runs a program statement by statement: assignments, writes, branches, loops, functions, and what is asked.

The text is capped *before* Python's parser sees it (`core.tensors.parsing.text`), the syntax tree before it is walked.
Python itself runs nothing of it: expressions are worked out by `core.tensors.parsing.expressions`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, cast

from core.tensors.operations.guards import TooLargeError
from core.tensors.operations.values import Device, DType, ExpressionError
from core.tensors.parsing.binding import BindingReader
from core.tensors.parsing.evaluation import Refused
from core.tensors.parsing.facts import HELPERS, Fact, StatementRunner
from core.tensors.parsing.imports import read_import
from core.tensors.parsing.objects import Class, Frame, Function, Instance, Module, Named, PythonError, Ref, Storage
from core.tensors.parsing.syntax import no_statement, parsed, uncalled
from core.tensors.parsing.text import check_lines

_BODIES = ("no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "autocast", "device")
"""Context managers of torch whose body is run."""


class _Left(Exception):  # noqa: N818
    """``break``."""


class _Again(Exception):  # noqa: N818
    """``continue``."""


class _Return(Exception):  # noqa: N818
    """``return``, with the syntax node and the value of what it gives."""

    def __init__(self, node: ast.Return, value: Any) -> None:
        super().__init__()
        self.node = node
        self.value = value


class Reader(BindingReader):
    """Walks the statements, and runs each before the next one is read."""

    def __init__(self, text: str, machine: StatementRunner) -> None:
        super().__init__(text, machine)
        self.alone: set[str] = set()
        """Functions and classes that nothing calls: they run where they stand."""

    def read(self) -> None:
        """All statements. Raises `ExpressionError`, with ``line`` set, for the first that is not understood."""
        program = parsed(self.text)
        self.alone = uncalled(program)
        self.work = 0
        check_lines(sum(not isinstance(statement, ast.Assert) for statement in program.body))
        for number, statement in enumerate(program.body):
            try:
                self._statement(statement)
            except _Return as left:
                self._returned(left)
                for rest in program.body[number + 1 :]:
                    self.line = rest.lineno
                    raise ExpressionError(
                        f"{self.quote(rest)} stands after `return`, so it would never run; leave it away."
                    ) from None
                break
            except (_Left, _Again):
                raise ExpressionError(f"{self.quote(statement)} stands in no loop.") from None
            except RecursionError:
                raise ExpressionError("This is nested too deeply to be worked out.") from None
        self.settle()

    def _body(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if self.typed:
            self.line = node.lineno
        self.work += 1
        with self.holding():
            self._ran(node)

    def _ran(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.If(test=test, body=body, orelse=other):
                self._body(body if self.truth(test) else other)
            case ast.Try():
                self._try(node)
            case ast.For():
                self._loop(node)
            case ast.With():
                self._with(node)
            case ast.Break():
                raise _Left
            case ast.Continue():
                raise _Again
            case ast.Return(value=value):
                raise _Return(node, None if value is None else self.value(value))
            case ast.Assert(test=test):
                self._assert(test, node)
            case ast.Raise():
                raise ExpressionError(f"{self.quote(node)}: nothing is raised here but what torch refuses.")
            case ast.FunctionDef():
                self._define(node)
            case ast.ClassDef():
                self._class(node)
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, value, node)
            case ast.AnnAssign():
                self._annotated(node)
            case ast.AugAssign():
                self._update(node)
            case ast.Expr(value=value):
                self._shown(value)
            case ast.Delete(targets=targets):
                self._forget(targets, node)
            case _:
                raise ExpressionError(no_statement(self.segment(node)))

    def _with(self, node: ast.With) -> None:
        before = self.tracked, self.casts
        for item in node.items:
            expression = item.context_expr
            call = expression if isinstance(expression, ast.Call) else None
            path = ast.unparse(expression if call is None else call.func).split(".")
            if path[-1] not in _BODIES or path[0] not in ("torch", "autocast") or item.optional_vars is not None:
                accepted = ", ".join(f"torch.{known}" for known in _BODIES)
                raise ExpressionError(f"`with {ast.unparse(item)[:60]}`: of `with`, only {accepted} are understood.")
            self._managed(path[-1], call)
        try:
            self._body(node.body)
        finally:
            self.tracked, self.casts = before

    def _managed(self, name: str, call: ast.Call | None) -> None:
        given = [] if call is None else [self.value(item) for item in call.args]
        named = {} if call is None else {item.arg: self.value(item.value) for item in call.keywords}
        if name in ("no_grad", "inference_mode"):
            self.tracked = False
        elif name == "enable_grad" or name == "set_grad_enabled":
            self.tracked = bool((*given, True)[0])
        elif name == "autocast":
            device = given[0] if given else named.get("device_type", "cuda")
            kind = (device.name if isinstance(device, Device) else str(device)).partition(":")[0]
            dtype = next((value for value in (*given, *named.values()) if isinstance(value, DType)), None)
            cast = dtype.name if dtype is not None else "bfloat16" if kind == "cpu" else "float16"
            self.casts = {key: value for key, value in self.casts.items() if key != kind}
            if named.get("enabled", True):
                self.casts = {**self.casts, kind: cast}
                which = "" if kind == "cpu" else f" and leaves tensors that are not on {kind} as they are"
                self.notes[f"`autocast` casts here what it casts on a CPU{which}."] = None

    def _try(self, node: ast.Try) -> None:
        try:
            self._body(node.body)
        except (Refused, PythonError) as caught:
            problem: Any = caught.problem if isinstance(caught, Refused) else caught
            kind = problem.kind if isinstance(problem, PythonError) else type(problem).__name__
            handler = next((h for h in node.handlers if _takes(h.type, problem, kind)), None)
            if handler is None:
                raise
            name = handler.name or kind
            message = next(iter(str(problem).strip().splitlines()), "")[:200]
            self.facts.append(Fact(self.line, f"caught as `{name}`", f"{kind}: {message}"))
            if handler.name:
                self._set(handler.name, problem)
            self._body(handler.body)
        else:
            self._body(node.orelse)
        self._body(node.finalbody)

    def _loop(self, node: ast.For) -> None:
        if node.orelse:
            raise ExpressionError(f"{self.quote(node)}: a loop has names for its items and no `else`.")
        for item in self.rounds(node.iter):
            self.bind(node.target, item, node)
            self.held.append(item) if isinstance(item, Ref) else None
            try:
                self._body(node.body)
            except _Again:
                continue
            except _Left:
                break

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name, (module, last) in read_import(node).items():
            found = Module(module) if not last else (self.layer(last) if module in ("nn", "torch.optim") else None)
            self._set(name, found or Named(module, last))

    def body_of(self, node: ast.FunctionDef) -> Any:
        try:
            self._body(node.body)
        except _Return as left:
            return left.value
        return None

    def _define(self, node: ast.FunctionDef) -> None:
        if node.name in HELPERS:
            return
        for decorator in node.decorator_list:
            text = ast.unparse(decorator)
            if text.removesuffix("()") not in ("torch.compile", "torch.jit.script", "torch.no_grad", "jaxtyped"):
                raise ExpressionError(f"`@{text[:60]}` is not understood here; leave it away.")
            self.notes[f"`@{text[:40]}` is left out: it changes no shape."] = None
        function = self.function(node)
        self._set(node.name, function)
        if node.name in self.alone and len(self.open) == 0:
            self._run_alone(function, [])

    def _class(self, node: ast.ClassDef) -> None:
        made = self.class_of(node)
        self._set(node.name, made)
        if node.name not in self.alone or self.open:
            return
        forward, start = made.find("forward"), made.find("__init__")
        if not isinstance(forward, Function):
            return
        given = self._known(start, True) if isinstance(start, Function) else {}
        at = node.lineno, node.col_offset
        name = ast.Name(node.name, ast.Load(), lineno=at[0], col_offset=at[1], end_lineno=at[0], end_col_offset=at[1])
        instance = self.apply(made, [], given, name)
        self._set(node.name, instance)
        self._run_alone(forward, [instance])

    def _known(self, function: Function, bound: bool) -> dict[str, Any]:
        """What the names of a program give the parameters of a function that nothing calls."""
        spec, names = function.node.args, self.frame.names
        every = [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)][bound:]
        known = {name: names[name] for name in every if name in names}
        return {name: value for name, value in known.items() if name not in function.defaults or isinstance(value, Ref)}

    def _run_alone(self, function: Function, first: list[Any]) -> None:
        """Run a function that nothing calls where it stands."""
        definition = cast(ast.FunctionDef, function.node)
        names = {**function.defaults, **self._known(function, bool(first))}
        spec = definition.args
        every = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        names |= dict(zip(every, first, strict=False))
        if "self" in self.frame.names or every[:1] == ["self"]:
            names.setdefault("self", self.frame.names.get("self"))
        missing = [name for name in every if name not in names]
        if missing:
            return
        with self.inside(Frame(names, self.frame)):
            self.open.append((function, first[0] if first else None))
            try:
                self._checked(spec, names)
                self._body(definition.body)
            except _Return as left:
                self._returned(left)
            finally:
                self.open.pop()

    def _returned(self, left: _Return) -> None:
        """Show what a function that nothing calls, or the program, returns."""
        node, value = left.node.value, left.value
        if isinstance(node, ast.Tuple | ast.List) and isinstance(value, tuple | list):
            for item, part in zip(node.elts, cast("Sequence[Any]", value), strict=False):
                self._result(item, part, self.machine.last())
        elif node is not None and not isinstance(node, ast.Constant):
            self._result(node, value, self.machine.last())

    def _shown(self, node: ast.expr) -> None:
        """A line that is an expression."""
        match node:
            case ast.Call(func=ast.Name(id="print" | "display" | "text" as name)) if self.frame.find(name) is None:
                self._print(node.args, node)
                return
            case _:
                pass
        before = self.machine.last()
        self._result(node, self.value(node), before)

    def _result(self, node: ast.expr, value: Any, before: int) -> None:
        """Show a value: a tensor as a step, anything else as a fact."""
        if isinstance(value, Ref):
            if value.number <= before and (value.number != self.machine.last() or not isinstance(node, ast.Name)):
                self._alias(value, node, "")
        elif isinstance(value, Instance | Function | Class | Named) or (value is None and isinstance(node, ast.Call)):
            return
        elif isinstance(value, tuple | list) and any(isinstance(item, Ref) for item in cast("list[Any]", value)):
            for item in cast("list[Any]", value):
                if isinstance(item, Ref) and item.number <= before:
                    self._alias(item, node, "", self.called(item.number))
        elif isinstance(value, Storage):
            raise ExpressionError(f"{self.quote(node)}: a storage is no tensor; ask its data_ptr() or nbytes().")
        else:
            self.facts.append(Fact(self.line, self.segment(node), self.shown(value)))

    def _aside(self, answer: Callable[[], Any]) -> Any:
        """What ``answer`` gives; the steps that it takes are no part of the program, unless one writes or fails."""
        mark: Any = self.machine.mark()
        try:
            return answer()
        except Refused:
            mark = None
            raise
        finally:
            if mark is not None:
                self.machine.back(mark)

    def _assert(self, test: ast.expr, node: ast.Assert) -> None:
        """Worked out, and shown with ✓ or ✗; the lines after it run either way."""
        holds: bool | None = None
        values = ""
        try:
            before = self.machine.last()
            holds = self._aside(lambda: self.truth(test))
            if not holds and self.machine.last() == before and isinstance(test, ast.Compare) and len(test.ops) == 1:
                values = self._aside(lambda: f"it is {self.shown(self.value(test.left))}")
        except TooLargeError as problem:
            if not self.machine.counted:
                raise  # and all runs again, on tensors that are only counted
            values = f"not worked out: {problem}"
        except ExpressionError as problem:
            values = f"not worked out: {problem}" if holds is None else ""
        self.facts.append(Fact(self.line, f"assert {self.segment(test)}", values, holds))

    def _print(self, args: Sequence[ast.expr], node: ast.expr) -> None:
        parts: list[str] = []
        for arg in args:
            try:
                parts.append(self._aside(lambda arg=arg: self.shown(self.value(arg))))
            except ExpressionError as problem:
                if isinstance(problem, TooLargeError) and not self.machine.counted:
                    raise
                parts.append(f"{self.segment(arg)[:40]} (not worked out)")
        self.facts.append(Fact(self.line, self.segment(node), " ".join(parts)))


def _takes(kind: ast.expr | None, problem: Exception, name: str) -> bool:
    """Whether ``except kind`` takes what torch or Python raised."""
    if kind is None:
        return True
    names = {ast.unparse(item) for item in (kind.elts if isinstance(kind, ast.Tuple) else [kind])}
    return bool({name, "Exception", *(cls.__name__ for cls in type(problem).__mro__)} & names)
