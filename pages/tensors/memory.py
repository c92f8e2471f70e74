"""Tensor views, the panel on elements that overlap in memory."""

from __future__ import annotations

from typing import Any

from core.messages import browser_texts, message
from core.tensors.examples.overlap import Hazard, overlap_of, replay
from core.tensors.tracing.steps import Trace
from pages.common import show
from pages.common.components import component
from pages.tensors.inputs import TensorInputs, presets_of

_DRAWN = 96
"""Elements and cells of a replay that are drawn; more do not fit beside each other."""


def overlap(inputs: TensorInputs, run: Trace) -> None:
    """Draw which elements of the result share memory, and the last write in place, element by element."""
    inputs.presets(presets_of("shared"), into=show.slot(), key="hazards")
    last = run.last
    step = run.steps[last.inputs[0] if last.inputs else 0] if last.kind == "refused" else last
    hazard = replay(run)
    if hazard is None:
        try:
            found = overlap_of(step.layout, step.element_size)
        except ValueError as problem:
            show.note(str(problem))
            return
        show.takeaway(message("tensors.overlap.of", tensor=run.label(step), overlap=found.headline))
    else:
        found = hazard.overlap
        show.takeaway(" ".join(hazard.headline))
        if max(len(hazard.writes), len(hazard.before)) <= _DRAWN and hazard.writes:
            component("replay")(data=_replayed(hazard), key="t:replay")
    show.how(lambda: found.explanations, key="t:overlap:how", label=message("tensors.overlap.how"))


_SIGNS = {"add_": "add", "sub_": "subtract", "mul_": "multiply", "fill_": "fill"}


def _replayed(hazard: Hazard) -> dict[str, Any]:
    shape, texts = hazard.layout.shape, browser_texts("replay")
    values = {
        name: [f"{value:g}" for value in cells]
        for name, cells in (("before", hazard.before), ("once", hazard.once), ("torch", hazard.torch))
    }
    writes = [(cell, f"{before:g}", f"{after:g}") for cell, before, after in hazard.writes]
    longest = max(len(text) for cells in (*values.values(), [after for *_, after in writes]) for text in cells)
    return {
        "view": hazard.step.expression,
        "shape": str(shape),
        "sizes": shape,
        "columns": shape[-1] if shape else 1,
        "pitch": 14 + 8 * max(2, longest),
        "elements": [cell for cell, _, _ in writes],
        "writes": writes,
        "sign": texts[_SIGNS[hazard.method]].replace("{value}", str(hazard.value)),
        "texts": texts,
        **values,
    }
