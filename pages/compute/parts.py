"""Compute budget, what the answer rests on: parameters by component, the accelerator's peak, every formula."""

from __future__ import annotations

from core.formula import Explanation
from core.hardware.roofline import explain_device
from core.planning.answer import words, words_device
from core.planning.answer.outlook import explain_row
from core.planning.evidence.runs import Comparison, explain_comparison
from core.units import format_quantity
from pages.compute.inputs import Asked
from pages.parts import show


def parts_title(asked: Asked) -> str:
    """The panel's title, which carries the peak."""
    peak = format_quantity(asked.plan.peak, "flop_per_s")
    return f"The model’s parameters, and the peak: {peak} dense {asked.dtype}"


def parts(asked: Asked) -> None:
    """The panel's content."""
    model, device = asked.shape, asked.device
    if asked.model is None:
        show.note(words.stand_in(model, asked.plan.params))
    if counted := words.active_counts(model):
        show.note(counted)
    headings, rows = words.components(model)
    show.small_table(
        [show.Column(heading, numeric=heading != headings[0]) for heading in headings],
        rows,
        caption=f"Parameters of {model.name} by component",
    )
    if not asked.own:
        show.note(words.model_origin(model))
        show.source(f"{model.source} ({words.known(model.confidence)})")
    show.small_table(
        [show.Column("dtype"), show.Column("dense peak", numeric=True), show.Column("ridge point", numeric=True)],
        words_device.peaks(device),
        caption=f"{device.name}: dense peaks, {words.known(device.confidence)}",
        here=[name for name, _ in device.peaks].index(asked.dtype),
    )
    for line in (*words_device.peak_origin(device, asked.dtype), words_device.datasheet(device)):
        show.note(line)
    show.source(device.source)


def explain(asked: Asked, runs: list[Comparison]) -> list[Explanation]:
    """Every number of the answer, in the order in which they follow from each other."""
    return [
        *asked.outlook.middle.explanations,
        *(explain_comparison(published) for published in runs[:1]),
        explain_row(asked.seen.middle),
        *explain_device(asked.device, asked.dtype),
    ]
