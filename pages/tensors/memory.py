"""Tensor views, the panel on elements that overlap in memory."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core import fields
from core.fields import choice, quantity
from core.limits import limit
from core.messages import message
from core.tensors.examples.overlap import HAZARDS, METHODS, Hazard, overlap_of, replay
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.text import read_shape
from core.tensors.tracing.steps import Trace, TraceStep
from pages.common import show
from pages.common.components import component
from pages.tensors.inputs import TensorInputs


def _result(run: Trace) -> TraceStep:
    """The tensor at the end: where the last step was refused, the one it was tried on."""
    step = run.last
    return run.steps[step.inputs[0] if step.inputs else 0] if step.kind == "refused" else step


# --------------------------------------------------------------------------------------------------- overlap

_DRAWN = 96
"""Elements and cells of a replay that are drawn; more do not fit beside each other."""

HAZARD_PRESETS = {
    hazard.label: {
        "view": hazard.view,
        "vshape": ", ".join(map(str, hazard.shape)),
        "verb": hazard.method,
        "by": str(hazard.value),
    }
    for hazard in HAZARDS
}
_FIRST = next(iter(HAZARD_PRESETS.values()))


def overlap(inputs: TensorInputs, run: Trace) -> None:
    """Which elements of the result share memory, and an in-place operation replayed write by write."""
    step = _result(run)
    try:
        said = overlap_of(step.layout, step.element_size).headline
        show.takeaway(message("tensors.overlap.of", tensor=run.label(step), overlap=said))
    except ValueError as problem:
        show.note(str(problem))
    presets = show.slot()
    with show.errors_under(inputs):
        view, shape, verb, by = st.columns([2.6, 1, 1, 0.8])
        with view:
            text, decision = inputs.ask_code(
                fields.text(
                    "view", message("tensors.overlap.view"), _FIRST["view"], max_chars=limit("expression_chars")
                )
            )
        with shape:
            label = message("tensors.overlap.shape")
            sizes = inputs.ask(fields.text("vshape", label, _FIRST["vshape"], max_chars=limit("number_chars")))
        with verb:
            method = inputs.ask(choice("verb", message("tensors.overlap.method"), METHODS, _FIRST["verb"]))
        with by:
            label = message("tensors.overlap.amount")
            amount = int(inputs.ask(quantity("by", label, _FIRST["by"], "count", low=0, high=1000, whole=True)))
    inputs.presets(HAZARD_PRESETS, into=presets, key="hazards")
    if inputs.told_to_wait("view", text, decision):
        return
    try:
        hazard = replay(text, read_shape(sizes), method, amount)
        inputs.keep_good("view", text)
        inputs.keep_good("vshape", sizes)
    except ExpressionError as problem:
        text, sizes = inputs.last_good("view", _FIRST["view"]), inputs.last_good("vshape", _FIRST["vshape"])
        show.error(message("tensors.note.shown", problem=str(problem), code=text, shape=sizes))
        hazard = replay(text, read_shape(sizes), method, amount)
    show.takeaway(" ".join(hazard.headline))
    if hazard.refused:
        show.note(message("tensors.error", kind=hazard.error_type, error=hazard.error_message))
    if max(len(hazard.writes), len(hazard.before)) <= _DRAWN and hazard.writes:
        component("replay")(data=_replayed(hazard, text, method, amount), key="t:replay")
    show.how(lambda: hazard.overlap.explanations, key="t:overlap:how", label=message("tensors.overlap.how"))


def _replayed(hazard: Hazard, view: str, method: str, amount: int) -> dict[str, Any]:
    shape = hazard.overlap.layout.shape
    signs = {"add_": f"+ {amount}", "sub_": f"− {amount}", "mul_": f"× {amount}", "fill_": f"filled with {amount}"}
    texts = [str(value) for value in (*hazard.sequential, *hazard.once, *hazard.before)]
    return {
        "view": view,
        "shape": str(shape),
        "sizes": shape,
        "columns": shape[-1] if shape else 1,
        "pitch": 14 + 8 * max(2, *map(len, texts)),
        "elements": [write.cell for write in hazard.writes],
        "before": [str(value) for value in hazard.before],
        "writes": [(write.cell, str(write.before), str(write.after)) for write in hazard.writes],
        "once": [str(value) for value in hazard.once],
        "torch": [str(value) for value in hazard.torch],
        "sign": signs[method],
    }
