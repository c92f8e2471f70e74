"""Elements that share memory: how many, which, and what an in-place operation does to them.

torch refuses to write in place where a stride of 0 makes the overlap plain, as after ``expand``. Whether other strides
overlap it finds "too hard" and goes ahead; then a cell is updated once for every element that lies in it.
Source: https://docs.pytorch.org/docs/stable/generated/torch.as_strided.html
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.formula import Explanation, Source, Symbol, formula
from core.limits import limit
from core.messages import Message, message
from core.tensors.cost import tensor_bytes
from core.tensors.layout import TensorLayout
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.text import code_of
from core.tensors.tracing.steps import Scalar
from core.tensors.tracing.trace import trace

_AS_STRIDED = Source(
    "PyTorch, torch.as_strided", "warning", "https://docs.pytorch.org/docs/stable/generated/torch.as_strided.html"
)


@formula(
    r"\frac{\v{elements}}{\v{cells}}",
    result=Symbol("r", "elements per storage cell, on average", "number"),
    symbols={
        "elements": Symbol("n", "elements of the tensor", "count"),
        "cells": Symbol("c", "different storage cells they lie in", "count"),
    },
    sources=(_AS_STRIDED,),
)
def sharing(elements: float, cells: float) -> float:
    """Elements per storage cell; above 1 some cells belong to several elements."""
    return elements / cells


@dataclass(frozen=True, slots=True)
class Overlap:
    """Which elements of a layout share memory.

    elements: of the tensor; cells: different cells they lie in; skipped: cells between the first and the last that no
    element uses. most: the most elements of one cell.
    """

    layout: TensorLayout
    element_size: int
    elements: int
    cells: int
    skipped: int
    most: int

    @property
    def overlaps(self) -> bool:
        return self.elements > self.cells

    @property
    def headline(self) -> Message:
        """The answer, as a sentence or more."""
        elements, cells = float(self.elements), float(self.cells)
        if not self.overlaps:
            return message("tensors.overlap.none", elements=elements, cells=cells)
        looks, takes = elements * self.element_size, cells * self.element_size
        return message(
            "tensors.overlap.shared", elements=elements, cells=cells, looks=looks, takes=takes, most=float(self.most)
        )

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """Elements per cell, and both sizes in bytes."""
        if not self.elements:
            return ()
        return (
            sharing.explain(elements=self.elements, cells=self.cells),
            tensor_bytes.explain(elements=self.elements, element_bytes=self.element_size),
            tensor_bytes.explain(elements=self.cells, element_bytes=self.element_size),
        )


def overlap_of(layout: TensorLayout, element_size: int) -> Overlap:
    """Count exactly which elements share a cell.

    Raises ``ValueError`` for more elements than ``tensor_elements`` of core.limits.
    """
    cells, counts = np.unique(layout.each_cell(), return_counts=True)
    span = layout.span
    width = 0 if span is None else span[1] - span[0] + 1
    return Overlap(layout, element_size, layout.numel, len(cells), width - len(cells), most=int(counts.max(initial=0)))


# ------------------------------------------------------------------------------------------------ the hazard


_CHANGES: Mapping[str, Callable[[int, int], int]] = {
    "add_": operator.add,
    "sub_": operator.sub,
    "mul_": operator.mul,
    "fill_": lambda _, value: value,
}

METHODS = tuple(_CHANGES)
"""In-place operations that can be replayed, each with one whole number."""


@dataclass(frozen=True, slots=True)
class Write:
    """One element updated: its cell, and the cell's value before and after."""

    cell: int
    before: Scalar
    after: Scalar


