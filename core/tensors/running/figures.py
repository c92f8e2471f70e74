"""The picture of a trace as plain data: what the browser needs to draw every storage strip and tensor grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.tensors.layout import Layout, Run
from core.tensors.panels.cases import NegativeStep
from core.tensors.running.steps import Scalar, Step, Trace
from core.tensors.running.story import bytes_text, letter, shape_text, word
from core.tensors.running.trace import trace
from core.tensors.view import ViewVerdict

_FEWEST_DRAWN = 48
"""However many tensors there are, each shows this many elements."""


def storage_picture(trace: Trace) -> dict[str, Any]:
    """Steps, storages and tensors of ``trace``, for the component ``storage``.

    All text is plain and must be shown as text. A storage has one reading per element type that a tensor reads it
    as; cells are numbered by offset and ``item`` is the bytes of one. A tensor refers to its storage and reading by
    number; its elements follow from shape, strides and offset. At most ``picture_cells`` elements are drawn in all
    and ``storage_cells_drawn`` of one storage or tensor; ``total`` says how many there are.
    """
    return _Picture(trace).data()


class _Picture:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.drawn = _drawn(trace)
        share = limit("picture_cells") // (2 * max(len(self.drawn), 1))
        self.most = min(limit("storage_cells_drawn"), max(_FEWEST_DRAWN, share))
        self.readings: dict[int, list[str]] = {}
        for step in trace.steps:
            types = self.readings.setdefault(step.storage, [])
            if step.dtype not in types:
                types.append(step.dtype)
        self.written = {number: self._writes(number) for number in self.readings}

    def data(self) -> dict[str, Any]:
        return {
            "steps": self._steps(),
            "storages": [self._storage(number) for number in sorted(self.readings)],
            "tensors": [self._tensor(drawn) for drawn in self.drawn],
            "why": reason(self.trace),
            "active": self._shown_at(self.trace.last),
        }

    # ------------------------------------------------------------------------------------------- timeline

    def _steps(self) -> list[dict[str, Any]]:
        held: dict[int, int] = {}
        shown: list[dict[str, Any]] = []
        chain = len({step.line for step in self.trace.steps}) < 3  # one line of code, which goes on from the start
        before: Step | None = None
        for step in self.trace.steps:
            if step.operation == "piece":
                continue  # naming one of several results happens in the step that makes them
            goes_on = before is not None and before.number in step.inputs and (chain or before.line == step.line)
            before = step
            if step.bytes_allocated:
                held[step.storage] = step.bytes_allocated
            refused = step.kind == "refused"
            shown.append(
                {
                    "source": step.expression if step.kind == "write" else step.source,
                    "whole": "" if goes_on else step.expression,
                    "name": self._names(step),
                    "word": word(step),
                    "kind": step.kind,
                    "line": step.line,
                    "why": step.reason,
                    "added": "" if refused else f"+{bytes_text(step.bytes_allocated)}",
                    "total": "" if refused else bytes_text(sum(held.values())),
                    "held": [held.get(number, 0) for number in sorted(self.readings)],
                    "tensor": self._shown_at(step),
                }
            )
        return shown

    def _names(self, step: Step) -> str:
        """What the line binds this step's result to: ``y``, or ``q, k, v`` for the pieces of a split."""
        if step.kind in ("start", "refused") or step.operation == "name":  # `y = x` says so itself
            return ""
        pieces = [s.name for s in self.trace.steps if s.operation == "piece" and s.inputs == (step.number,)]
        return ", ".join(name for name in (step.name, *pieces) if name)

    def _shown_at(self, step: Step) -> int:
        """The tensor that shows this step: its own, or the one it wrote through, returned or was refused on."""
        while True:
            mine = [number for number, drawn in enumerate(self.drawn) if drawn.step.number == step.number]
            if mine:
                same = [number for number in mine if self.drawn[number].layout == step.layout]
                return (same or mine)[0]
            if not step.inputs:
                return -1
            layout, step = step.layout, self.trace.steps[step.inputs[0]]
            if step.pieces:
                step = replace(step, layout=layout)

    # ------------------------------------------------------------------------------------------- storages

    def _storage(self, number: int) -> dict[str, Any]:
        steps = [step for step in self.trace.steps if step.storage == number]
        owner = steps[0]
        cells, size = owner.storage_elements, owner.storage_elements * owner.element_size
        counted = "1 cell" if cells == 1 else f"{cells:,} cells"
        return {
            "letter": letter(number),
            "title": f"{counted} × {owner.element_size} B = {bytes_text(size)}, {owner.dtype}",
            "made": owner.source if owner.kind == "copy" else "",
            "row": owner.layout.shape[-1] if owner.layout.rank else 1,
            "readings": [self._reading(steps, dtype) for dtype in self.readings[number]],
        }

    def _reading(self, steps: Sequence[Step], dtype: str) -> dict[str, Any]:
        """The storage as it is at the end, in elements of one type."""
        last = next(s for s in reversed(steps) if s.dtype == dtype)
        values = list(last.storage_values[: self.most])
        # A later write may have gone through a tensor of another element type.
        for write in steps:
            if write.number > last.number:
                for changed, after in zip(write.changed, write.after, strict=True):
                    seen = self.trace.steps[changed]
                    if seen.dtype == dtype:
                        for cell, value in zip(seen.layout.cells(len(after)).tolist(), after, strict=True):
                            if cell < len(values):
                                values[cell] = value
        return {
            "dtype": dtype,
            "item": last.element_size,
            "total": last.storage_elements,
            "values": [_value(v) for v in values],
        }

    def _writes(self, storage: int) -> npt.NDArray[np.bool_]:
        """The bytes of a storage that any step wrote, which hold for every element type."""
        steps = [step for step in self.trace.steps if step.storage == storage]
        if self.trace.counted:
            return np.zeros(0, dtype=np.bool_)
        marks = np.zeros(max(step.storage_elements * step.element_size for step in steps), dtype=np.bool_)
        for step in steps:
            if step.kind == "write":
                item = step.element_size
                marks[: marks.size // item * item].reshape(-1, item)[np.array(step.written, dtype=np.int64)] = True
        return marks

    # -------------------------------------------------------------------------------------------- tensors

    def _tensor(self, drawn: _Drawn) -> dict[str, Any]:
        step, layout = drawn.step, drawn.layout
        tensor: dict[str, Any] = {
            "name": drawn.name,
            "word": word(step),
            "kind": step.kind,
            "storage": step.storage,
            "reading": self.readings[step.storage].index(step.dtype),
            "shape": layout.shape,
            "stride": layout.stride,
            "offset": layout.offset,
            "total": layout.numel,
            "drawn": 0 if self.trace.counted else min(layout.numel, self.most),
            "facts": _facts(layout, drawn.is_contiguous),
            "written": self._written(step),
        }
        if step.kind == "view" and not layout.rank:
            tensor["of"] = self._shown_at(self.trace.steps[step.inputs[0]])  # whose strides lead to the one element
        hops = step.verdict.hops if step.kind == "refused" and step.verdict is not None else None
        if hops is not None and step.verdict is not None:
            tensor |= {
                "name": step.source,
                "before": self.trace.label(self.trace.steps[step.inputs[0]]),
                "facts": [
                    ("shape", shape_text(step.verdict.shape), ""),
                    ("", "no strides give this", "no"),
                ],
                "hops": {
                    "shape": step.verdict.shape,
                    "dim": hops.new_dim,
                    "cells": hops.cells,
                    "steps": hops.steps,
                    "elements": hops.elements,
                },
            }
        return tensor

    def _written(self, step: Step) -> list[int]:
        """Cells of this tensor's storage that were written, in its own element type."""
        marks, item = self.written[step.storage], step.element_size
        cells = marks[: marks.size // item * item].reshape(-1, item)[: self.most].any(axis=1)
        return np.flatnonzero(cells).tolist()


@dataclass(frozen=True, slots=True)
class _Drawn:
    """One tensor of the picture: that of a step, or one of the several that a split made."""

    step: Step
    layout: Layout
    is_contiguous: bool
    name: str


def _drawn(trace: Trace) -> list[_Drawn]:
    """Every tensor to draw: new ones, all pieces of a split, and the one that a refused view would have needed."""
    found: list[_Drawn] = []
    for step in trace.steps:
        if step.pieces and step.picked is None and step.kind in ("view", "copy"):
            for number, piece in enumerate(step.pieces):
                named = (s for s in trace.steps if s.name and s.inputs == (step.number,) and s.layout == piece.layout)
                name = next(map(trace.label, named), f"{trace.label(step)}[{number}]")
                found.append(_Drawn(step, piece.layout, piece.is_contiguous, name))
        elif step.kind in ("start", "view", "copy") or (
            step.kind == "refused" and step.verdict is not None and step.verdict.hops is not None
        ):
            found.append(_Drawn(step, step.layout, step.is_contiguous, trace.label(step)))
    return found


def _facts(layout: Layout, is_contiguous: bool) -> list[tuple[str, str, str]]:
    """The small print of a tensor: name, value, and ``no`` where the value is worth a warning."""
    facts = [("shape", shape_text(layout.shape), ""), ("strides", shape_text(layout.stride), "")]
    if layout.offset:
        facts.append(("offset", str(layout.offset), ""))
    if is_contiguous:
        facts.append(("", "contiguous", ""))
    elif layout.is_channels_last:
        facts.append(("", "channels last", ""))
    else:
        facts.append(("", "not contiguous", "no"))
    return facts


# ------------------------------------------------------------------------------------- why a view does or does not


def reason(trace: Trace) -> dict[str, Any] | None:
    """The last view of ``trace`` as two rows of dimensions: those it had, in the runs that merge, and those asked.

    ``None`` when no step asked for a new shape; torch's error alone when the algebra has no account of it.
    """
    last = trace.last
    error = f"{last.error_type}: {last.error_message}" if last.kind == "refused" else ""
    step = last if error else next((s for s in reversed(trace.steps) if s.verdict is not None), None)
    told = _told(error)
    told["fixes"] = [
        {"instead": fix.instead, "code": fix.source, "cost": f"copies {bytes_text(fix.bytes)}"} for fix in last.fixes
    ]
    if step is None or step.verdict is None or not step.inputs:
        return told if error else None
    tried, verdict = trace.steps[step.inputs[0]], step.verdict
    layout = tried.layout
    told |= {"tensor": trace.label(tried, step.number - 1) if tried.name else tried.source, "view": step.source}
    runs = [run for run in verdict.runs if run.numel != 1]
    if verdict.boundary is not None:
        told["breaks"] = next(i for i, run in enumerate(runs[1:]) if run.first <= verdict.boundary.right <= run.last)
    return {
        **told,
        "runs": [_run(layout, run) for run in runs],
        "between": [_compare(layout, left, right) for left, right in pairwise(runs)],
        "asked": _asked(verdict, runs, step.kind == "copy")
        if layout.numel and (verdict.works or verdict.boundary)
        else [],
    }


def _told(error: str) -> dict[str, Any]:
    """A reason that has nothing but an error to show."""
    return {"error": error, "breaks": -1, "runs": [], "between": [], "asked": [], "fixes": []}


def _run(layout: Layout, run: Run) -> dict[str, Any]:
    dims = _dims(layout, run)
    joints = [f"{layout.stride[a]} = {layout.stride[b]} × {layout.shape[b]}" for a, b in pairwise(dims)]
    merged = "merge: " if joints else ""
    return {
        "dims": [{"dim": dim, "size": layout.shape[dim], "stride": layout.stride[dim]} for dim in dims],
        "joints": joints,
        "text": f"{merged}{run.numel:,} elements, {run.stride:,} apart",
    }


def _dims(layout: Layout, run: Run) -> list[int]:
    """The dimensions of a run that take a step at all."""
    return [dim for dim in range(run.first, run.last + 1) if layout.shape[dim] != 1]


def _compare(layout: Layout, left: Run, right: Run) -> str:
    a, b = _dims(layout, left)[-1], _dims(layout, right)[0]
    return f"{layout.stride[a]} ≠ {layout.stride[b]} × {layout.shape[b]}"


def _asked(verdict: ViewVerdict, runs: Sequence[Run], copied: bool) -> list[dict[str, Any]]:
    """The new dimensions, each with the runs that it draws on; one that draws on several cannot have one stride.

    copied: the step copied, so that its strides are those of the copy, and a view's are what might have been.
    """
    torn = "a view would have needed two strides" if copied else "two strides at once"
    edges: list[tuple[int, int]] = []
    reach = 1
    for run in reversed(runs):
        edges.append((reach, reach * run.numel))
        reach *= run.numel
    edges.reverse()
    asked: list[dict[str, Any]] = []
    inner = 1
    for dim in reversed(range(len(verdict.shape))):
        size = verdict.shape[dim]
        outer = inner * size
        parts = [i for i, (low, high) in enumerate(edges) if low < outer and inner < high] if size != 1 else []
        stride = "" if verdict.stride is None else f", stride {verdict.stride[dim]}"
        text = f": {torn}" if len(parts) > 1 else stride
        asked.append({"dim": dim, "size": size, "parts": parts or [0], "text": text, "one": size == 1})
        inner = outer
    return asked[::-1]


def _value(value: Scalar) -> str:
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e6:
        return f"{value:.0f}"
    return str(value) if isinstance(value, int) else f"{value:.4g}"


# ------------------------------------------------------------------------------------------------ negative steps


def negative_picture(step: NegativeStep) -> dict[str, Any]:
    """numpy's view with a negative stride on the storage it shares with x, beside what torch does instead."""
    shown = step.instead if step.instead is not None else trace("x", step.start.shape)
    picture = storage_picture(shown)
    view = {
        **picture["tensors"][0],
        "name": step.source,
        "word": "view in numpy",
        "kind": "view",
        "shape": step.layout.shape,
        "stride": step.layout.stride,
        "offset": step.layout.offset,
        "total": step.layout.numel,
        "drawn": step.layout.numel,
        "facts": _facts(step.layout, step.layout.is_contiguous),
    }
    error = f"{step.refusal.error_type}: {step.refusal.error_message}"
    return {
        **picture,
        "steps": [],
        "tensors": [*picture["tensors"], view],
        "why": _told(f"torch: {error}"),
        "active": len(picture["tensors"]),
    }
