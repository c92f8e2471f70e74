"""The picture of a trace as plain data: what the browser needs to draw every storage strip and tensor grid."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from core.limits import limit
from core.messages import browser_texts, message
from core.tensors.cost import tensor_bytes
from core.tensors.layout import StrideRun, TensorLayout
from core.tensors.tracing.steps import Scalar, Trace, TraceStep, Unread
from core.tensors.view_rule import ViewVerdict
from core.views.tensors.inside import flops, inside, memory, notable_bytes
from core.views.tensors.snapshots import Memory, are_kept, memories
from core.views.tensors.text import kind_label, layout_texts, storage_letter
from core.wording import format_value, plain

_MOST_OPENED = 8
"""Tensors that one line of the timeline opens, such as the pieces of a split."""

_FEWEST_DRAWN = 48
"""However many tensors there are, each shows this many elements."""


@dataclass(frozen=True, slots=True)
class DrawnTensor:
    """One tensor of the picture: that of a step, or one of the several that a split made."""

    step: TraceStep
    layout: TensorLayout
    is_contiguous: bool
    name: str


def drawn(trace: Trace) -> list[DrawnTensor]:
    """Return every tensor to draw: new ones, all pieces of a split, and the one that a rejected view would have
    needed."""
    figures: list[DrawnTensor] = []
    for step in trace.steps:
        if step.pieces and step.picked is None and step.kind in ("view", "copy"):
            for number, piece in enumerate(step.pieces):
                named = (s for s in trace.steps if s.name and s.inputs == (step.number,) and s.layout == piece.layout)
                name = next(map(trace.label, named), f"{trace.label(step)}[{number}]")
                figures.append(DrawnTensor(step, piece.layout, piece.is_contiguous, name))
        elif (step.kind in ("start", "view", "copy") and step.storage >= 0) or (
            step.kind == "refused" and step.verdict is not None and step.verdict.hops is not None
        ):
            figures.append(DrawnTensor(step, step.layout, step.is_contiguous, trace.label(step)))
    return figures


def storage_picture(trace: Trace) -> dict[str, Any]:
    """Return steps, storages and tensors of ``trace``, for the component ``storage``.

    All text is plain and must be shown as text. A storage has one reading per element type that a tensor reads it
    as; cells are numbered by offset and ``item`` is the bytes of one; its values are those at the end, and undoing its
    writes gives those after any step (``kept`` says whether what they overwrote is there). A tensor refers to its
    storage and reading by number; its elements follow from shape, strides and offset. At most ``picture_cells``
    elements are drawn in all and ``storage_cells_drawn`` of one storage or tensor; ``total`` says how many there are.
    """
    return _Picture(trace).data()


class _Picture:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.drawn = drawn(trace)
        share = limit("picture_cells") // (2 * max(len(self.drawn), 1))
        self.most = min(limit("storage_cells_drawn"), max(_FEWEST_DRAWN, share))
        self.listed = [
            step.number for step in trace.steps if step.operation != "piece" and (step.number or trace.starts_with_x)
        ]
        """Steps with a line of their own: naming one of several results happens in the step that makes them."""
        numbers = sorted({step.storage for step in trace.steps if step.storage >= 0})
        self.memory = {number: memories(trace, number, self.most) for number in numbers}
        self.kept = are_kept(item for memory in self.memory.values() for item in memory.values())

    def data(self) -> dict[str, Any]:
        tensors = [self._tensor(item) for item in self.drawn]
        return {
            "steps": self._steps(),
            "storages": [self._storage(number) for number in self.memory],
            "tensors": tensors,
            "memory": " ".join(memory(self.trace)),
            "texts": browser_texts("picture"),
            "hint": message("tensors.picture.hint") if any(tensor["drawn"] for tensor in tensors) else "",
            "why": reason(self.trace),
            "active": self._shown_at(self.trace.last),
            "kept": self.kept,
            "most": self.most,
        }

    # ------------------------------------------------------------------------------------------- timeline

    def _steps(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        before: TraceStep | None = None
        start = self.trace.steps[0].bytes_allocated
        for step in map(self.trace.steps.__getitem__, self.listed):
            end = self._named_by(step)
            goes_on = before is not None and before.number in step.inputs and before.line == step.line
            before = step
            result = self.trace.made_by(step)
            held = self.trace.held[end.number]
            refused = step.kind == "refused"
            shape, stride = layout_texts(step)
            rows.append(
                {
                    "source": step.expression if step.kind == "write" else _with_its_place(step.source),
                    "whole": "" if goes_on or step.operation == "gradient" else step.expression,
                    "name": self._names(step),
                    "word": kind_label(step),
                    "times": step.times,
                    "kind": step.kind,
                    "line": step.line,
                    "why": " ".join(
                        plain(said).replace("`", "")
                        for said in (*self._because(step), *inside(self.trace, step), *flops(step))
                    ),
                    "shape": shape,
                    "stride": stride,
                    "added": "" if refused else format_value(sum(result.values()), "B"),
                    "inside": format_value(step.bytes_inside, "B") if notable_bytes(step) else "",
                    "total": "" if refused else format_value(start + end.bytes_total, "B"),
                    "held": [held.get(number, 0) for number in self.memory],
                    "once": self.trace.at_once[step.number],
                    "storage": -1 if refused else step.storage,
                    "tensors": self._opened_by(step),
                }
            )
        if self.trace.unread is not None:
            rows.append(self._unread(self.trace.unread))
        return rows

    def _because(self, step: TraceStep) -> list[str]:
        return [message("tensors.because", reason=step.reason)] if step.reason else []

    def _unread(self, line: Unread) -> dict[str, Any]:
        """Return the line that is not run, after those that are."""
        return {
            **dict.fromkeys(("name", "shape", "stride", "added", "total"), ""),
            "source": line.text,
            "whole": line.text,
            "word": message("tensors.kind.unread"),
            "times": 1,
            "kind": "refused",
            "line": line.line,
            "why": line.why,
            "held": [0] * len(self.memory),
            "storage": -1,
            "tensors": [],
        }

    def _named_by(self, step: TraceStep) -> TraceStep:
        """Return the step after which all results of ``step`` have their names."""
        after = self.trace.steps[step.number + 1 :]
        return next((a for a, b in pairwise((step, *after)) if b.operation != "piece"), (step, *after)[-1])

    def _names(self, step: TraceStep) -> str:
        """Return what the line binds this step's result to: ``y``, or ``q, k, v`` for the pieces of a split."""
        says_so = step.operation in ("name", "gradient") or (
            step.kind == "write" and step.expression.startswith(step.name)
        )
        if step.kind in ("start", "refused") or says_so:  # as `y = x` and `y += 1` do
            return ""
        pieces = [s.name for s in self.trace.steps if s.operation == "piece" and s.inputs == (step.number,)]
        return ", ".join(name for name in (step.name, *pieces) if name)

    def _opened_by(self, step: TraceStep) -> list[int]:
        """Return the tensors to look at for this step: its own first, all pieces of a split, all that see a write."""
        numbers = [number for number, item in enumerate(self.drawn) if item.step.number == step.number]
        seen = [self._shown_at(self.trace.steps[number]) for number in step.changed]
        first = self._shown_at(step)
        return list(dict.fromkeys(number for number in (first, *numbers, *seen) if number >= 0))[:_MOST_OPENED]

    def _shown_at(self, step: TraceStep) -> int:
        """Return the tensor that shows this step: its own, or the one it wrote through, returned or was rejected on."""
        while True:
            numbers = [number for number, item in enumerate(self.drawn) if item.step.number == step.number]
            if numbers:
                same = [number for number in numbers if self.drawn[number].layout == step.layout]
                return (same or numbers)[0]
            if not step.inputs:
                return -1
            layout, step = step.layout, self.trace.steps[step.inputs[0]]
            if step.pieces:
                step = replace(step, layout=layout)

    def _line_of(self, step: TraceStep) -> int:
        """Return the place of a step in the timeline."""
        return bisect_right(self.listed, step.number) - 1

    # ------------------------------------------------------------------------------------------- storages

    def _storage(self, number: int) -> dict[str, Any]:
        owner = next(step for step in self.trace.steps if step.storage == number)
        cells, size = owner.storage_elements, owner.storage_elements * owner.element_size
        item = float(owner.element_size)
        return {
            "letter": storage_letter(number),
            "title": message(
                "tensors.picture.cells", cells=float(cells), item=item, bytes=float(size), dtype=owner.dtype
            ),
            "made": owner.source if owner.kind == "copy" else "",
            "step": self._line_of(owner),
            "row": owner.layout.shape[-1] if owner.layout.rank else 1,
            "readings": [
                {
                    "dtype": dtype,
                    "item": memory.item,
                    "total": size // memory.item,
                    "values": [_value(value) for value in memory.values],
                    "writes": self._writes(memory),
                }
                for dtype, memory in self.memory[number].items()
            ],
        }

    def _writes(self, memory: Memory) -> list[dict[str, Any]]:
        """Return the cells of every write with what they held before; where that is too much, all cells as of the
        last."""
        if not self.kept:
            cells = sorted({cell for write in memory.writes for cell in write.cells})
            return [{"step": len(self.listed) - 1, "cells": cells, "before": []}] if cells else []
        return [
            {
                "step": self._line_of(self.trace.steps[write.step]),
                "cells": write.cells,
                "before": [_value(value) for value in write.before],
            }
            for write in memory.writes
            if write.cells
        ]

    # -------------------------------------------------------------------------------------------- tensors

    def _tensor(self, item: DrawnTensor) -> dict[str, Any]:
        step, layout = item.step, item.layout
        tensor: dict[str, Any] = {
            "name": item.name,
            "word": kind_label(step),
            "kind": step.kind,
            "step": self._line_of(step),
            "storage": step.storage,
            "reading": list(self.memory[step.storage]).index(step.dtype),
            "shape": layout.shape,
            "stride": layout.stride,
            "offset": layout.offset,
            "total": layout.numel,
            "drawn": 0 if self.trace.counted else min(layout.numel, self.most),
            "facts": _facts(layout, item.is_contiguous, step.element_size),
        }
        if step.kind == "view" and not layout.rank:
            tensor["of"] = self._shown_at(self.trace.steps[step.inputs[0]])  # whose strides lead to the one element
        hops = step.verdict.hops if step.kind == "refused" and step.verdict is not None else None
        if hops is not None and step.verdict is not None:
            tensor |= {
                "name": step.source,
                "before": self.trace.label(self.trace.steps[step.inputs[0]]),
                "facts": [(message("tensors.picture.no_strides"), "no")],
                "hops": {
                    "shape": step.verdict.shape,
                    "dim": hops.new_dim,
                    "cells": hops.cells,
                    "steps": hops.steps,
                    "elements": hops.elements,
                },
            }
        return tensor


