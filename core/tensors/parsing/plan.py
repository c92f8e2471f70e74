"""One operation as the reader hands it over to be run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.tensors.operations.operation import Operation, Written
from core.tensors.operations.values import Index, Value

Form: TypeAlias = Written | Literal["index", "binary", "unary", "write", "name", "piece", "grad", "init"]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One operation of a program.

    operation, form: what it is and how it is written. inputs: numbers of the steps whose tensors it takes; step 0 is
    ``x`` itself. args and keywords: its arguments after the tensor it works on; a `Slot` stands for an input.
    index: what stands in the brackets of an indexing or a write, ``None`` when there are none.
    pick: which of several results is taken.
    symbol: the operator of ``unary``, ``binary`` and ``write`` (``=``, ``+=``).
    name: the name its result is bound to, empty for none.
    reads: of an update through square brackets, the step after which Python reads what it updates, before the value.
    line: the line it stands in, from 1.
    source: the text this step adds; expression: the text up to its end, in its line.
    at: places in the text where the operation's name starts and where the step ends; -1 where it has no name.
    device: where the result is put, empty for where its inputs are.
    tracked: whether gradients may be asked of it, which they may not under ``torch.no_grad()``.
    cast: the dtype of the ``autocast`` it stands under, empty for none.
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
    symbol: str = ""
    name: str = ""
    reads: int | None = None
    at: tuple[int, int] = (-1, -1)
    tracked: bool = True
    device: str = ""
    cast: str = ""

    @property
    def values(self) -> tuple[Value, ...]:
        """All arguments after the tensor that it works on."""
        return (*self.args, *(value for _, value in self.keywords))

    @property
    def given(self) -> dict[str, Value]:
        """The arguments by the names of their parameters, whichever way they were given."""
        return {**dict(zip(self.operation.keywords, self.args, strict=False)), **dict(self.keywords)}
