"""What a storage held after each write: its cells at the end, and what every write found in those it wrote to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.limits import limit
from core.tensors.tracing.steps import Scalar, Trace, TraceStep


@dataclass(frozen=True, slots=True)
class Written:
    """The cells that one step wrote, counted in elements of one type, and what they held before."""

    step: int
    cells: tuple[int, ...]
    before: tuple[Scalar, ...]


@dataclass(slots=True)
class Memory:
    """The first cells of a storage read as one element type: at the end, and every write that led there.

    Undoing the writes from the last one gives the cells at any step. item: bytes of an element.
    """

    item: int
    values: list[Scalar] = field(default_factory=list[Scalar])
    writes: list[Written] = field(default_factory=list[Written])


def memories(trace: Trace, storage: int, most: int) -> dict[str, Memory]:
    """Return element type → the first ``most`` cells of a storage, for each type that a tensor reads it as.

    A write through another type changes the cells of the tensors that see it; others keep what was last read there.
    """
    by_name: dict[str, Memory] = {}
    for step in trace.steps:
        if step.storage != storage or step.kind == "refused":
            continue
        now = list(step.storage_values[:most])
        if step.kind == "write":
            for dtype, memory in by_name.items():
                after = now if dtype == step.dtype else _seen(trace, step, dtype, memory.values)
                cells = [cell for cell in written_cells(step, memory.item) if cell < len(after)]
                memory.writes.append(Written(step.number, tuple(cells), tuple(memory.values[cell] for cell in cells)))
                memory.values = after
        else:
            by_name.setdefault(step.dtype, Memory(step.element_size)).values = now
    return by_name


def _seen(trace: Trace, write: TraceStep, dtype: str, values: Sequence[Scalar]) -> list[Scalar]:
    """Return ``values`` with what the tensors of ``dtype`` show once ``write`` was done."""
    after = list(values)
    for number, scalars in zip(write.changed, write.after, strict=True):
        seen = trace.steps[number]
        if seen.dtype == dtype:
            for cell, value in zip(seen.layout.cells(len(scalars)).tolist(), scalars, strict=True):
                if cell < len(after):
                    after[cell] = value
    return after


def written_cells(write: TraceStep, item: int) -> list[int]:
    """Return the cells, of ``item`` bytes each, that hold a byte which a step wrote."""
    size = write.element_size
    if item == size or not write.written:
        return list(write.written)
    marks = np.zeros(-(-(write.storage_elements * size) // item) * item, dtype=np.bool_)
    marks[: write.storage_elements * size].reshape(-1, size)[np.array(write.written, dtype=np.int64)] = True
    return np.flatnonzero(marks.reshape(-1, item).any(axis=1)).tolist()


def are_kept(memory: Iterable[Memory]) -> bool:
    """Return whether the cells before every write are few enough to be handed on."""
    return sum(len(write.cells) for item in memory for write in item.writes) <= limit("picture_cells")