def _with_its_place(source: str) -> str:
    """Return an operation whose second operand is the result before it, with a mark where that stands: ``0.5 * …``."""
    return f"{source} …" if source[-1:] and source[-1] in "+-*/@%&|^<>=" else source


def _facts(layout: TensorLayout, is_contiguous: bool, item: int) -> list[tuple[str, str]]:
    """Return the small print of a tensor under shape, strides and offset: text, and ``no`` where it is worth a
    warning."""
    if is_contiguous:
        order = (message("tensors.picture.contiguous"), "")
    elif layout.is_channels_last:
        order = (message("tensors.picture.channels_last"), "")
    else:
        order = (message("tensors.picture.not_contiguous"), "no")
    # torch sends the elements, not the storage
    return [order, (message("tensors.picture.sent", bytes=tensor_bytes(layout.numel, item)), "")]


# ------------------------------------------------------------------------------------- why a view does or does not


def reason(trace: Trace) -> dict[str, Any] | None:
    """Return the last view of ``trace`` as two rows of dimensions: those it had, in the runs that merge, and those
    asked.

    ``None`` when no step asked for a new shape; torch's error alone when the algebra has no account of it.
    """
    last = trace.last
    error = f"{last.error_type}: {last.error_message}" if last.kind == "refused" else ""
    step = last if error else next((s for s in reversed(trace.steps) if s.verdict is not None), None)
    by_name = _annotated(error)
    by_name["fixes"] = [
        {
            "instead": fix.instead,
            "code": fix.source,
            "cost": message("tensors.picture.fix_reorders")
            if fix.reorders
            else message("tensors.picture.fix_copy", bytes=float(fix.bytes)),
        }
        for fix in last.fixes
    ]
    if step is None or step.verdict is None or not step.inputs:
        return by_name if error else None
    tried, verdict = trace.steps[step.inputs[0]], step.verdict
    layout = tried.layout
    by_name |= {"tensor": trace.label(tried, step.number - 1) if tried.name else tried.source, "view": step.source}
    runs = [run for run in verdict.runs if run.numel != 1]
    if verdict.boundary is not None:
        by_name["breaks"] = next(i for i, run in enumerate(runs[1:]) if run.first <= verdict.boundary.right <= run.last)
    return {
        **by_name,
        "runs": [_run(layout, run) for run in runs],
        "between": [_compare(layout, left, right) for left, right in pairwise(runs)],
        "asked": _asked(verdict, runs, step.kind == "copy")
        if layout.numel and (verdict.works or verdict.boundary)
        else [],
    }


