"""Real code made plain: the body of one function, bodies under ``with``, loops and ``map`` become simple lines.

Works on the syntax tree before it is read. Nodes keep their places, so every step still quotes what was typed.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeVar, cast

from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.imports import read_import
from core.tensors.parsing.text import check_lines
from core.tensors.parsing.unrolled import numbers_of, opened

_Node = TypeVar("_Node", bound="ast.stmt | ast.expr")

_BODIES: Mapping[str, str] = {
    "no_grad": "",
    "inference_mode": "",
    "enable_grad": "gradients are kept unless torch.no_grad() says otherwise",
    "set_grad_enabled": "gradients are kept unless torch.no_grad() says otherwise",
    "autocast": "dtypes stay as they are typed",
}
"""Context managers of torch whose body is run, and what is said of leaving them out."""


@dataclass(frozen=True, slots=True)
class Plain:
    """The statements of a program, one after the other, and what was left out on the way.

    problem: the line of the first one that is not understood, and what is said of it; `statements` ends before it.
    """

    statements: tuple[ast.stmt, ...]
    notes: tuple[str, ...]
    problem: tuple[int, ExpressionError] | None = None


def plain(module: ast.Module) -> Plain:
    """The lines of ``module`` without imports, functions and ``return``, up to the first that is not understood."""
    result = _Plainer()
    problem: tuple[int, ExpressionError] | None = None
    try:
        result.lines(module.body)
    except ExpressionError as refusal:
        problem = (result.at, refusal)
    return Plain(tuple(result.statements), tuple(result.notes), problem)


def names_set(node: ast.AST) -> set[str]:
    """Every name that ``node`` assigns anywhere."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _names_read(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def _quote(node: ast.AST) -> str:
    return f"`{ast.unparse(node).splitlines()[0][:60]}`"


