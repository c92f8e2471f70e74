"""A program as Python runs it here: its syntax tree with marks after statements, and the text that belongs to a call.

A mark tells the recorder which names stand for what. Marks are calls placed into the tree; tracing Python instead
would keep the values of local names alive, and so falsify how long memory lives.
"""

from __future__ import annotations
import __future__

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import TypeAlias

FILE = "<program>"
"""The file name of the program's code objects, by which its frames are told from those of libraries."""

SPLIT = "#: program"
"""The line between what is given and the program itself."""

Place: TypeAlias = tuple[int, int, int, int]

BIND, SHOW, SAY, TEST, ASIDE = "__bind__", "__show__", "__say__", "__test__", "__aside__"
CAUGHT, TURN = "__caught__", "__turn__"
"""Names of the marks."""

_TYPING = ("jaxtyping", "torchtyping", "beartype")
"""Libraries whose annotations say shapes; nothing of them runs."""

_MODULES = ("torch", "F", "nn", "functional", "einops", "np", "numpy", "math", "init")


@dataclass(frozen=True, slots=True)
class CallText:
    """How a call is written. source: what it adds to its line; expression: the text up to its end.

    form: how it is written (``method``, ``torch``, ``F``, ``init``, ``bare``, ``property``, ``index``, ``binary``,
    ``unary``, ``write``, ``name``); symbol: its operator. place: of the call. pick: which of several results is taken
    at once, by its number or its name. owner: the name that it is written with, of what it works on.
    """

    source: str
    expression: str
    form: str
    line: int
    name: str = ""
    symbol: str = ""
    place: Place = (0, 0, 0, 0)
    pick: int | str | None = None
    owner: str = ""


NOWHERE = CallText("", "", "name", 0)
"""Of what no call gave."""


def place_of(node: ast.AST) -> Place:
    """Return first line and column, last line and column, as instructions have them."""
    numbers = (getattr(node, name, 0) or 0 for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
    first, column, last, end = numbers
    return first, column, last, end


class Program:
    """The text, its compiled code, and the expression at each place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = [line.encode() for line in text.split("\n")]
        tree = ast.parse(text, FILE)
        self.nodes: dict[Place, ast.AST] = {}
        self.updated: dict[Place, Place] = {}
        """Where square brackets are updated, ``x[0] += 1``, and the place of that update."""
        self.picks: dict[Place, tuple[int | str, ast.expr]] = {}
        """Where one of several results is taken of a call."""
        for node in ast.walk(tree):
            if isinstance(node, ast.expr | ast.AugAssign):
                self.nodes.setdefault(place_of(node), node)
            match node:
                case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int() as pick)):
                    self.picks[place_of(call)] = (pick, node)
                case ast.Attribute(value=ast.Call() as call, attr="values" | "indices" as pick):
                    self.picks[place_of(call)] = (pick, node)
                case _:
                    pass
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
                self.updated[place_of(node.target)] = place_of(node)
        marked = ast.fix_missing_locations(_Marks(self).visit(tree))
        self.code = compile(marked, FILE, "exec", __future__.annotations.compiler_flag, dont_inherit=True)
        self._places: dict[CodeType, list[Place]] = {}
        self._written: dict[tuple[Place, str], CallText] = {}

    def place(self, code: CodeType, instruction: int) -> Place:
        """Return the place in the text of an instruction of one of the program's code objects."""
        places = self._places.get(code)
        if places is None:
            places = [(a or 0, c or 0, b or 0, d or 0) for a, b, c, d in code.co_positions()]
            self._places[code] = places
        return places[instruction // 2]

    def segment(self, first: int, column: int, last: int, end: int) -> str:
        """Return the text between two places."""
        if first == last:
            return self.lines[first - 1][column:end].decode(errors="replace")
        inner = [line.decode() for line in self.lines[first : last - 1]]
        head, tail = self.lines[first - 1][column:], self.lines[last - 1][:end]
        return "\n".join([head.decode(errors="replace"), *inner, tail.decode(errors="replace")])

    def text_of(self, node: ast.AST) -> str:
        return self.segment(*place_of(node))

    def written(self, place: Place, writes: str = "") -> CallText:
        """Return how the call at ``place`` is written.

        writes: ``=`` where it assigns through square brackets, ``right`` where the result so far is the right operand.
        """
        found = self._written.get((place, writes))
        if found is None:
            found = self._written[place, writes] = replace(
                self._read(place, writes), place=place, owner=_owner(self.nodes.get(place))
            )
        return found

    def picked(self, written: CallText) -> CallText:
        """Return ``written`` with what takes one of its several results."""
        found = self.picks.get(written.place)
        if found is None:
            return written
        last, end = written.place[2:]
        rest = self.segment(last, end, found[1].end_lineno or last, found[1].end_col_offset or 0)
        return replace(written, source=written.source + rest, expression=written.expression + rest, pick=found[0])

    def _read(self, place: Place, writes: str) -> CallText:
        node = self.nodes.get(place)
        whole = self.segment(*place) if place[0] else ""
        first, _, last, end = place

        def after(owner: ast.expr) -> str:
            return self.segment(owner.end_lineno or first, owner.end_col_offset or 0, last, end).lstrip()

        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                path = _module(owner)
                if path is not None:
                    form = {"F": "F", "functional": "F", "init": "init", "einops": "bare"}.get(path, "torch")
                    return CallText(whole, whole, form, first, name)
                rest = after(owner)
                tail = f".{rest[rest.find('.') + 1 :].lstrip()}"
                return CallText(" ".join(tail.split()) if "\n" in tail else tail, whole, "method", first, name)
            case ast.Call(func=ast.Name(id=name)):
                return CallText(whole, whole, "bare", first, name)
            case ast.Attribute(attr=name):
                return CallText(f".{name}", whole, "property", first, name)
            case ast.Subscript(value=owner) if writes == "=":
                statement = self._statement(place, whole)
                return CallText(statement[len(self.text_of(owner)) :].lstrip(), statement, "write", first, "write", "=")
            case ast.Subscript(value=owner):
                rest = after(owner)
                return CallText(rest[rest.find("[") :], whole, "index", first, "indexing")
            case (
                ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op, *_], comparators=[right, *_])
            ):
                symbol = _symbol(op)
                if writes == "right" or isinstance(left, ast.Constant):
                    beside = self.segment(first, place[1], right.lineno, right.col_offset).rstrip(" (")
                else:
                    rest = after(left)
                    beside = rest[rest.find(symbol) :]
                return CallText(beside, whole, "binary", first, "", symbol)
            case ast.UnaryOp(op=op):
                return CallText(whole, whole, "unary", first, "", _symbol(op))
            case ast.AugAssign(target=target, op=op):
                owner = target.value if isinstance(target, ast.Subscript) else target
                return CallText(after(owner), whole, "write", first, "update", f"{_symbol(op)}=")
            case _:
                return CallText(whole, whole, "name", first)

    def _statement(self, place: Place, whole: str) -> str:
        """Return the text of an assignment through square brackets, on the line of its target."""
        rest = self.lines[place[2] - 1][place[3] :].decode(errors="replace")
        return f"{whole}{rest.split('#')[0].split(';')[0].rstrip()}"

    def reflected(self, place: Place, result: Place) -> bool:
        """Return whether what was computed at ``result`` is the right operand at ``place``."""
        node = self.nodes.get(place)
        return isinstance(node, ast.BinOp) and place_of(node.right) == result


