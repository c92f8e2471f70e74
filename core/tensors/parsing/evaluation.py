"""What every reader of syntax stands on: the text, the steps that run, the names, and what holds a tensor."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from core.limits import limit
from core.tensors.operations.lookup import OPERATIONS
from core.tensors.operations.operation import Operation
from core.tensors.operations.table import INDEXING, PICKING, PIECE
from core.tensors.operations.values import DType, ExpressionError, Index, Slot
from core.tensors.parsing.facts import MOST_SHOWN, Fact, StatementRunner, written_value
from core.tensors.parsing.objects import (
    Bound,
    Class,
    Frame,
    Function,
    Instance,
    Named,
    PythonError,
    Ref,
    named_in,
    tensors_in,
)
from core.tensors.parsing.plan import Form, PlanStep
from core.tensors.parsing.text import EXAMPLE


class Refused(Exception):  # noqa: N818 (not wrong: torch's own error, on its way to the `except` that takes it)
    """What torch refused, while its statement is left."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Evaluator(ABC):
    """Names, and the values of expressions. Step 0 is ``x``.

    facts: what lines said that are no tensors. notes: what was left out.
    """

    def __init__(self, text: str, machine: StatementRunner) -> None:
        self.text = text
        self.machine = machine
        self.frame = Frame()
        self.frames = [self.frame]
        """Names of the program, and of every call that is open."""
        self.held: list[Any] = []
        """Values that wait for others of their expression."""
        self.facts: list[Fact] = []
        self.notes: dict[str, None] = {}
        self.line = 1
        self.work = 0
        self.typed = True
        """Whether what is read stands in the text."""
        self.tracked = True
        """Whether it stands outside of ``torch.no_grad()``."""
        self.casts: Mapping[str, str] = {}
        """The dtype that the ``autocast`` around it has for tensors of each kind of device."""
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        last, column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[last - 1] + column

    def segment(self, node: ast.expr | ast.stmt) -> str:
        if not self.typed:
            return ast.unparse(node)
        start, end = self.span(node)
        return self.cut(start, end) if end > start else ast.unparse(node)  # nobody typed it

    def cut(self, start: int, end: int) -> str:
        """The text from ``start`` to ``end`` on one line, without the space that broken lines leave at brackets."""
        joined = re.sub(r"(?<=[(\[])\s*\n\s*|\s*\n\s*(?=[)\].])", "", self.text[start:end])
        return re.sub(r"\s*\n\s*", " ", joined)

    def quote(self, node: ast.expr | ast.stmt) -> str:
        return f"`{self.segment(node)[:60]}`"

    def after(self, node: ast.expr, part: ast.expr) -> str:
        """What ``node`` adds behind ``part``: ``.t()`` of ``x.t()``."""
        if not self.typed:
            return ast.unparse(node).removeprefix(ast.unparse(part))
        return self.cut(self.span(part)[1], self.span(node)[1]).lstrip(") ") or self.segment(node)

    def add(self, step: PlanStep) -> Ref:
        """Run one operation. Raises `Refused` where torch, or Python in its place, refuses it."""
        if self.machine.last() >= limit("expression_steps"):
            raise ExpressionError(f"More than {limit('expression_steps')} operations; each one is shown.")
        self.settle()
        line = self.line if not self.typed else step.line
        kinds = [self.machine.device(number).partition(":")[0] for number in step.inputs]
        cast = next((self.casts[kind] for kind in kinds if kind in self.casts), "")
        problem = self.machine.run(replace(step, tracked=self.tracked, cast=cast, line=line))
        if problem is not None:
            raise Refused(problem)
        return Ref(self.machine.last())

    def step(
        self,
        operation: Operation,
        form: Form,
        inputs: Sequence[int],
        node: ast.expr | ast.stmt,
        source: str = "",
        text: str = "",
        **rest: Any,
    ) -> Ref:
        """Run the operation that ``node`` writes. source: what it adds to the text of its line, by default all."""
        text = text or self.segment(node)
        return self.add(PlanStep(operation, form, tuple(inputs), source or text, text, node.lineno, **rest))

    @contextmanager
    def raising(self, node: ast.expr | ast.stmt) -> Generator[None]:
        """What Python or torch raises inside is what the program raises at ``node``, so that `except` may take it."""
        try:
            yield
        except (ExpressionError, RecursionError):
            raise
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as problem:
            message = next(iter(str(problem).splitlines()), "")[:200]
            if "meta" in message.lower():  # values that are only counted are not there, which no `except` can mend
                raise ExpressionError(f"{self.quote(node)}: {message}.") from None
            raise PythonError(type(problem).__name__, f"{self.quote(node)}: {message}.") from None

    def settle(self) -> None:
        """Put down what the names stand for, now that the last step is done, and which tensors are held."""
        named: dict[str, Ref] = {}
        seen: set[int] = set()
        for frame in dict.fromkeys((self.frames[0], *self.frame.around())):
            named |= named_in(frame.names)
        names = {name: ref.number for name, ref in named.items()}
        held = {ref.number for frame in self.frames for ref in tensors_in(frame, seen)}
        held |= {ref.number for ref in tensors_in(self.held, seen)}
        for name, number in list(names.items()):
            gradient = None if named[name].several else self.machine.gradient(number)
            if gradient is not None:
                names[f"{name}.grad"] = gradient
        held |= {found for number in held.copy() if (found := self.machine.gradient(number)) is not None}
        self.machine.settle(names, frozenset(held))

    @contextmanager
    def holding(self) -> Generator[list[Any]]:
        """A place to keep values while others are worked out."""
        mark = len(self.held)
        try:
            yield self.held
        finally:
            del self.held[mark:]

    @contextmanager
    def inside(self, frame: Frame) -> Generator[None]:
        """Names of their own, in front of those that there are."""
        before = self.frame
        self.frame = frame
        self.frames.append(frame)
        try:
            yield
        finally:
            self.frames.pop()
            self.frame = before

    def value(self, node: ast.expr) -> Any:
        """What ``node`` stands for: a tensor, a plain value, a function."""
        self.work += 1
        if self.work > limit("expression_evaluated"):
            raise ExpressionError(f"More than {limit('expression_evaluated'):,} parts to work out; ask for less.")
        return self.worked_out(node)

    @abstractmethod
    def worked_out(self, node: ast.expr) -> Any:
        """The value of a node of any kind."""

    def one(self, value: Any, node: ast.expr) -> Ref:
        if not isinstance(value, Ref):
            raise ExpressionError(f"{self.what(value, node)}. For example: {EXAMPLE}.")
        if value.several:
            raise ExpressionError(
                f"{self.quote(node)} gives several tensors; pick one, for example {self.segment(node)[:60]}[0]."
            )
        return value

    def what(self, value: Any, node: ast.expr) -> str:
        """What to say of a value that stands where a tensor must."""
        text = self.segment(node)[:60]
        match value:
            case None:
                return f"`{text}` is None here"
            case bool() | int() | float():
                return f"`{text}` stands for a number here, not a tensor"
            case [*items] if any(isinstance(item, Ref) for item in items):
                return f"`{text}` stands for several tensors; pick one, {text}[0], or join them, torch.cat({text})"
            case _:
                return f"`{text}` stands for no tensor here"

    def truth(self, node: ast.expr) -> bool:
        """Whether ``node`` counts as true. Raises `ExpressionError` where that hangs on values that are not there."""
        value = self.value(node)
        if isinstance(value, Ref):
            self.one(value, node)
            value = self.machine.tensor(value.number)
        elif isinstance(value, Instance | Function | Class | Named | Bound):
            return True
        with self.raising(node):
            return bool(value)

    def shown(self, value: Any) -> str:
        return written_value(self._seen(value))[:MOST_SHOWN]

    def _seen(self, value: Any) -> Any:
        """A value with its tensors in place of their numbers."""
        if isinstance(value, Ref):
            return self.machine.tensor(value.number)
        if isinstance(value, dict):
            return {key: self._seen(item) for key, item in list(cast("dict[Any, Any]", value).items())[:24]}
        if isinstance(value, tuple | list):
            items = [self._seen(item) for item in cast("Sequence[Any]", value)[:25]]
            return items if isinstance(value, list) else tuple(items)
        return value

    def key(self, value: Any, node: ast.expr) -> Any:
        """``value`` as the key of a dictionary."""
        if isinstance(value, Ref):
            return ("tensor", id(self.machine.tensor(value.number)))
        if not isinstance(value, str | int | float | bool | tuple | DType | None):
            raise ExpressionError(f"{self.quote(node)} is no key of a dictionary here.")
        return cast(Any, value)

    def items(self, value: Any, node: ast.expr) -> list[Any]:
        """What a star or an unpacking goes over."""
        return list(self.each(value, node))

    def each(self, value: Any, node: ast.expr) -> Iterator[Any]:
        """What a loop goes over, one after the other; rows of a tensor are taken when their turn comes."""
        text = self.segment(node)
        match value:
            case Ref(several=True):
                for at in range(self.count(value)):
                    yield self.piece(value, at, f"{text}[{at}]", node)
            case Ref():
                if not self.machine.tensor(value.number).dim():
                    raise ExpressionError(f"{self.quote(node)} has no dimension that a loop could go over.")
                if self.count(value) > limit("expression_steps"):
                    raise ExpressionError(f"{self.quote(node)}: at most {limit('expression_steps')} rounds are run.")
                for at in range(self.count(value)):
                    yield self._picked(value, (at,), f"[{at}]", f"{text}[{at}]", node)
            case str() | tuple() | list() | range() | dict():
                yield from list(cast("Iterable[Any]", value))
            case Instance(fields={"layers": [*layers]}):
                yield from layers
            case _:
                raise ExpressionError(
                    f"{self.quote(node)}: a loop goes over range(…), sizes, a tensor or a list of tensors."
                )

    def count(self, ref: Ref) -> int:
        """How many tensors a split gave, or rows a tensor has."""
        return len(self.machine.tensor(ref.number))

    def rows(self, ref: Ref, node: ast.expr | ast.stmt) -> Ref:
        """The rows of a tensor, which is what Python's own unpacking takes of it."""
        return self.severally(self.step(OPERATIONS["method", "unbind"], "method", (ref.number,), node))

    def severally(self, ref: Ref) -> Ref:
        ref.several = isinstance(self.machine.tensor(ref.number), tuple | list)
        return ref

    def piece(self, ref: Ref, pick: int, text: str, node: ast.expr | ast.stmt, name: str = "") -> Ref:
        return self.step(PIECE, "piece", (ref.number,), node, name or text, text, pick=pick, name=name)

    def _picked(
        self, ref: Ref, index: Index, source: str, text: str, node: ast.expr, inputs: Sequence[int] = ()
    ) -> Ref:
        operation = PICKING if any(isinstance(item, Slot | tuple) for item in index) else INDEXING
        return self.step(operation, "index", (ref.number, *inputs), node, source, text, index=index)