class _Plainer:
    def __init__(self) -> None:
        self.statements: list[ast.stmt] = []
        self.notes: dict[str, None] = {}
        self.longer: dict[str, str] = {}
        """Names that an import gave, and what they stand for: ``sqrt`` for ``math.sqrt``."""
        self.functions: dict[str, ast.FunctionDef] = {}
        self.called: set[str] = set()
        """Functions that another line calls; the others run where they stand."""
        self.depth = 0
        """How many calls are being written out, one inside the other."""
        self.results = 0
        self.local: set[str] = set()
        """Names that the function, already run, kept to itself."""
        self.target: list[ast.expr] | None = None
        """What the function's result is assigned to while its body is read."""
        self.ended = False
        self.nested = 0
        """How many branches or loops are open."""
        self.at = 1
        """The line that is being read."""

    def lines(self, body: Sequence[ast.stmt]) -> None:
        """All statements of the program; see `plain`."""
        for statement in body:
            if isinstance(statement, ast.FunctionDef):
                self._define(statement, body)
        self._body(body)

    def _body(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if self.ended:
                raise ExpressionError(
                    f"{_quote(statement)} stands after `return`, so it would never run; leave it away."
                )
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if not self.nested:
            self.at = node.lineno
        match node:
            case ast.Import() | ast.ImportFrom():
                self.longer.update(read_import(node))
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.With():
                self._with(node)
            case ast.For():
                self._loop(node)
            case ast.If() | ast.Try():
                self._branches(node)
            case ast.FunctionDef():
                if node.name not in self.called:
                    self._given_by_name(node)
                    self._annotated(node)
                    self._run(node)
            case ast.Return(value=value):
                self._return(node, value)
                self.ended = True
            case _ if calls := self._calls(node):
                call = calls[0]
                whole = isinstance(node, ast.Expr | ast.Assign) and node.value is call
                if whole:
                    self._run_called(node, self.functions[cast(ast.Name, call.func).id], call)
                else:
                    self._outlined(node, call)
            case _:
                self._line(node)

    def _line(self, node: ast.stmt) -> None:
        """A statement that stays: names from imports in full, comprehensions written out."""
        parts = self.local & _names_read(node)
        if parts:
            name = min(parts)
            raise ExpressionError(
                f"{_quote(node)}: `{name[:40]}` belongs to the function; what it returns is all that is left after it."
            )
        self.local -= names_set(node)
        check_lines(len(self.statements) // 4)
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and _is_name(part.value, "self"):
                raise ExpressionError(_no_attribute(part, node))
        self.statements += opened(node, self.longer)

    # -------------------------------------------------------------------------------------------- blocks

    def _with(self, node: ast.With) -> None:
        for item in node.items:
            name = _manager(item.context_expr)
            if name is None or item.optional_vars is not None:
                accepted = ", ".join(f"torch.{known}" for known in _BODIES)
                raise ExpressionError(f"`with {ast.unparse(item)[:60]}`: of `with`, only {accepted} are understood.")
            if why := _BODIES[name]:
                self.notes[f"`{name}` is left out: {why}."] = None
        stops = any(_manager(item.context_expr) in ("no_grad", "inference_mode") for item in node.items)
        if not stops:
            self._body(node.body)
            return
        before, self.statements = self.statements, []
        self._body(node.body)
        self.statements = [*before, ast.copy_location(ast.With(node.items, self.statements), node)]

    def _branches(self, node: ast.If | ast.Try) -> None:
        """``if`` and ``try`` stay: which of their lines run is known once those before them have."""
        bodies = [node.body, node.orelse]
        if isinstance(node, ast.Try):
            bodies += [node.finalbody, *(handler.body for handler in node.handlers)]
        before, ended = self.statements, self.ended
        for body in bodies:
            self.statements, self.ended = [], False
            self.nested += 1
            self._body(body)
            self.nested -= 1
            if self.ended:  # by `return`
                if self.depth:
                    raise ExpressionError(f"{_quote(node)}: `return` in a branch of a called function is not followed.")
                self.statements.append(ast.copy_location(ast.Break(), node))
            body[:] = self.statements
        self.statements, self.ended = before, ended
        self.statements.append(node)

    def _loop(self, node: ast.For) -> None:
        """A loop over numbers, its lines once for each; any other is left to who knows what it goes over."""
        numbers = numbers_of(node.iter)
        if numbers is None or not isinstance(node.target, ast.Name) or node.orelse:
            if node.orelse or not isinstance(node.target, ast.Name | ast.Tuple):
                raise ExpressionError(f"{_quote(node)}: a loop has names for its items and no `else`.")
            before, self.statements = self.statements, []
            self._body(node.body)
            node.body[:] = self.statements
            self.statements = [*before, node]
            return
        for number in numbers:
            self._bind([(node.target.id, number)], node)
            self._body([deepcopy(statement) for statement in node.body])
            check_lines(len(self.statements))

    def _return(self, node: ast.Return, value: ast.expr | None) -> None:
        if self.target is not None:
            if value is None:
                raise ExpressionError(f"{_quote(node)}: the function gives nothing that could be assigned.")
            self._statement(ast.copy_location(ast.Assign(self.target, value), node))
        elif isinstance(value, ast.Tuple | ast.List):
            for item in value.elts:
                self._line(ast.copy_location(ast.Expr(item), item))
        elif value is not None and not isinstance(value, ast.Constant):
            self._line(ast.copy_location(ast.Expr(value), node))

    def _define(self, node: ast.FunctionDef, body: Sequence[ast.stmt]) -> None:
        for decorator in node.decorator_list:
            if _manager(decorator) is None and ast.unparse(decorator) not in ("torch.compile", "torch.jit.script"):
                raise ExpressionError(f"`@{ast.unparse(decorator)[:60]}` is not understood here; leave it away.")
            self.notes[f"`@{ast.unparse(decorator)[:40]}` is left out: it changes no shape."] = None
        self.functions[node.name] = node
        if any(
            isinstance(part, ast.Call) and _is_name(part.func, node.name)
            for statement in body
            if statement is not node
            for part in ast.walk(statement)
        ):
            self.called.add(node.name)

    def _calls(self, node: ast.stmt) -> list[ast.Call]:
        """The calls of functions defined here that stand in ``node``, inner ones first."""
        found = [
            part
            for part in ast.walk(node)
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in self.functions
        ]
        return found[::-1]

    def _outlined(self, node: ast.stmt, call: ast.Call) -> None:
        """A call inside a longer statement: its result first, under a name of its own, then the statement."""
        self.results += 1
        function = cast(ast.Name, call.func).id
        name = f"{function.strip('_')[:20] or 'result'}{self.results}"
        target = ast.copy_location(ast.Name(name, ast.Store()), call)
        self._statement(ast.copy_location(ast.Assign([target], deepcopy(call)), call))
        self._statement(cast(ast.stmt, _Replaced(call, name).visit(node)))

    def _run(self, node: ast.FunctionDef) -> None:
        self._body([deepcopy(statement) for statement in node.body])
        self.ended = False
        self.target = None

    def _run_called(self, node: ast.stmt, function: ast.FunctionDef, call: ast.Call) -> None:
        """The function's lines at the place of its call, with its parameters bound first."""
        match node:
            case ast.Expr(value=value) if value is call:
                target = None
            case ast.Assign(targets=targets, value=value) if value is call:
                target = targets
            case _:
                raise ExpressionError(f"{_quote(node)}: write y = {function.name[:40]}(x) on a line of its own.")
        if self.depth >= _DEEPEST:
            raise ExpressionError(f"{_quote(call)}: calls inside one another are followed {_DEEPEST} deep.")
        given = _arguments(function, call)
        pairs = [(name, value) for name, value in given.items() if not _is_name(value, name)]
        self._bind(pairs, call)
        before, outer = len(self.statements), self.target
        self._annotated(function)
        self.depth += 1
        self.target = target
        self._run(function)
        self.depth -= 1
        self.target = outer
        if target is not None and (len(self.statements) == before or not isinstance(self.statements[-1], ast.Assign)):
            raise ExpressionError(f"{_quote(node)}: `{function.name[:40]}` has no `return` at its end.")
        own = names_set(ast.Module(function.body, [])) | set(given)
        self.local = own - (names_set(node) if target is not None else set())

    def _given_by_name(self, node: ast.FunctionDef) -> None:
        """Parameters of a function that nobody calls: names from earlier lines, and defaults; the others are asked."""
        known = {"x"}.union(*(names_set(statement) for statement in self.statements))
        pairs = [(name, value) for name, value in _defaults(node).items() if name not in known]
        self._bind([pair for pair in pairs if not (isinstance(pair[1], ast.Constant) and pair[1].value is None)], node)

    def _annotated(self, node: ast.FunctionDef) -> None:
        """What annotations say of the shapes of parameters, to be checked."""
        for parameter in _all_parameters(node):
            if isinstance(parameter.annotation, ast.Subscript):
                name = ast.copy_location(ast.Name(parameter.arg, ast.Store()), parameter)
                checked = ast.AnnAssign(target=name, annotation=parameter.annotation, value=None, simple=1)
                self.statements.append(ast.copy_location(checked, parameter))

    def _bind(self, pairs: Sequence[tuple[str, ast.expr]], at: ast.stmt | ast.expr) -> None:
        """Parameters take their values all at once, as Python binds them."""
        if not pairs:
            return
        names: list[ast.expr] = [_placed(ast.Name(name, ast.Store()), at) for name, _ in pairs]
        values = [value for _, value in pairs]
        target = names[0] if len(names) == 1 else _placed(ast.Tuple(names, ast.Store()), at)
        value = values[0] if len(names) == 1 else _placed(ast.Tuple(values, ast.Load()), at)
        self._line(_placed(ast.Assign([target], value), at))


_DEEPEST = 4


class _Replaced(ast.NodeTransformer):
    """Puts a name in the place of one call."""

    def __init__(self, call: ast.Call, name: str) -> None:
        self.call = call
        self.name = name

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if node is self.call:
            return ast.copy_location(ast.Name(self.name, ast.Load()), node)
        return self.generic_visit(node)


def _placed(node: _Node, at: ast.stmt | ast.expr) -> _Node:
    """``node``, which nobody typed, with no width at the place of ``at``."""
    node.lineno = node.end_lineno = at.lineno
    node.col_offset = node.end_col_offset = at.col_offset
    return node


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _no_attribute(node: ast.Attribute, line: ast.AST) -> str:
    """What to say of ``self.n_head`` and ``self.q_proj(x)``."""
    name = node.attr[:40]
    called = any(isinstance(part, ast.Call) and part.func is node for part in ast.walk(line))
    instead = (
        f"write what the layer computes, x @ {name}, with {name} = torch.ones(3, 4) on a line before"
        if called
        else f"give it on a line before, as a number, {name} = 12, or as a tensor, {name} = torch.ones(3, 4), and "
        f"write {name} for it"
    )
    return f"`self.{name}`: there is no self here; {instead}."


def _manager(node: ast.expr) -> str | None:
    """Which of `_BODIES` is called here, however it is reached: torch.no_grad(), torch.amp.autocast('cuda')."""
    path = ast.unparse(node.func if isinstance(node, ast.Call) else node).split(".")
    return path[-1] if path[-1] in _BODIES and path[0] in ("torch", "autocast") else None


def _all_parameters(node: ast.FunctionDef) -> list[ast.arg]:
    given = [*node.args.posonlyargs, *node.args.args]
    return [*(given[1:] if given and given[0].arg == "self" else given), *node.args.kwonlyargs]


def _parameters(node: ast.FunctionDef) -> list[str]:
    return [parameter.arg for parameter in _all_parameters(node)]


def _defaults(node: ast.FunctionDef) -> dict[str, ast.expr]:
    """The values that parameters have where nothing is given."""
    given = [*node.args.posonlyargs, *node.args.args]
    last = given[len(given) - len(node.args.defaults) :]
    by_name = {parameter.arg: value for parameter, value in zip(last, node.args.defaults, strict=True)}
    named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return by_name | {parameter.arg: value for parameter, value in named if value is not None}


def _arguments(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr]:
    """What a call gives each parameter. Raises `ExpressionError` where something lacks or is left over."""
    names = _parameters(function)
    text = f"{_quote(call)}: `{function.name[:40]}` takes {', '.join(names)}"
    if len(call.args) > len(names) or any(isinstance(value, ast.Starred) for value in call.args):
        raise ExpressionError(f"{text}; give each of them one value.")
    given = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg not in names or keyword.arg in given:
            raise ExpressionError(f"{text}, each once.")
        given[keyword.arg] = keyword.value
    by_name = _defaults(function) | given
    missing = [name for name in names if name not in by_name]
    if missing:
        raise ExpressionError(f"{text}; `{missing[0][:40]}` is not given.")
    return {name: by_name[name] for name in names}
