"""The record of a trace: one `TraceStep` per operation, and what each did to memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from annotated_types import Interval, MaxLen

from core.limits import limit
from core.tensors.layout import TensorLayout
from core.tensors.parsing.asked import Asked
from core.tensors.view_rule import ViewVerdict

Kind: TypeAlias = Literal["start", "same", "view", "copy", "write", "refused"]
Scalar: TypeAlias = int | float | bool | complex
Whole: TypeAlias = Annotated[int, Interval(ge=-1, lt=1 << 60)]
Word: TypeAlias = Annotated[str, MaxLen(200)]
Line: TypeAlias = Annotated[str, MaxLen(20_000)]
Scalars: TypeAlias = Annotated[tuple[Scalar, ...], MaxLen(limit("storage_cells_drawn"))]


class Block(NamedTuple):
    """A block of memory that an operation allocated and freed again. by: torch's name of the part that asked for it."""

    by: Word
    bytes: Whole


class Fact(NamedTuple):
    """A line's result that is not a tensor.

    text: the expression. value: its value. holds: whether an ``assert`` holds, ``None`` for other lines.
    """

    line: int
    text: str
    value: str
    holds: bool | None = None


class Piece(NamedTuple):
    """One of the tensors that split, chunk, or unbind returned; all share the storage of their step."""

    layout: TensorLayout
    is_contiguous: bool
    values: Scalars


@dataclass(frozen=True, slots=True)
class Remedy:
    """An expression that works instead of a rejected one.

    instead: what replaces the rejected step. source: the whole new text. bytes: what the replacement copies. reorders:
    whether it gives the elements in another order.
    """

    instead: str
    source: str
    bytes: int
    reorders: bool = False


