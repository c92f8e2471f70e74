"""The picture of a trace as plain data: what the browser needs to draw every storage strip and tensor grid."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from core.limits import limit
from core.tensors.layout import Layout
from core.tensors.story import bytes_text, shape_text, word
from core.tensors.trace import Step, Trace
from core.tensors.view import ViewVerdict

_FEWEST_DRAWN = 48
"""However many steps there are, each shows this many cells."""


def storage_picture(trace: Trace) -> dict[str, Any]:
    """Every step of ``trace`` with its storage strip and its tensor, for the component ``storage``.

    All text is plain and must be shown as text. Cells are numbered by offset; ``item`` is the bytes of one. At most
    ``picture_cells`` cells are drawn in all and ``storage_cells_drawn`` in one strip; ``total`` says how many exist.
    """
    share = limit("picture_cells") // (2 * len(trace.steps))
    drawn = min(limit("storage_cells_drawn"), max(_FEWEST_DRAWN, share))
    return {"steps": [_step(trace, step, drawn) for step in trace.steps]}


def _step(trace: Trace, step: Step, drawn: int) -> dict[str, Any]:
    owner = next(s for s in trace.steps if s.storage == step.storage)
    picture: dict[str, Any] = {
        "source": step.source,
        "kind": step.kind,
        "word": word(step),
        "facts": _facts(step),
        "storage": step.storage,
        "strip": {
            "name": chr(ord("A") + step.storage),
            "values": [_value(v) for v in step.storage_values[:drawn]],
            "total": step.storage_elements,
            "item": step.element_size,
            "size": bytes_text(step.storage_elements * step.element_size),
            "row": owner.layout.shape[-1] if owner.layout.rank else 1,
        },
        "tensors": _tensors(trace, step, drawn),
        "written": [cell for cell in step.written if cell < drawn],
    }
    if step.verdict is not None and step.inputs:
        picture["merge"] = _merge(trace.steps[step.inputs[0]].layout, step.verdict)
    if step.kind == "refused":
        picture["error"] = f"{step.error_type}: {step.error_message}"
        if step.verdict is not None and step.verdict.hops is not None:
            hops = step.verdict.hops
            picture["wanted"] = {
                "shape": step.verdict.shape,
                "dim": hops.new_dim,
                "cells": hops.cells,
                "steps": hops.steps,
                "elements": hops.elements,
            }
    return picture


def _tensors(trace: Trace, step: Step, drawn: int) -> list[dict[str, Any]]:
    """The tensor of this step; after a write also x, as it is now."""
    name = trace.steps[step.inputs[0]].expression if step.kind in ("refused", "write") else step.expression
    tensors = [_tensor(name, step.layout, step.storage, step.values[:drawn])]
    x = trace.steps[0]
    if step.kind == "write" and step.inputs != (x.number,):
        # x is contiguous from cell 0, so its elements are the cells of its storage.
        shared = step.storage == x.storage
        values = step.storage_values if shared else x.values
        tensors.append(_tensor("x", x.layout, x.storage, values[:drawn], "now" if shared else "unchanged"))
    return tensors


def _tensor(name: str, layout: Layout, storage: int, values: tuple[int | float, ...], note: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "note": note,
        "storage": storage,
        "shape": layout.shape,
        "stride": layout.stride,
        "offset": layout.offset,
        "values": [_value(v) for v in values],
        "total": layout.numel,
    }


def _facts(step: Step) -> list[tuple[str, str]]:
    """The line of small print next to a step: name and value pairs; a bare statement has no name."""
    if step.kind == "refused":
        return []
    layout = step.layout
    return [
        ("shape", shape_text(layout.shape)),
        ("strides", shape_text(layout.stride)),
        ("offset", str(layout.offset)),
        ("", "contiguous" if step.is_contiguous else "not contiguous"),
        ("", step.dtype),
        ("new storage", bytes_text(step.bytes_allocated)),
    ]


def _merge(layout: Layout, verdict: ViewVerdict) -> dict[str, Any]:
    """The old dimensions longer than 1, and between neighbours whether they merge, with the arithmetic."""
    run_of = {dim: run for run in verdict.runs for dim in range(run.first, run.last + 1)}
    dims = [dim for dim, size in enumerate(layout.shape) if size != 1]
    joints: list[dict[str, Any]] = []
    for left, right in pairwise(dims):
        merged = run_of[left] == run_of[right]
        sign = "=" if merged else "≠"
        joints.append(
            {"merged": merged, "text": f"{layout.stride[left]} {sign} {layout.stride[right]} × {layout.shape[right]}"}
        )
    return {
        "dims": [{"dim": dim, "size": layout.shape[dim], "stride": layout.stride[dim]} for dim in dims],
        "joints": joints,
        "breaks": -1 if verdict.boundary is None else dims.index(verdict.boundary.left),
    }


def _value(value: int | float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"
