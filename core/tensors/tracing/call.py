"""One call of torch as a program makes it."""

from __future__ import annotations

from dataclasses import dataclass

from core.tensors.operations.table import Operation
from core.tensors.operations.values import Index, Value


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a program.

    operation: what it is. form: how it is written: ``method``, ``property``, ``torch``, ``F``, ``init``, ``bare``,
    ``index``, ``binary``, ``unary``, ``write``, or ``name``. inputs: numbers of the steps whose tensors it takes.
    args and keywords: its arguments after the tensor it works on; a `Slot` stands for an input. index: what stands in
    the brackets of an indexing or a write, ``None`` when there are none. pick: which of several results is taken.
    symbol: the operator of ``unary``, ``binary`` and ``write`` (``=``, ``+=``). line: from 1. source: the text that
    this call adds; expression: the text up to its end, in its line. at: places in the text where the operation's name
    starts and where the call ends; -1 where it has no name.
    """

    operation: Operation
    form: str
    inputs: tuple[int, ...]
    source: str
    expression: str
    line: int
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    index: Index | None = None
    pick: int | None = None
    symbol: str = ""
    name: str = ""
    at: tuple[int, int] = (-1, -1)

    @property
    def values(self) -> tuple[Value, ...]:
        """All arguments after the tensor that it works on."""
        return (*self.args, *(value for _, value in self.keywords))
