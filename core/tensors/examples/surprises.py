"""Results that look wrong but are right, and steps that torch does not take: negative ones, with numpy's view beside.

Every case is an expression that is run; its sentence says why the result is what it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.rows import read_rows
from core.tensors.layout import TensorLayout
from core.tensors.parsing.text import read_shape
from core.tensors.tracing.steps import Trace, TraceStep
from core.tensors.tracing.trace import load_torch, trace


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
    """A preset: an index with a negative step and what torch offers instead."""

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

    layout: numpy's view in elements, strides negative. refusal: torch's step.
    handed_over: what ``torch.from_numpy`` says to the view, error type and message. instead: the replacement, run.
    """

    source: str
    layout: TensorLayout
    refusal: TraceStep
    handed_over: tuple[str, str]
    instead: Trace

    @property
    def headline(self) -> tuple[str, str]:
        """The answer as one sentence and a quieter line of detail, in small markup."""
        return (
            f"numpy makes `{self.source}` a **view with strides {self.layout.stride}** from cell "
            f"{self.layout.offset}; torch **refuses**.",
            "torch has no negative strides, so no tensor can walk backwards. "
            f"`{self.instead.text}` copies {self.instead.bytes_copied:,} B to get the same values.",
        )


def negative_step(preset: NegativePreset) -> NegativeStep:
    """numpy's view of the index on ``arange`` of its shape beside torch's answer to the same text."""
    torch, _ = load_torch()
    ran = trace(preset.index, preset.shape)
    whole = np.arange(math.prod(preset.shape), dtype=np.int64).reshape(preset.shape)
    index: Any = ran.planned[0].index
    view = whole[index]
    offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    handed = ("", "")
    try:
        torch.from_numpy(view)
    except ValueError as problem:
        handed = (type(problem).__name__, " ".join(str(problem).split()))
    return NegativeStep(
        source=preset.index,
        layout=TensorLayout(view.shape, tuple(step // view.itemsize for step in view.strides), offset // view.itemsize),
        refusal=ran.last,
        handed_over=handed,
        instead=trace(preset.instead, preset.shape),
    )
