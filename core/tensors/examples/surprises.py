"""Results that look wrong but are right, and steps that torch does not take: negative ones, with numpy's view beside.

Every case is an expression that is run; its sentence says why the result is what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType

import numpy as np

from core.rows import read_rows
from core.tensors.layout import Layout
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.text import read_shape
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


CASES: tuple[Case, ...] = tuple(
    Case(row["title"], row["expression"], read_shape(row["shape"]), row["looks"], row["why"])
    for row in read_rows("tensor_surprises")
)
"""The rows of ``assets/data/tensor_surprises.csv``."""


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

    layout: numpy's view in elements, strides negative.
    values: in logical order. refusal: torch's step.
    handed_over: what ``torch.from_numpy`` says to the view, error type and message.
    instead: the trace of the replacement, ``None`` when none was given.
    """

    source: str
    start: Layout
    layout: Layout
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


def _index(source: str) -> tuple[int | slice | EllipsisType | None, ...]:
    """The items between the brackets of ``source``."""
    steps = trace(source, (2, 3)).planned
    result = steps[0].index if len(steps) == 1 and steps[0].form == "index" else None
    index = tuple(item for item in result or () if item is None or isinstance(item, int | slice | EllipsisType))
    if result is None or len(index) < len(result) or index.count(...) > 1:
        raise ExpressionError(f"`{source[:60]}`: one index of whole numbers and slices, for example x[::-1].")
    return index


def negative_step(source: str, shape: Sequence[int], instead: str = "") -> NegativeStep:
    """numpy's view of ``source`` on ``arange`` of ``shape`` beside torch's answer to the same text.

    Raises `ExpressionError` when ``source`` is no index of whole numbers and slices, or has no negative step.
    """
    start = start_layout(shape)
    torch, _ = load_torch()
    whole = np.arange(start.numel, dtype=np.int64).reshape(start.shape)
    index = _index(source)
    try:
        view = whole[index if ... in index else (*index, ...)]
    except (IndexError, ValueError) as problem:
        raise ExpressionError(f"numpy refuses `{source[:60]}`: {problem}.") from None
    offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    layout = Layout(view.shape, tuple(step // view.itemsize for step in view.strides), offset // view.itemsize)
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
        values=tuple(view.ravel().tolist()),
        refusal=ran.last,
        handed_over=handed,
        instead=trace(instead, shape) if instead else None,
    )
