"""Measure: what this machine does, next to its datasheet, and into the plan."""

from __future__ import annotations

import streamlit as st

from core.benchmark.choices import CHOICES, programme
from core.benchmark.device import machine
from core.benchmark.layer import layer_shape
from core.benchmark.points import Kind
from core.benchmark.programme import KINDS, Programme
from core.benchmark.record import Record, merge_records
from core.benchmark.timing.kinds import expected_s
from core.messages import message
from core.models.catalog import model_named
from core.store.last_measured import last_measured
from core.views.benchmark import text
from pages.common import show
from pages.common.experiments.panel import draw_experiments, switches
from pages.common.inputs import Inputs
from pages.common.registry import MEASURE
from pages.measure import sections
from pages.measure.form import LENGTH, MICRO_BATCH, MODEL, ROOFLINE, WHAT, measure_form
from pages.measure.running import (
    ask,
    draw_ended,
    draw_live,
    draw_refusal,
    own_snapshot,
    shared_keeper,
    shared_runner,
)


def _read_inputs(inputs: Inputs) -> tuple[str, Programme]:
    values = inputs.reading.values
    choice = next(key for key, choice in CHOICES.items() if choice.name == values[WHAT.id])
    model, sizes = values[MODEL.id], (int(values[LENGTH.id]), int(values[MICRO_BATCH.id]))
    layer = layer_shape(model_named(model).spec, model, *sizes) if CHOICES[choice].has_layer else None
    return choice, programme(choice, machine().kind, int(values["n"]), float(values["each"]), layer)


def _draw_inputs(inputs: Inputs, wanted: Programme, *, waits: bool, measured: bool) -> None:
    """Draw the row of inputs, with the button at its end."""
    names = {WHAT.id: 1.65, "n": 0.8, "each": 0.75}
    if not wanted.sizes:  # only squares have an n
        del names["n"]
    widths = [*names.values(), 1.15, 4.15 - sum(names.values())]
    *fields, start, beside = st.columns(widths, vertical_alignment="bottom")
    for place, name in zip(fields, names, strict=True):
        with place:
            inputs.draw(inputs.form[name])
    start.button(
        message("measure.button.gpu" if wanted.device == "cuda" else "measure.button.cpu"),
        type="primary",
        key="d:run",
        disabled=waits,
        on_click=ask,
        args=(shared_runner(), wanted),
    )
    if measured:  # before the first run the answer says it
        with beside.container(key="measure_estimate"):
            show.note(message("measure.expected", seconds=float(round(expected_s(wanted)))))
    if wanted.layer is not None:
        for place, field in zip(st.columns([1.5, 0.8, 0.9, 2.2]), inputs.form.part("layer"), strict=False):
            with place:
                inputs.draw(field)
    show.input_errors(inputs)


def _records(latest: Record | None) -> tuple[list[Record], str]:
    """Return what was measured on this device, the newest first, and why the rest cannot be read."""
    here = machine()
    kept, unreadable = last_measured()
    known = {r.id: r for r in kept if r.programme.device == here.kind and r.facts and here.has(here.kind, r.facts.name)}
    if latest:
        known[latest.id] = latest
    return sorted(known.values(), key=lambda record: record.started, reverse=True), unreadable


def _draw_results(records: list[Record], merged: Record) -> None:
    """Draw what the newest measurement found, what that means for a plan, and what else was timed before."""
    newest = records[0]
    if newest.in_use:
        show.error(message("measure.doubt.in_use", users=newest.in_use))
    tried = {outcome.item.kind for outcome in merged.outcomes}
    kinds: list[Kind] = sorted(
        (kind for kind in KINDS if kind in tried), key=lambda kind: not text.takeaway(newest, kind)
    )
    for kind in kinds:
        source = next((one for one in records if text.points_of(one, kind)), newest)
        if kind == kinds[0]:
            with show.guarded(sections.section_title(kind)):
                if text.takeaway(merged, kind):
                    _draw_answer(merged, kind)
                sections.draw_kind(merged, kind)
                sections.draw_plan(merged)
            continue
        with show.question(sections.section_title(kind)):
            if takeaway := text.takeaway(merged, kind):
                show.takeaway(" ".join(takeaway))
            if source is not newest:
                show.note(text.when_text(source))
            sections.draw_kind(merged, kind)


def _draw_answer(record: Record, kind: Kind) -> None:
    if kind == "matmul":
        headline, detail = text.answer(record)
    else:
        headline, *detail = text.takeaway(record, kind)
    show.answer(headline, " ".join(detail))


def page() -> None:
    """Draw the button, the running or latest measurement, and how it was done."""
    runner, here = shared_runner(), machine()
    inputs = Inputs(MEASURE, measure_form(here.kind, MEASURE.prefix, switches(MEASURE.id)))
    choice, wanted = _read_inputs(inputs)
    latest = runner.latest_with_results()
    records, unreadable = _records(latest.record if latest else None)
    merged = merge_records(records) if records else None
    _draw_inputs(inputs, wanted, waits=own_snapshot(runner) is not None, measured=merged is not None)
    draw_refusal()
    for problem in filter(None, (unreadable, shared_keeper().problem)):
        show.error(problem)
    if not draw_live(runner):
        draw_ended(runner)
        if merged:
            _draw_results(records, merged)
        else:
            show.answer(text.invitation(choice, wanted, expected_s(wanted)))
        lines = text.device_lines(here)
        show.note(" ".join([*lines, text.when_text(records[0])] if records else lines))
    with inputs.panel(ROOFLINE.id, ROOFLINE.label) as panel:
        if panel.open:
            if merged:
                sections.draw_roofline(merged)
            else:
                show.note(message("measure.roofline.needs_matmul"))
    draw_experiments(inputs)
    show.how(
        lambda: sections.explanations(merged) if merged else (),
        notes=text.method_notes(here.kind, merged),
        key="measure:how",
    )
    show.footer(inputs)


show.draw_page(page)