class Saved(NamedTuple):
    """What an operation saves for backward.

    storage: where it lies, below 0 for one that no step shows. by: torch's name of the operation; name: of the tensor
    in it.
    """

    storage: Whole
    bytes: Whole
    by: Word
    name: Word


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor that is trained, at the end of a program.

    module: the name of its module, empty for none. name: in it. at: its storage and offset there. gradient_bytes: of
    its gradient. states: what optimizers keep for it, by name, in bytes.
    """

    module: Word
    name: Word
    at: tuple[Whole, Whole]
    shape: tuple[Whole, ...]
    dtype: Word
    bytes: Whole
    is_trained: bool
    gradient_bytes: Whole
    states: tuple[tuple[Word, Whole], ...]

    @property
    def state_bytes(self) -> int:
        return sum(count for _, count in self.states)


@dataclass(frozen=True, slots=True)
class CallRow:
    """What the process that ran a program reports of one call; sizes, strides and offsets in elements.

    kind: ``start`` (x itself), ``same`` (the very same tensor), ``view`` (another tensor on the same storage),
    ``copy`` (a new storage), ``write`` (values written in place) or ``refused`` (torch raised an error).
    source: the text of this call; expression: the text of its line up to and including it; line: counted from 1, 0
    for the start. operation: torch's name; form: how it is written, as in `CallText`; symbol: its operator. args and
    named: its arguments, the tensor it works on with them, as JSON; ``{"slot": 0}`` is the first of its inputs.
    inputs: the rows it reads, none for torch.zeros and its like.
    layout, dtype, element_size, storage: of the resulting tensor; for ``write`` of the tensor written through, and
    for ``refused`` of the tensor the operation was tried on (the start where it was tried on none). storage_bytes: of
    the whole storage. device: where the tensor lies; moved: bytes that went from one device to another.
    bytes_asked: all that the call allocated; bytes_kept: what of it is there afterwards; bytes_peak: the most of it
    that was there at once; freed: the blocks that it gave back before it returned.
    values: the first elements in logical order; storage_values: the first cells of the storage, both after the call
    and at most as many as are drawn.
    pieces: all tensors that a split made, empty for other operations; picked: which of them the program goes on with.
    written: storage cells written, none where they are only counted; touched: how many. changed: the earlier rows
    whose tensors see the write, the one written through included, and after: their first elements after it, in the
    same order. updates: elements written, more than cells where elements overlap; fullest: the cell written most
    often, and how often.
    asks_gradient: whether backward reaches it. keeps: what the operation saves for backward. flops: what its products
    compute, forward or backward.
    """

    kind: Kind
    layout: TensorLayout
    source: Line = ""
    expression: Line = ""
    operation: Word = ""
    form: Word = ""
    symbol: Word = ""
    line: Whole = 0
    args: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inputs: tuple[int, ...] = ()
    dtype: Word = "float32"
    element_size: Literal[1, 2, 4, 8, 16] = 4
    is_contiguous: bool = True
    storage: Whole = -1
    storage_bytes: Whole = 0
    device: Word = "cpu"
    moved: Whole = 0
    bytes_asked: Whole = 0
    bytes_kept: Whole = 0
    bytes_peak: Whole = 0
    freed: tuple[Block, ...] = ()
    values: Scalars = ()
    storage_values: Scalars = ()
    pieces: tuple[Piece, ...] = ()
    picked: int | None = None
    written: tuple[Whole, ...] = ()
    touched: Whole = 0
    changed: tuple[int, ...] = ()
    after: tuple[Scalars, ...] = ()
    updates: Whole = 0
    fullest: tuple[Whole, Whole] = (0, 0)
    asks_gradient: bool = False
    keeps: tuple[Saved, ...] = ()
    flops: Whole = 0

    @property
    def storage_elements(self) -> int:
        """The length of the storage in elements of this dtype."""
        return self.storage_bytes // self.element_size

    @property
    def bytes_inside(self) -> int:
        """What the operation allocated besides its result and gave back before it returned."""
        return max(self.bytes_asked - self.bytes_kept, 0)


@dataclass(frozen=True, slots=True)
class TraceStep(CallRow):
    """One step of a trace: a row whose inputs and storages are those of the trace, and what follows from it.

    number: of the step; storage: by first appearance, 0 is that of x. bytes_allocated: new storage this step keeps; 0
    for everything but copies and the start. bytes_total: all that the steps after the start have allocated up to here.
    name: the name bound to its tensor, empty for none. names: what stands for tensors once it is done, and for those of
    which steps. verdict: what the layout algebra says about view, reshape, flatten and ravel, ``None`` for other
    operations (ravel copies whatever is not contiguous, even where a view would work). error_type, error_message:
    torch's own, when rejected. reason: why it is a view, a copy or rejected, as the end of a sentence; empty if the
    error says it all. fixes: expressions that work instead, those that copy least first. times: how many iterations of
    a loop, all alike, the step stands for.
    """

    number: int = 0
    bytes_allocated: int = 0
    bytes_total: int = 0
    name: str = ""
    names: Mapping[str, int] = field(default_factory=dict[str, int], compare=False, repr=False)
    verdict: ViewVerdict | None = None
    error_type: str = ""
    error_message: str = ""
    reason: str = ""
    fixes: tuple[Remedy, ...] = ()
    times: int = 1

    @property
    def label(self) -> str:
        """What to call the tensor in its own line: its name, or the expression that made it. Later see `label_of`."""
        return self.name or self.expression


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that was not run: its number from 1, its text, and the reason."""

    line: int
    text: str
    why: str


def origin(steps: Sequence[TraceStep], step: TraceStep) -> int:
    """Return the step that made this very tensor, which names, writes and operations with nothing to do hand on."""
    while step.kind == "write" or (step.kind == "same" and step.operation != "piece"):
        step = steps[step.inputs[0]]
    return step.number


def is_old(steps: Sequence[TraceStep], step: TraceStep, at: int) -> bool:
    """Return whether the tensor of ``step`` had a name that by step ``at`` means another tensor."""
    return bool(step.name) and step.kind != "refused" and not names_of(steps, step, at)


