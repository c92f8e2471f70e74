"""Reads lines on ``x`` into a plan of single operations. Nothing is evaluated and torch is not needed.

The text is capped *before* Python's parser sees it (`core.tensors.parsing.text`), the syntax tree before it is walked;
what an expression may hold is said in `core.tensors.parsing.expressions`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from core.limits import limit
from core.tensors.operations.lookup import OPERATIONS
from core.tensors.operations.table import NAMING, PIECE, UPDATING, WRITING
from core.tensors.operations.values import MODULES, Count, CountQuestion, ExpressionError, Index, Slot
from core.tensors.parsing.counts import SYMBOLS, CountKind
from core.tensors.parsing.evaluated import combined
from core.tensors.parsing.expressions import ExpressionReader
from core.tensors.parsing.numbers import BUILTINS
from core.tensors.parsing.plan import Plan, PlanStep
from core.tensors.parsing.simplified import plain
from core.tensors.parsing.syntax import no_statement, parsed
from core.tensors.parsing.text import check_lines, code_of, tidy


def read_expression(text: str) -> Plan:
    """Parse ``text`` into a `Plan`.

    Understands chains of operations on ``x``, operators, functions of torch and einops, names that a line assigns
    (``y = x.t()``, ``q, k, v = x.chunk(3)``), writes (``x[0] = 1``, ``y += 1``), numbers (``n = x.size(0)``,
    ``b, n, d = x.shape``), the body of one function or under ``torch.no_grad()``, comments, docstrings, and imports of
    what is there anyway; lines that only print or assert are skipped, unread. Raises `ExpressionError`, and nothing
    else, for anything it does not understand.
    """
    tidied = tidy(text)
    plan = _Reader(code_of(tidied)).read()
    return replace(plan, text=tidied)


_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_NAMED_LITERALS = ("dtype", "format", "text", "bool", "none", "device")
"""Kinds of values besides numbers and tensors that a name may stand for."""


class _Reader(ExpressionReader):
    """Walks the lines: assignments, writes, and expressions whose result is shown."""

    def read(self) -> Plan:
        program = plain(parsed(self.text))
        check_lines(len(program.statements))
        for statement in program.statements:
            match statement:
                case ast.Expr(value=ast.Name() as name):
                    self._show(name)
                case ast.Expr(value=value):
                    self._value(value)
                case ast.Assign():
                    self._assign(statement)
                case ast.AugAssign():
                    self._update(statement)
                case _:
                    raise ExpressionError(no_statement(self.segment(statement)))
        notes = (*program.notes, *self.notes)
        return Plan(self.text, tuple(self.steps), self.names, tuple(self.questions), notes)

    # ----------------------------------------------------------------------------------------- statements

    def _name_count(
        self, name: str, node: ast.Assign | ast.AugAssign, kind: CountKind | None, count: Count | None
    ) -> None:
        if kind is None or count is None:
            raise ExpressionError(f"{self.quote(node)}: `{name[:40]}` is a number here, and this is none.")
        self._rename(name, node)
        self.bind_count(name, count, kind)

    def _rename(self, name: str, node: ast.Assign | ast.AugAssign) -> None:
        """Take ``name`` for a number; whatever tensor it stood for keeps its step."""
        self._check_name(name)
        if name == "x":
            raise ExpressionError(f"{self.quote(node)}: x is the tensor; give the number another name, n = 3.")
        self._forget_others(name)
        if self.names.pop(name, None) is not None:
            self.steps[-1] = replace(self.steps[-1], forgets=(*self.steps[-1].forgets, name))

    def _show(self, node: ast.Name) -> None:
        """A line that is only a name: shown as a step, unless that is what the step before has just shown."""
        number = self.named(node)
        if number != len(self.steps):
            self._alias(number, node, node.id)

    def _value(self, node: ast.expr) -> None:
        """A line that is an expression: shown as a step, also where it only picks from a list."""
        before = len(self.steps)
        number = self.result(node)
        if number <= before:
            self._alias(number, node, "")

    def _alias(self, number: int, node: ast.expr | ast.stmt, name: str, text: str = "") -> None:
        text = text or self.segment(node)
        added = self.add(PlanStep(NAMING, "name", (number,), text, text, node.lineno, name=name))
        if name:
            self._bind_tensor(name, added)
        if number in self.bundles:
            self.bundles.add(added)

    def _assign(self, node: ast.Assign) -> None:
        match node.targets[0]:
            case ast.Name(id=name):
                self._check_name(name)
                if self.kind(node.value) is not None:
                    self._name_count(name, node, self.kind(node.value), self.count(node.value))
                else:
                    self._assign_name(name, node)
            case ast.Subscript() as target:
                self._write(target, node.value, "=", node)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self._unpack(elements, node)
            case _:
                raise ExpressionError(
                    f"{self.quote(node)}: an assignment names a tensor, y = x.t(), or writes through brackets, "
                    "x[0][0] = 100."
                )

    def _assign_name(self, name: str, node: ast.Assign) -> None:
        """``y = …`` of a tensor, several tensors, a list of them, a dtype or a pattern."""
        value = node.value
        if isinstance(value, ast.Name) and value.id in self.names:
            self._alias(self.named(value), node, name)
            return
        result = self.literal(value)
        if result is not None and result[0] in _NAMED_LITERALS:
            self._rename(name, node)
            self.literals[name] = result
            return
        listed = self.listed(value) if isinstance(value, ast.List | ast.Tuple | ast.Name) else None
        if listed is not None and not set(listed) & self.bundles:
            self._rename(name, node)
            self.lists[name] = listed
            return
        before = len(self.steps)
        number = self.result(value)
        if number <= before:  # picked from a list: the tensor has a name or none of its own
            self._alias(number, node, name)
        else:
            self._bind(name, number)

    def _bind_tensor(self, name: str, number: int) -> None:
        self._forget_others(name)
        self.names[name] = number

    def _forget_others(self, name: str) -> None:
        self.kinds.pop(name, None)
        self.lists.pop(name, None)
        self.literals.pop(name, None)

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
        if isinstance(node.value, ast.Tuple | ast.List) and not stars:
            self._bind_each(names, node.value.elts, node)
            return
        is_list = isinstance(node.value, ast.Tuple | ast.List) or (
            isinstance(node.value, ast.Name) and node.value.id in self.lists
        )
        listed = self.listed(node.value) if is_list else None
        if listed is not None:
            self._unpack_list(names, listed, next(iter(stars), None), node)
        else:
            number = self.named(node.value) if isinstance(node.value, ast.Name) else self.result(node.value)
            self._unpack_several(names, number, next(iter(stars), None), node)

    def _unpack_list(self, names: Sequence[str], listed: Sequence[int], star: int | None, node: ast.Assign) -> None:
        """The tensors of a list that a line made, each under its name."""
        if star is not None:
            raise ExpressionError(f"{self.quote(node)}: a name with a star takes sizes, or what a split made.")
        if len(names) != len(listed):
            raise ExpressionError(f"{self.quote(node)}: {len(names)} names for {len(listed)} values.")
        for place, (name, number) in enumerate(zip(names, listed, strict=True)):
            self._alias(number, node, name, f"{name} = {self.segment(node.value)}[{place}]")

    def _unpack_several(self, names: Sequence[str], number: int, star: int | None, node: ast.Assign) -> None:
        """What a split made, or the rows of a single tensor, which Python unpacks as ``unbind(0)`` does."""
        text = self.segment(node.value)
        if number not in self.bundles:
            number = self.rows(number, node)
        least = len(names) if star is None else 1 - len(names)
        self.steps[number - 1] = replace(self.steps[number - 1], unpack=least)
        for place, name in enumerate(names):
            behind = len(names) - 1 - place
            if place == star:
                self._bind_tensor(name, self.some(node.value, number, slice(place, -behind or None), name))
                continue
            pick = place if star is None or place < star else -behind - 1
            step = PlanStep(PIECE, "piece", (number,), name, f"{text}[{pick}]", node.lineno, pick=pick, name=name)
            self._bind_tensor(name, self.add(step))

    def _bind_each(self, names: Sequence[str], values: Sequence[ast.expr], node: ast.Assign) -> None:
        """``q, k = x[0], x[1]``: every value first, as Python does, then every name."""
        if len(names) != len(values):
            raise ExpressionError(f"{self.quote(node)}: {len(names)} names for {len(values)} values.")
        read: list[tuple[CountKind | None, Count | None]] = [(self.kind(value), self.count(value)) for value in values]
        before = range(len(self.steps) + 1)
        results = [None if kind else self.result(value) for value, (kind, _) in zip(values, read, strict=True)]
        for name, value, (kind, count), number in zip(names, values, read, results, strict=True):
            if number is None:
                self._name_count(name, node, kind, count)
            elif number in before or isinstance(value, ast.Name):
                self._alias(number, node, name, f"{name} = {self.segment(value)}")
            else:
                self._bind(name, number)

    def _unpack_sizes(self, names: Sequence[str], star: int | None, node: ast.Assign) -> None:
        """``b, *rest, d = x.shape``: the sizes as one count, the names as its items."""
        text = self.segment(node)
        sizes = combined("unpack", [self.count(node.value), len(names), star], text, several=True)
        if isinstance(sizes, CountQuestion):
            self.questions.append(sizes)
            sizes = replace(sizes, what="name", parts=(), step=len(self.questions) - 1)
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
        if name in (*MODULES, *BUILTINS, "len", "list", "tuple", "map", "range") or ("bare", name) in OPERATIONS:
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
        text = f" {symbol} {self.segment(value)}"
        if isinstance(target, ast.Subscript):
            index = self.index(target, inputs)
            text = self.brackets(target) + text
        count = self.count(value) if self.kind(value) == "number" else None
        if count is None:
            inputs.append(self.tensor(value))
        step = PlanStep(
            WRITING if symbol == "=" else UPDATING,
            "write",
            tuple(inputs),
            text.strip(),
            self.segment(node),
            node.lineno,
            args=(Slot(len(inputs) - 1) if count is None else count,),
            index=index,
            symbol=symbol,
        )
        number_ = self.add(step)
        if isinstance(target, ast.Name):
            self._bind(target.id, number_)