def _annotated(error: str) -> dict[str, Any]:
    """Return a reason that has nothing but an error to show."""
    return {"error": error, "breaks": -1, "runs": [], "between": [], "asked": [], "fixes": []}


def _run(layout: TensorLayout, run: StrideRun) -> dict[str, Any]:
    dims = _dims(layout, run)
    joints = [f"{layout.stride[a]} = {layout.stride[b]} × {layout.shape[b]}" for a, b in pairwise(dims)]
    text = message(
        "tensors.picture.merged" if joints else "tensors.picture.apart",
        elements=float(run.numel),
        stride=float(run.stride),
    )
    return {
        "dims": [{"dim": dim, "size": layout.shape[dim], "stride": layout.stride[dim]} for dim in dims],
        "joints": joints,
        "text": text,
    }


def _dims(layout: TensorLayout, run: StrideRun) -> list[int]:
    """Return the dimensions of a run that take a step at all."""
    return [dim for dim in range(run.first, run.last + 1) if layout.shape[dim] != 1]


def _compare(layout: TensorLayout, left: StrideRun, right: StrideRun) -> str:
    a, b = _dims(layout, left)[-1], _dims(layout, right)[0]
    return f"{layout.stride[a]} ≠ {layout.stride[b]} × {layout.shape[b]}"