def label_of(steps: Sequence[TraceStep], step: TraceStep, at: int | None = None) -> str:
    """Return a label for the tensor of ``step`` after step ``at``, by default at the end.

    It is its name, or another name that still means it, or else ``old y``, with the line that made it if several
    tensors of that name are old. A tensor without a name has the expression that made it.
    """
    end = len(steps) - 1 if at is None else at
    names = names_of(steps, step, end)
    if not step.name or step.kind == "refused":
        return step.label
    if names:
        return names[0]
    taken = set(steps[min(end, len(steps) - 1)].names)
    lines: dict[int, int] = {}
    for other in steps[: end + 1]:
        if other.name == step.name and is_old(steps, other, end):
            lines.setdefault(origin(steps, other), other.line)
    if len(lines) < 2 and step.name not in taken and "." in step.name:
        return step.name
    line = lines.get(origin(steps, step), 0)
    which = "" if len(lines) < 2 else f" (line {line})" if line else " (start)"
    return f"old {step.name}{which}"


def names_of(steps: Sequence[TraceStep], step: TraceStep, at: int) -> list[str]:
    """Return the names that stood for the tensor of ``step`` once step ``at`` was done; its own first."""
    number = origin(steps, step)
    names = steps[min(at, len(steps) - 1)].names
    found = [name for name, now in names.items() if now < len(steps) and origin(steps, steps[now]) == number]
    return sorted(found, key=lambda name: name != step.name)


@dataclass(frozen=True, slots=True)
class Trace:
    """All steps of one expression; the first is x itself, the last is the result or the refusal.

    notes: what was left out of the text, a sentence each. counted: the tensors are too large to be made; layouts and
    bytes are torch's own, and there are no values. facts: what lines said that are no tensors. unread: the line
    that is not run, and why; the steps are those before it. asked: names that nothing in the text defines, and what
    they stand for. held: bytes of each storage that lives once a step is done. at_once: the most that is there during
    each step. parameters: of modules, and leaves of the program that ask for a gradient.
    """

    text: str
    steps: tuple[TraceStep, ...]
    torch_version: str
    notes: tuple[str, ...] = ()
    counted: bool = False
    facts: tuple[Fact, ...] = ()
    unread: Unread | None = None
    asked: tuple[Asked, ...] = ()
    held: tuple[Mapping[int, int], ...] = ()
    at_once: tuple[int, ...] = ()
    parameters: tuple[Parameter, ...] = ()

    def __getitem__(self, index: int) -> TraceStep:
        return self.steps[index]

    def __iter__(self) -> Iterator[TraceStep]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def label(self, step: TraceStep, at: int | None = None) -> str:
        """Return what to call the tensor of ``step`` once step ``at`` was done; see `label_of`."""
        return label_of(self.steps, step, at)

    @property
    def last(self) -> TraceStep:
        return self.steps[-1]

    @property
    def refusal(self) -> TraceStep | None:
        """The step torch rejected, if any; it is then the last."""
        return self.last if self.last.kind == "refused" else None

    @property
    def starts_with_x(self) -> bool:
        """Whether the program reads x before it assigns x."""
        return self.steps[0].storage >= 0

    def made_by(self, step: TraceStep) -> dict[int, int]:
        """Return the bytes of each storage that ``step`` allocated, those of several results that later steps pick
        among them."""
        pieces = [item for item in self.steps if item.operation == "piece" and item.inputs == (step.number,)]
        return {item.storage: item.bytes_allocated for item in (step, *pieces) if item.bytes_allocated}

    @property
    def bytes_copied(self) -> int:
        """Bytes of the results that all steps after the start allocated."""
        return self.last.bytes_total - self.bytes_inside

    @property
    def bytes_inside(self) -> int:
        """Bytes that operations allocated besides their results, and gave back before they returned."""
        return sum(step.bytes_inside * step.times for step in self.steps)

    @property
    def fullest(self) -> TraceStep:
        """The first step during which the most memory was taken at once."""
        return self.steps[max(range(len(self.steps)), key=lambda number: self.at_once[number])]
