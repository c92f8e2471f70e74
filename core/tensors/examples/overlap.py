"""Elements that share memory: how many, which, and what an in-place operation does to them.

torch refuses to write in place where a stride of 0 makes the overlap plain, as after ``expand``. Whether other strides
overlap it finds "too hard" and goes ahead; then a cell is updated once for every element that lies in it.
Source: https://docs.pytorch.org/docs/stable/generated/torch.as_strided.html
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.formula import Explanation, Source, Symbol, formula
from core.limits import limit
from core.messages import Message, message
from core.tensors.cost import tensor_bytes
from core.tensors.layout import TensorLayout
from core.tensors.tracing.steps import Scalar, Trace, TraceStep

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
    """Elements of a layout that share memory.

    elements: number of elements. cells: number of different cells. skipped: cells between the first and the last that
    no element uses. most: most elements in one cell.
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

_CHANGES: Mapping[str, Callable[[Any, Any], Any]] = {
    "add_": operator.add,
    "sub_": operator.sub,
    "mul_": operator.mul,
    "fill_": lambda _, value: value,
}
_METHODS = {"+=": "add_", "-=": "sub_", "*=": "mul_"}
"""In-place operations that can be replayed, each with one whole number; and how else they are written."""

_EXACT = 1 << 24
"""Whole numbers up to here are exact in 32-bit floating point."""


@dataclass(frozen=True, slots=True)
class Hazard:
    """An in-place operation on a tensor whose elements may share memory, replayed.

    step: of the trace, which torch ran or rejected. method, value: the operation. before: the first cells of the
    storage. writes: every element in order: its cell, and the cell's value before and after it. once: the storage had
    every cell been updated once.
    """

    step: TraceStep
    layout: TensorLayout
    overlap: Overlap
    method: str
    value: int
    before: tuple[Scalar, ...]
    writes: tuple[tuple[int, int, int], ...]
    once: tuple[int, ...]

    @property
    def torch(self) -> tuple[Scalar, ...]:
        """The storage after torch ran it, empty when it rejected."""
        return () if self.step.kind == "refused" else self.step.storage_values

    @property
    def headline(self) -> list[Message]:
        """What happened, in a sentence or two; a ``clone()`` is what torch's message advises."""
        call, copied = self.step.expression, float(self.overlap.elements * self.step.element_size)
        if not self.torch:
            elements, cells = float(self.overlap.elements), float(self.overlap.cells)
            return [message("tensors.overlap.rejected", call=call, elements=elements, cells=cells, bytes=copied)]
        if self.torch == self.once:
            alike = "tensors.overlap.alike" if self.overlap.overlaps else "tensors.overlap.harmless"
            return [message(alike, call=call)]
        ((cell, count),) = Counter(cell for cell, _, _ in self.writes).most_common(1)
        before, after, once = (float(memory[cell].real) for memory in (self.before, self.torch, self.once))
        times = float(count)
        return [
            message("tensors.overlap.unnoticed", cell=float(cell), times=times, before=before, after=after, once=once),
            message("tensors.overlap.unchecked", bytes=copied),
        ]


def replay(trace: Trace) -> Hazard | None:
    """Return the last write of a trace, element by element.

    ``None`` if it is too large to draw, or is not an operation of `_CHANGES` on a whole tensor of whole numbers.
    """
    step = next((step for step in reversed(trace.steps) if step.kind in ("write", "refused")), trace.last)
    method = step.operation if step.operation in _CHANGES else _METHODS.get(step.symbol, "")
    layout = step.layout
    value = step.args[-1] if step.args else None
    on = [one for one in trace.steps[: step.number] if one.storage == step.storage and one.kind != "refused"]
    if not method or step.named or type(value) is not int or not on or on[-1].dtype != step.dtype:
        return None
    before = on[-1].storage_values
    if max(layout.numel, step.storage_elements) > limit("storage_cells_drawn") or step.element_size < 4:
        return None
    if step.kind == "write" and step.updates != layout.numel:  # a part of the tensor
        return None
    change, cells = _CHANGES[method], list[int](layout.cells().tolist())
    memory, places = [int(cell.real) for cell in before if cell == cell and abs(cell) < _EXACT], set(cells)
    once = [change(cell, value) if place in places else cell for place, cell in enumerate(memory)]
    if memory != list(before):
        return None
    writes: list[tuple[int, int, int]] = []
    for cell in cells:
        writes.append((cell, memory[cell], change(memory[cell], value)))
        memory[cell] = change(memory[cell], value)
    if max(map(abs, (value, *memory))) >= _EXACT:
        return None
    overlap = overlap_of(layout, step.element_size)
    return Hazard(step, layout, overlap, method, value, before, tuple(writes), tuple(once))
