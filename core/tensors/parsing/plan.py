"""What the reader makes of an expression: single operations in the order in which they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.tensors.operations.operation import Operation, Written
from core.tensors.operations.values import CountQuestion, Index, Value

Form: TypeAlias = Written | Literal["index", "binary", "unary", "write", "name", "piece", "grad", "init"]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One operation of a plan.

    operation, form: what it is and how it is written. inputs: numbers of the steps whose tensors it takes; step 0 is
    ``x`` itself. args and keywords: its arguments after the tensor it works on; a `Slot` stands for an input,
    an `Asked` for a number that is known once its tensor is there.
    index: what stands in the brackets of an indexing or a write, ``None`` when there are none.
    pick: which of several results is taken. unpack: into how many names the results are unpacked, negative for at
    least so many.
    symbol: the operator of ``unary``, ``binary`` and ``write`` (``=``, ``+=``).
    name: the name its result is bound to, empty for none; bound: the step after which it is, 0 for its own.
    forgets: names that stand for numbers after it.
    reads: of an update through square brackets, the step after which Python reads what it updates, before the value.
    line: the line it stands in, from 1.
    source: the text this step adds; expression: the text up to its end, in its line.
    at: places in the text where the operation's name starts and where the step ends; -1 where it has no name.
    device: where the result is put, empty for where its inputs are.
    tracked: whether gradients may be asked of it, which they may not under ``torch.no_grad()``.
    """

    operation: Operation
    form: Form
    inputs: tuple[int, ...]
    source: str
    expression: str
    line: int
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    index: Index | None = None
    pick: int | None = None
    unpack: int | None = None
    symbol: str = ""
    name: str = ""
    bound: int = 0
    reads: int | None = None
    forgets: tuple[str, ...] = ()
    at: tuple[int, int] = (-1, -1)
    tracked: bool = True
    device: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The operations of all lines in the order in which they run; the last one is the result.

    names: every name of a tensor at the end, and the number of its step. questions: the numbers that names stand for
    and that only the tensors know, in the order of their lines. notes: what was left out, a sentence each.
    lists: names that stand for several tensors: the step after which they do, the name, and the steps of the tensors.
    """

    text: str
    steps: tuple[PlanStep, ...]
    names: Mapping[str, int]
    questions: tuple[CountQuestion, ...] = ()
    notes: tuple[str, ...] = ()
    lists: tuple[tuple[int, str, tuple[int, ...]], ...] = ()