def _asked(verdict: ViewVerdict, runs: Sequence[StrideRun], copied: bool) -> list[dict[str, Any]]:
    """Return the new dimensions, each with the runs that it draws on; one that draws on several cannot have one stride.

    copied: the step copied, so that its strides are those of the copy, and a view's are what might have been.
    """
    torn = message("tensors.picture.torn_copy" if copied else "tensors.picture.torn")
    edges: list[tuple[int, int]] = []
    reach = 1
    for run in reversed(runs):
        edges.append((reach, reach * run.numel))
        reach *= run.numel
    edges.reverse()
    rows: list[dict[str, Any]] = []
    inner = 1
    for dim in reversed(range(len(verdict.shape))):
        size = verdict.shape[dim]
        outer = inner * size
        parts = [i for i, (low, high) in enumerate(edges) if low < outer and inner < high] if size != 1 else []
        text = torn if len(parts) > 1 else ""
        if not text and verdict.stride is not None:
            text = message("tensors.picture.stride", stride=float(verdict.stride[dim]))
        rows.append({"dim": dim, "size": size, "parts": parts or [0], "text": text, "one": size == 1})
        inner = outer
    return rows[::-1]


def _value(value: Scalar) -> str:
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e6:
        return f"{value:.0f}"
    return str(value) if isinstance(value, int) else f"{value:.4g}"