def _owner(node: ast.AST | None) -> str:
    """Return the name that a call is written with, of what it works on."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) | ast.Call(args=[ast.Name(id=name), *_]):
            return name
        case (
            ast.Attribute(value=ast.Name(id=name))
            | ast.Subscript(value=ast.Name(id=name))
            | ast.BinOp(left=ast.Name(id=name))
            | ast.AugAssign(target=ast.Name(id=name))
            | ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name)))
        ):
            return name
        case _:
            return ""


def _module(node: ast.expr) -> str | None:
    """Return the last part of the module that ``node`` names, ``None`` where it names none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in _MODULES:
        return None
    return (parts or [node.id])[0]


def _symbol(op: ast.AST) -> str:
    """Return an operator as it is written."""
    a = ast.Name("a")
    match op:
        case ast.operator():
            node: ast.expr = ast.BinOp(a, op, a)
        case ast.cmpop():
            node = ast.Compare(a, [op], [a])
        case _:
            node = ast.UnaryOp(op, a)  # type: ignore[arg-type]
    return ast.unparse(node).strip("a ")


class _Marks(ast.NodeTransformer):
    """Places the marks. What is returned outside of a function is shown, and ends the program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def visit_Module(self, node: ast.Module) -> ast.Module:
        for number, statement in enumerate(node.body):
            if isinstance(statement, ast.Return):
                shown = [ast.copy_location(ast.Expr(statement.value), statement)] if statement.value else []
                node.body = [*node.body[:number], *shown]
                break
        self.generic_visit(node)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if (node.module or "").split(".")[0] in _TYPING else node

    def visit_Import(self, node: ast.Import) -> ast.stmt:
        node.names = [item for item in node.names if item.name.split(".")[0] not in _TYPING]
        return node if node.names else ast.copy_location(ast.Pass(), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        names = [name for target in node.targets for name in _names(target)]
        value = self.program.text_of(node.value)
        return [node, self._bind(node, names, value, _role(node.value))]

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        return [node, self._bind(node, _names(node.target))]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | list[ast.stmt]:
        if node.value is None:
            return node
        value = self.program.text_of(node.value)
        return [node, self._bind(node, _names(node.target), value, _role(node.value))]

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        gone = [ast.unparse(target) for target in node.targets]
        mark = self._bind(node, [])
        mark.value.keywords = [ast.keyword("gone", ast.Constant(tuple(gone)))]  # pyright: ignore
        return [node, mark]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        self.generic_visit(node)
        node.body.insert(0, self._bind(node, _names(node.target), self.program.text_of(node.iter), "plain"))
        return self._turned(node)

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        self.generic_visit(node)
        return self._turned(node)

    def _turned(self, node: ast.For | ast.While) -> list[ast.stmt]:
        """Return the loop with a mark where an iteration begins, and one behind it."""
        start, end = (
            ast.copy_location(
                ast.Expr(_at(ast.Call(_name(TURN), [ast.Constant(node.lineno), ast.Constant(ends)], []), node)), node
            )
            for ends in (False, True)
        )
        node.body.insert(0, start)
        return [node, end]

    def visit_With(self, node: ast.With) -> ast.With:
        self.generic_visit(node)
        names = [name for item in node.items if item.optional_vars for name in _names(item.optional_vars)]
        if names:
            node.body.insert(0, self._bind(node, names))
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        value = node.value
        if isinstance(value, ast.Constant | ast.Yield | ast.YieldFrom | ast.Await):
            return node
        line, text = ast.Constant(node.lineno), ast.Constant(self.program.text_of(value))
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("print", "display"):
            call = ast.Call(_name(SAY), [line, text, _called(ASIDE), *value.args], value.keywords)
        else:
            call = ast.Call(_name(SHOW), [line, text, value], [])
        return ast.copy_location(ast.Expr(_at(call, value)), node)

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        line, text = ast.Constant(node.lineno), ast.Constant(self.program.text_of(node.test))
        match node.test:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                inner, values = ast.Compare(_name("a"), [op], [_name("b")]), [left, right]
            case test:
                inner, values = _name("a"), [test]
        spec = ast.arguments([], [ast.arg("a"), ast.arg("b")], None, [], [], None, [ast.Constant(None)])
        call = ast.Call(_name(TEST), [line, text, _called(ASIDE), ast.Lambda(spec, inner), *values], [])
        node.test = _at(call, node.test)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        spec = node.args
        every = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
        names = [_name(item.arg) for item in every if item.arg not in ("self", "cls")]
        if names:
            node.body.insert(
                int(ast.get_docstring(node, clean=False) is not None), self._bind(node, names, role="parameter")
            )
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        self.generic_visit(node)
        mark = ast.Expr(_at(ast.Call(_name(CAUGHT), [ast.Constant(node.name or "")], []), node))
        node.body.insert(0, ast.copy_location(mark, node))
        return node

    def _bind(self, node: ast.stmt, names: Sequence[ast.expr], value: str = "", role: str = "") -> ast.Expr:
        texts: list[ast.expr | None] = [ast.Constant(ast.unparse(name)) for name in names]
        given = ast.Dict(texts, list(names))
        args: list[ast.expr] = [ast.Constant(node.lineno), given, ast.Constant(value), ast.Constant(role)]
        mark = ast.Expr(_at(ast.Call(_name(BIND), args, []), node))
        return ast.copy_location(mark, node)


def _role(node: ast.expr) -> str:
    """Return whether a value is a ``name``, or ``plain``: written out."""
    if isinstance(node, ast.Name | ast.Attribute):
        return "name"
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return "plain" if isinstance(inner, ast.Constant | ast.List | ast.Dict | ast.Tuple) else ""


def _name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def _called(text: str) -> ast.Call:
    return ast.Call(_name(text), [], [])


def _at(call: ast.Call, node: ast.AST) -> ast.Call:
    """Return ``call`` and its own parts at a place without columns, so that they are not taken for the program's
    own."""
    line = getattr(node, "lineno", 1)
    for part in (call, call.func, *call.args):
        if not hasattr(part, "lineno"):
            for inner in ast.walk(part):
                if not hasattr(inner, "lineno"):
                    inner.lineno = inner.end_lineno = line  # pyright: ignore[reportAttributeAccessIssue]
                    inner.col_offset = inner.end_col_offset = 0  # pyright: ignore[reportAttributeAccessIssue]
    return call


def _names(target: ast.expr) -> list[ast.expr]:
    """Return the names that an assignment binds, to be read after it."""
    match target:
        case ast.Name(id=name):
            return [_name(name)]
        case ast.Attribute(value=owner) if _is_path(owner):
            return [ast.Attribute(owner, target.attr, ast.Load())]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [name for part in parts for name in _names(part)]
        case ast.Starred(value=value):
            return _names(value)
        case _:
            return []


def _is_path(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_path(node.value))