@dataclass(frozen=True, slots=True)
class Hazard:
    """An in-place operation on a tensor whose elements may share memory, replayed and run.

    source: what was run. before: the storage of x when the view was made. counts: writes per cell. writes: every
    element in order, each reading what the one before left. sequential: the storage after that; once: what it would
    be had every cell been updated once. torch: the storage after torch ran it, empty when it refused. copied: bytes of
    the ``clone()`` that torch's message advises.
    """

    source: str
    overlap: Overlap
    before: tuple[Scalar, ...]
    counts: tuple[int, ...]
    writes: tuple[Write, ...]
    sequential: tuple[Scalar, ...]
    once: tuple[Scalar, ...]
    torch: tuple[Scalar, ...]
    error_type: str
    error_message: str
    copied: int

    @property
    def refused(self) -> bool:
        return bool(self.error_type)

    @property
    def headline(self) -> list[Message]:
        """What happened, in a sentence or two."""
        copied = float(self.copied)
        if self.refused:
            elements, cells = float(self.overlap.elements), float(self.overlap.cells)
            return [message("tensors.overlap.rejected", call=self.source, elements=elements, cells=cells, bytes=copied)]
        if self.torch == self.once:
            alike = "tensors.overlap.alike" if self.overlap.overlaps else "tensors.overlap.harmless"
            return [message(alike, call=self.source)]
        cell = max(range(len(self.counts)), key=self.counts.__getitem__)
        values = (float(memory[cell].real) for memory in (self.before, self.torch, self.once))
        before, after, once = values
        times = float(self.counts[cell])
        return [
            message("tensors.overlap.unnoticed", cell=float(cell), times=times, before=before, after=after, once=once),
            message("tensors.overlap.unchecked", bytes=copied),
        ]


def _wrapped(number: int) -> int:
    """A whole number as 64 bits hold it."""
    return (number + 2**63) % 2**64 - 2**63


def replay(view: str, shape: Sequence[int], method: str = "add_", value: int = 1) -> Hazard:
    """Run ``view`` on x, update the result in place with ``method(value)``, one of `METHODS`, and replay the same
    element by element.

    Raises `ExpressionError` when the view cannot be run, is no view of x, or has more elements than are drawn.
    """
    seen = trace(view, shape)
    last = seen.last
    no_view = message("tensors.problem.no_view", view=view, example=HAZARDS[0].view)
    if last.kind not in ("start", "same", "view") or last.storage != 0:
        raise ExpressionError(no_view)
    if last.dtype != seen[0].dtype:
        raise ExpressionError(message("tensors.problem.reread", view=view, dtype=last.dtype, start=seen[0].dtype))
    if max(last.layout.numel, last.storage_elements) > (most := limit("storage_cells_drawn")):
        raise ExpressionError(message("tensors.problem.replayed", most=float(most)))
    source = f"{code_of(seen.text).rstrip(' ;')}.{method}({value})"
    ran = trace(source, shape).last
    if ran.operation != method:
        raise ExpressionError(no_view)
    change = _CHANGES[method]
    memory: list[int] = [int(cell.real) for cell in last.storage_values]
    writes: list[Write] = []
    counts = Counter[int](last.layout.cells().tolist())
    once = [_wrapped(change(cell, value)) if place in counts else cell for place, cell in enumerate(memory)]
    cells: list[int] = last.layout.cells().tolist()
    for cell in cells:
        old = memory[cell]
        memory[cell] = _wrapped(change(old, value))
        writes.append(Write(cell, old, memory[cell]))
    refused = ran.kind == "refused"
    return Hazard(
        source=source,
        overlap=overlap_of(last.layout, last.element_size),
        before=last.storage_values,
        counts=tuple(counts[cell] for cell in range(len(memory))),
        writes=tuple(writes),
        sequential=tuple(memory),
        once=tuple(once),
        torch=() if refused else ran.storage_values,
        error_type=ran.error_type,
        error_message=ran.error_message,
        copied=last.layout.numel * last.element_size,
    )


@dataclass(frozen=True, slots=True)
class HazardPreset:
    """A preset: the view, the start shape, and the operation."""

    label: str
    view: str
    shape: tuple[int, ...]
    method: str = "add_"
    value: int = 1


HAZARDS: tuple[HazardPreset, ...] = (
    HazardPreset("Sliding window", "x.as_strided((4, 3), (1, 1))", (6,)),
    HazardPreset("The same, doubled", "x.as_strided((4, 3), (1, 1))", (6,), "mul_", 2),
    HazardPreset("unfold", "x.unfold(0, 3, 1)", (6,)),
    HazardPreset("expand", "x.expand(3, 4)", (3, 1)),
    HazardPreset("expand, filled", "x.expand(3, 4)", (3, 1), "fill_", 7),
    HazardPreset("Steps that never meet", "x.as_strided((2, 2), (3, 2))", (6,)),
    HazardPreset("A transpose", "x.t()", (2, 3)),
)
