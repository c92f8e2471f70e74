"""Results that look wrong but are right, and steps that torch does not take: negative ones, with numpy's view beside.

Every case is an expression that is run; its sentence says why the result is what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType

import numpy as np

from core.tensors.layout import Layout
from core.tensors.operations.values import ExpressionError
from core.tensors.tracing.steps import Scalar, Step, Trace
from core.tensors.tracing.trace import load_torch, start_layout, trace


@dataclass(frozen=True, slots=True)
class Case:
    """An expression whose result surprises.

    looks: what one would take it for. why: why it is right, in a sentence.
    """

    title: str
    source: str
    shape: tuple[int, ...]
    looks: str
    why: str
    dtype: str = "int64"

    def run(self) -> Trace:
        """The case run on torch."""
        return trace(self.source, self.shape, dtype=self.dtype)


CASES: tuple[Case, ...] = (
    Case(
        "One column, two dimensions",
        "x[:, 1:2]",
        (4, 6),
        "A single column is just four numbers in a row.",
        "The four numbers lie six cells apart, so this is not contiguous; the stride of the dimension of size 1 is "
        "never used.",
    ),
    Case(
        "One row, two dimensions",
        "x[1:2]",
        (4, 6),
        "A slice with an offset cannot be contiguous.",
        "Contiguous speaks of strides, not of the offset: the six numbers lie side by side, wherever they begin.",
    ),
    Case(
        "A transpose that stays contiguous",
        "x.t()",
        (1, 6),
        "Strides (1, 6) are those of a transposed matrix, so it needs .contiguous().",
        "The second dimension has size 1 and takes no step; without it the strides are row-major.",
    ),
    Case(
        "Strides that repeat",
        "x.view(6, 1)",
        (2, 3),
        "Two dimensions with stride 1 must overlap.",
        "The last dimension has a single element, so only the first one ever steps.",
    ),
    Case(
        "A moved dimension of size 1",
        "x.transpose(0, 1).view(24)",
        (4, 1, 6),
        "A transpose before .view always fails.",
        "Only the dimension of size 1 moved; the others still merge: stride 6 = 1 × 6.",
    ),
    Case(
        "Not contiguous, and yet a view",
        "x[:, ::2].view(12)",
        (4, 6),
        ".view needs a contiguous tensor.",
        "It needs strides that merge: three steps of 2 end where the next row begins, stride 6 = 2 × 3.",
    ),
    Case(
        "One number, twelve elements",
        "x.expand(3, 4).view(12)",
        (1,),
        "An expanded tensor cannot be viewed flat.",
        "Both strides are 0, and 0 = 0 × 4: one dimension with stride 0 reads the same number twelve times.",
    ),
    Case(
        "ravel copies",
        "x.t().ravel()",
        (2, 3),
        "ravel gives a view, as in numpy's documentation.",
        "It does when it can; the transposed order has no single stride, so it copies. `_is_view()` still says True.",
    ),
    Case(
        "detach does not copy",
        "x.detach()",
        (2, 3),
        "A detached tensor is independent of x.",
        "It is cut off from the gradient graph, not from the storage: writing to it writes to x.",
    ),
    Case(
        "contiguous does nothing",
        "x.contiguous()",
        (2, 3),
        ".contiguous() makes a copy.",
        "x is contiguous already, so torch returns x itself.",
    ),
    Case(
        "A conversion to the same type",
        "x.to(torch.int64)",
        (2, 3),
        ".to gives a new tensor.",
        "x is int64 already, so torch returns x itself; `copy=True` would force a copy.",
    ),
    Case(
        "A copy that is not contiguous",
        "x.t().clone()",
        (4, 6),
        "A fresh copy is contiguous.",
        "clone keeps the order of the strides, here columns first, and closes gaps; .contiguous() would reorder.",
    ),
    Case(
        "A sum that is not contiguous",
        "x.t() + 1",
        (4, 6),
        "A computed tensor is contiguous.",
        "Elementwise operations walk the memory in its own order and give the result the same one.",
    ),
    Case(
        "Same rows, other memory",
        "x[[0, 1]]",
        (4, 6),
        "It is the same as x[0:2].",
        "The same values, but a list can name any rows in any order, which no stride can follow: it always copies.",
    ),
    Case(
        "A slice that is no fence",
        "x[2:].as_strided((2,), (1,), 0)",
        (6,),
        "A slice cannot reach elements before its start.",
        "as_strided counts from the start of the storage, which the slice shares with x.",
    ),
    Case(
        "No elements, any shape",
        "x.view(5, 0, 7)",
        (0, 3),
        "0 × 3 cannot become 5 × 0 × 7.",
        "Both have no elements, and nothing has to be reached.",
    ),
    Case(
        "An empty transpose is contiguous",
        "x.t()",
        (0, 3),
        "Strides (1, 3) are not row-major for shape (3, 0).",
        "Without elements there is nothing to be out of order; torch calls every empty tensor contiguous.",
    ),
    Case(
        "The sum of nothing",
        "x.sum(0)",
        (0, 3),
        "A tensor without elements has no sum.",
        "Three columns of no elements: three sums, each 0.",
    ),
    Case(
        "A slice past the end",
        "x[100:]",
        (10,),
        "Index 100 of ten elements is an error.",
        "Slices are clamped as in Python: nothing is left, and the offset stops at 10.",
    ),
    Case(
        "Two memory formats at once",
        "x.contiguous(memory_format=torch.channels_last)",
        (2, 3, 1, 1),
        "channels_last reorders the memory, so it copies.",
        "With height and width 1 both orders are the same, so x already has it and is returned.",
    ),
)


@dataclass(frozen=True, slots=True)
class NegativePreset:
    """A chip: an index with a negative step and what torch offers instead."""

    label: str
    index: str
    shape: tuple[int, ...]
    instead: str


NEGATIVE: tuple[NegativePreset, ...] = (
    NegativePreset("Backwards", "x[::-1]", (6,), "x.flip(0)"),
    NegativePreset("Columns reversed", "x[:, ::-1]", (2, 3), "x.flip(1)"),
    NegativePreset("Both reversed", "x[::-1, ::-1]", (2, 3), "x.flip((0, 1))"),
    NegativePreset("Every other, backwards", "x[::-2]", (6,), "x[1::2].flip(0)"),
    NegativePreset("From 4 down to 2", "x[4:1:-1]", (6,), "x[2:5].flip(0)"),
)


@dataclass(frozen=True, slots=True)
class NegativeStep:
    """An index with negative steps: the view numpy makes, torch's refusal, and what torch does instead.

    layout: numpy's view in elements, strides negative; strides_bytes: as numpy prints them, for int64.
    values: in logical order. refusal: torch's step.
    handed_over: what ``torch.from_numpy`` says to the view, error type and message.
    instead: the trace of the replacement, ``None`` when none was given.
    """

    source: str
    start: Layout
    layout: Layout
    strides_bytes: tuple[int, ...]
    values: tuple[Scalar, ...]
    refusal: Step
    handed_over: tuple[str, str]
    instead: Trace | None

    @property
    def headline(self) -> tuple[str, str]:
        """The answer as one sentence and a quieter line of detail, in small markup."""
        copied = 0 if self.instead is None else self.instead.bytes_copied
        flip = "" if self.instead is None else f" `{self.instead.text}` copies {copied:,} B to get the same values."
        return (
            f"numpy makes `{self.source}` a **view with strides {self.layout.stride}** from cell "
            f"{self.layout.offset}; torch **refuses**.",
            f"torch has no negative strides, so no tensor can walk backwards.{flip}",
        )


def sliced(layout: Layout, source: str) -> Layout:
    """The layout numpy gives ``source``, an index into ``x`` of whole numbers and slices with steps of any sign.

    A slice starts at offset + start·stride and steps by step·stride. Raises `ExpressionError` for anything else.
    """
    index = _index(source)
    used = sum(item is not None and item is not ... for item in index)
    if used > layout.rank:
        raise ExpressionError(f"`{source[:60]}` has {used} indices for {layout.rank} dimensions.")
    shape: list[int] = []
    stride: list[int] = []
    offset, dim = layout.offset, 0
    for item in index if ... in index else (*index, ...):
        if item is None:
            shape.append(1)
            stride.append(0)
            continue
        skipped = layout.rank - used if item is ... else 1
        for size, step in zip(layout.shape[dim : dim + skipped], layout.stride[dim : dim + skipped], strict=True):
            if isinstance(item, int):
                if not -size <= item < size:
                    raise ExpressionError(f"Index {item} is out of bounds for a dimension of size {size}.")
                offset += step * (item % size)
                continue
            walked = range(*item.indices(size)) if isinstance(item, slice) else range(size)
            shape.append(len(walked))
            stride.append(step * walked.step)
            offset += step * walked.start if walked else 0
        dim += skipped
    return Layout(tuple(shape), tuple(stride), offset)


def _index(source: str) -> tuple[int | slice | EllipsisType | None, ...]:
    """The items between the brackets of ``source``."""
    steps = trace(source, (2, 3)).planned
    result = steps[0].index if len(steps) == 1 and steps[0].form == "index" else None
    index = tuple(item for item in result or () if item is None or isinstance(item, int | slice | EllipsisType))
    if result is None or len(index) < len(result) or index.count(...) > 1:
        raise ExpressionError(f"`{source[:60]}`: one index of whole numbers and slices, for example x[::-1].")
    if any(isinstance(item, slice) and item.step == 0 for item in index):
        raise ExpressionError("The step of a slice is not 0.")
    return index


def negative_step(source: str, shape: Sequence[int], instead: str = "") -> NegativeStep:
    """numpy's view of ``source`` on ``arange`` of ``shape`` beside torch's answer to the same text.

    Raises `ExpressionError` when ``source`` is no index of whole numbers and slices, or has no negative step.
    """
    start = start_layout(shape)
    layout = sliced(start, source)
    torch, _ = load_torch()
    view = np.arange(start.numel, dtype=np.int64).reshape(start.shape)[_index(source)]
    ran = trace(source, shape)
    if ran.last.kind != "refused":
        raise ExpressionError(f"`{source[:60]}` has no negative step, so torch makes the same view. Try x[::-1].")
    handed = ("", "")
    try:
        torch.from_numpy(view)
    except ValueError as problem:
        handed = (type(problem).__name__, " ".join(str(problem).split()))
    return NegativeStep(
        source=source,
        start=start,
        layout=layout,
        strides_bytes=tuple(step * view.itemsize for step in layout.stride),
        values=tuple(view.ravel().tolist()),
        refusal=ran.last,
        handed_over=handed,
        instead=trace(instead, shape) if instead else None,
    )
