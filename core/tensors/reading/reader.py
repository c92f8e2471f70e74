"""Reads up to twelve lines on ``x`` into a plan of single operations. Nothing is evaluated and torch is not needed.

The text is capped *before* Python's parser sees it (`core.tensors.reading.text`), the syntax tree before it is walked;
what an expression may hold is said in `core.tensors.reading.expressions`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from core.limits import limit
from core.tensors.reading.counts import SYMBOLS, CountKind, combined
from core.tensors.reading.expressions import ExpressionReader
from core.tensors.reading.operations import OPERATIONS, REFUSED
from core.tensors.reading.plan import Plan, PlanStep
from core.tensors.reading.table import NAMING, PIECE, UPDATING, WRITING
from core.tensors.reading.text import EXAMPLE, check_lines, code_of, tidy
from core.tensors.reading.values import MODULES, Asked, Count, ExpressionError, Index, Slot


def read_expression(text: str) -> Plan:
    """Parse ``text``, up to twelve lines, into a `Plan`.

    Understands chains of operations on ``x``, operators, functions of torch and einops, names that a line assigns
    (``y = x.t()``, ``q, k, v = x.chunk(3)``), writes (``x[0] = 1``, ``y += 1``), numbers (``n = x.size(0)``,
    ``b, n, d = x.shape``), comments, docstrings, and imports of what is there anyway; lines that only print or assert
    are skipped, unread. Raises `ExpressionError`, and nothing else,
    for anything it does not understand.
    """
    tidied = tidy(text)
    plan = _Reader(code_of(tidied)).read()
    return replace(plan, text=tidied)


_IMPORTS = (
    ("torch", "torch"),
    ("einops", "einops"),
    ("torch.nn.functional", "F"),
)
"""Modules as they may be imported, and the names they have here."""

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


_BLOCK = re.compile(r"^(async|class|def|elif|else|except|finally|for|if|match|try|while|with)\b[^\n]*:", re.MULTILINE)
"""A line that heads a block; its lines have lost their indentation by then."""


def _no_statement(text: str) -> str:
    """What to say of a statement that is neither an expression nor an assignment."""
    return (
        f"`{text.splitlines()[0][:60]}`: expressions on x and assignments are run here, line after line, and no other "
        f"statement: no loop, branch or function. Write out the lines that x goes through. For example: {EXAMPLE}."
    )


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
                case ast.Import() | ast.ImportFrom():
                    self._import(statement)
                case _:
                    raise ExpressionError(_no_statement(self.segment(statement)))
        return Plan(self.text, tuple(self.steps), self.names, tuple(self.asked))

    def _statements(self) -> list[ast.stmt]:
        try:
            module = ast.parse(self.text)  # parses only
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            block = _BLOCK.search(self.text)
            if block:
                raise ExpressionError(_no_statement(block[0])) from None
            reason = problem.msg if isinstance(problem, SyntaxError) else "nested too deeply"
            raise ExpressionError(f"This is not a complete expression: {reason}. For example: {EXAMPLE}.") from None
        _check_tree(module)
        check_lines(sum(not isinstance(statement, ast.Import | ast.ImportFrom) for statement in module.body))
        return module.body

    # ----------------------------------------------------------------------------------------- statements

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Only what expressions can name anyway, under the name it has here; nothing is imported."""
        module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            path, name = f"{module}{alias.name}", alias.asname or alias.name
            einops = path.removeprefix("einops.") if path.startswith("einops.") else ""
            if (path, name) in _IMPORTS or (name == einops and ("bare", einops) in OPERATIONS):
                continue
            raise ExpressionError(
                f"{self.quote(node)}: only torch, einops and torch.nn.functional as F are there, under these names."
            )

    def _name_count(
        self, name: str, node: ast.Assign | ast.AugAssign, kind: CountKind | None, found: Count | None
    ) -> None:
        if kind is None or found is None:
            raise ExpressionError(f"{self.quote(node)}: `{name[:40]}` is a number here, and this is none.")
        self._rename(name, node)
        self.bind_count(name, found, kind)

    def _rename(self, name: str, node: ast.Assign | ast.AugAssign) -> None:
        """Take ``name`` for a number; whatever tensor it stood for keeps its step."""
        self._check_name(name)
        if name == "x":
            raise ExpressionError(f"{self.quote(node)}: x is the tensor; give the number another name, n = 3.")
        if self.names.pop(name, None) is not None:
            self.steps[-1] = replace(self.steps[-1], forgets=(*self.steps[-1].forgets, name))

    def _show(self, node: ast.Name) -> None:
        """A line that is only a name: shown as a step, unless that is what the step before has just shown."""
        number = self.named(node)
        if number != len(self.steps):
            self._alias(number, node, node.id)

    def _alias(self, number: int, node: ast.expr | ast.stmt, name: str, shown: str = "") -> None:
        shown = shown or self.segment(node)
        added = self.add(PlanStep(NAMING, "name", (number,), shown, shown, node.lineno, name=name))
        self._bind_tensor(name, added)
        if number in self.bundles:
            self.bundles.add(added)

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise ExpressionError("One name per assignment; write y = x.t() and z = y as two lines.")
        match node.targets[0]:
            case ast.Name(id=name):
                self._check_name(name)
                if self.kind(node.value) is not None:
                    self._name_count(name, node, self.kind(node.value), self.count(node.value))
                elif isinstance(node.value, ast.Name):
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

    def _bind_tensor(self, name: str, number: int) -> None:
        self.names[name] = number
        self.kinds.pop(name, None)

    def _bind(self, name: str, number: int) -> None:
        self._bind_tensor(name, number)
        self.steps[number - 1] = replace(self.steps[number - 1], name=name)

    def _unpack(self, elements: Sequence[ast.expr], node: ast.Assign) -> None:
        opened = [element.value if isinstance(element, ast.Starred) else element for element in elements]
        names = [element.id for element in opened if isinstance(element, ast.Name)]
        stars = [place for place, element in enumerate(elements) if isinstance(element, ast.Starred)]
        if len(names) != len(elements) or not names or len(stars) > 1:
            raise ExpressionError("Unpack into names, for example y, z = x.chunk(2).")
        for name in names:
            self._check_name(name)
        if self.kind(node.value) == "sizes":
            self._unpack_sizes(names, next(iter(stars), None), node)
            return
        if stars:
            raise ExpressionError(
                f"{self.quote(node)}: Unpack into names; one with a star takes sizes, b, *rest = x.shape."
            )
        if isinstance(node.value, ast.Tuple | ast.List):
            self._bind_each(names, node.value.elts, node)
            return
        number = self.named(node.value) if isinstance(node.value, ast.Name) else self.result(node.value)
        if number not in self.bundles:
            raise ExpressionError("Only several tensors can be unpacked, for example y, z = x.chunk(2).")
        self.steps[number - 1] = replace(self.steps[number - 1], unpack=len(names))
        shown = self.segment(node.value)
        for piece, name in enumerate(names):
            step = PlanStep(PIECE, "piece", (number,), name, f"{shown}[{piece}]", node.lineno, pick=piece, name=name)
            self._bind_tensor(name, self.add(step))

    def _bind_each(self, names: Sequence[str], values: Sequence[ast.expr], node: ast.Assign) -> None:
        """``q, k = x[0], x[1]``: every value first, as Python does, then every name."""
        if len(names) != len(values):
            raise ExpressionError(f"{self.quote(node)}: {len(names)} names for {len(values)} values.")
        read: list[tuple[CountKind | None, Count | None]] = [(self.kind(value), self.count(value)) for value in values]
        made = [None if kind else self.result(value) for value, (kind, _) in zip(values, read, strict=True)]
        for name, value, (kind, found), number in zip(names, values, read, made, strict=True):
            if number is None:
                self._name_count(name, node, kind, found)
            elif isinstance(value, ast.Name):
                self._alias(number, node, name, f"{name} = {value.id}")
            else:
                self._bind(name, number)

    def _unpack_sizes(self, names: Sequence[str], star: int | None, node: ast.Assign) -> None:
        """``b, *rest, d = x.shape``: the sizes as one count, the names as its items."""
        text = self.segment(node)
        sizes = combined("unpack", [self.count(node.value), len(names), star], text, several=True)
        if isinstance(sizes, Asked):
            self.asked.append(sizes)
            sizes = replace(sizes, what="name", parts=(), step=len(self.asked) - 1)
        for place, name in enumerate(names):
            self._rename(name, node)
            kind: CountKind = "sizes" if place == star else "number"
            self.bind_count(name, combined("item", [sizes, place], text, several=place == star), kind)

    def _check_name(self, name: str) -> None:
        most = limit("expression_name")
        if name != "_" and (len(name) > most or not _NAME.fullmatch(name) or "__" in name):
            raise ExpressionError(
                f"`{name[:40]}` cannot be a name here: a letter, then letters, digits and _, at most {most} in all."
            )
        if name in (*MODULES, "len") or ("bare", name) in OPERATIONS:
            raise ExpressionError(f"`{name}` is already the name of something else; call the tensor y or z.")

    def _update(self, node: ast.AugAssign) -> None:
        symbol = SYMBOLS.get(type(node.op), "")
        if not symbol:
            known = ", ".join(f"{known}=" for known in SYMBOLS.values())
            raise ExpressionError(f"{self.quote(node)}: {known} are understood.")
        if isinstance(node.target, ast.Attribute):
            raise ExpressionError(f"{self.quote(node)}: only a name or square brackets can be written to.")
        if isinstance(node.target, ast.Name) and node.target.id in self.kinds:
            value = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            self._name_count(node.target.id, node, self.kind(value), self.count(value))
            return
        self._write(node.target, node.value, f"{symbol}=", node)

    def _write(self, target: ast.Name | ast.Subscript, value: ast.expr, symbol: str, node: ast.stmt) -> None:
        base = self.tensor(target if isinstance(target, ast.Name) else target.value)
        inputs = [base]
        index: Index | None = None
        shown = f" {symbol} {self.segment(value)}"
        if isinstance(target, ast.Subscript):
            index = self.index(target, inputs)
            shown = self.brackets(target) + shown
        found = self.count(value) if self.kind(value) == "number" else None
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
