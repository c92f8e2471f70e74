"""Measure: what this machine really does, next to what it promises, and into the plan."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.benchmark.choices import CHOICES, programme
from core.benchmark.device import machine
from core.benchmark.form import LENGTH, MICRO_BATCH, MODEL, PANELS, WHAT, measure_form
from core.benchmark.points import Kind
from core.benchmark.programme import LayerShape, Programme
from core.benchmark.record import Record
from core.benchmark.shape import layer_shape
from core.benchmark.timing.kinds import expected_s, items
from core.models.catalog import model_named
from core.views.benchmark import others, state
from core.views.benchmark.common import measured_line
from core.views.benchmark.plain_text import in_sentences
from pages.common import show
from pages.common.experiments.panel import draw_experiments, switches
from pages.common.inputs import Inputs
from pages.common.registry import MEASURE
from pages.measure import collectives, history, panels
from pages.measure.running import ask, ended, live, own_snapshot, say_why_not, shared_runner

_NOTHING = "Nothing has been measured here yet."
_LAYERED = ("operations", "attention", "layer")


def _layer(inputs: Inputs) -> LayerShape:
    values = inputs.reading.values
    spec = model_named(values[MODEL.id]).spec
    return layer_shape(spec, values[MODEL.id], int(values[LENGTH.id]), int(values[MICRO_BATCH.id]))


def _read_inputs(inputs: Inputs) -> tuple[str, Programme]:
    values = inputs.reading.values
    choice = next(key for key, choice in CHOICES.items() if choice.name == values[WHAT.id])
    layer = _layer(inputs) if any(kind in CHOICES[choice].kinds for kind in _LAYERED) else None
    return choice, programme(choice, machine().kind, int(values["n"]), float(values["each"]), layer)


def _draw(inputs: Inputs, wanted: Programme, *, waits: bool, known: bool) -> None:
    """The row of inputs, with the button at its end."""
    runner, form = shared_runner(), inputs.form
    widths_by_field = {WHAT.id: 1.65, "n": 0.7, "each": 0.75}
    if not wanted.sizes:  # only squares have an n
        del widths_by_field["n"]
    widths = [*widths_by_field.values(), 1.15, 4.05 - sum(widths_by_field.values())]
    *fields, start, beside = st.columns(widths, vertical_alignment="bottom")
    for place, name in zip(fields, widths_by_field, strict=True):
        with place:
            inputs.draw(form[name])
    with start:
        name = "Measure on this GPU" if wanted.device == "cuda" else "Measure on this CPU"
        st.button(name, type="primary", key="d:run", disabled=waits, on_click=ask, args=(runner, wanted))
    if known:  # before the first run the answer says it
        with beside.container(key="measure_estimate"):
            show.note(state.estimate(expected_s(wanted)))
    if wanted.layer is not None:
        for place, field in zip(st.columns([1.5, 0.8, 0.9, 2.2]), form.part("layer"), strict=False):
            with place:
                inputs.draw(field)
    show.input_errors(inputs)


def _results(record: Record, more: Record) -> None:
    """What a measurement found, what that means for a plan, and what else was timed. more: with that added."""
    own: tuple[Kind, ...] = panels.kinds_of(record)
    timed: list[Kind] = [kind for kind in own if others.says(record, kind)]
    led: Kind | None = None
    if "matmul" in record.programme.kinds:
        with show.guarded("The rates"):
            panels.matmuls(more, key="measure:rates")
        own = ()
    elif timed:
        led = timed[0]
        show.answer(others.says(record, led), measured_line(record))
    for kind in own:
        panels.kind(more, kind, led=kind == led)
    panels.use(more)
    for kind in panels.kinds_of(more):
        if kind not in own:
            panels.kind(more, kind)


def _picture(newest: Record | None, everything: Sequence[Record]) -> Record | None:
    """The measurement to show: what was chosen, or the newest of this machine."""
    records = [record for record in everything if record.origin is None and record.programme.device == machine().kind]
    known = [*([newest] if newest else []), *(record for record in records if newest is None or record.id != newest.id)]
    picked = history.chosen()
    return next((record for record in (*known, *everything) if record.id == picked), known[0] if known else None)


def page() -> None:
    """The button, the running measurement or the latest one, and how it was done."""
    runner, here = shared_runner(), machine()
    inputs = Inputs(MEASURE, measure_form(here.kind, MEASURE.prefix, switches(MEASURE.id)))
    choice, wanted = _read_inputs(inputs)
    latest = runner.latest_with_results()
    everything = history.records()
    original = _picture(latest.record if latest else None, everything)
    record = in_sentences(original) if original is not None and original.origin is not None else original
    _draw(inputs, wanted, waits=own_snapshot(runner) is not None, known=record is not None)
    say_why_not()
    history.unsaved()
    if not live(runner):
        ended(runner)
        if record is not None:
            _results(record, panels.supplemented(record, everything) if record.origin is None else record)
            show.note(state.machine_line(here))
        else:
            show.answer(*state.invitation(here, choice, wanted, expected_s(wanted)))
            show.note(state.machine_line(here))
            steps = state.steps(items(wanted), expected_s(wanted))
            show.small_table(state.STEPS, steps, caption="What will happen", words=None)
    content = {
        "roof": lambda: panels.roof(panels.supplemented(record, everything)) if record else show.note(_NOTHING),
        "every": lambda: panels.every(record) if record else show.note(_NOTHING),
        "past": lambda: history.past(record),
        "several": lambda: collectives.several(inputs, record),
        "file": lambda: history.files(original),
    }
    for field in PANELS:
        with inputs.panel(field.id, field.label) as panel:
            if panel.open:
                content[field.id]()
    draw_experiments(inputs)
    show.how(lambda: panels.opened(record) if record else (), notes=state.method(here.kind), key="measure:how")
    show.footer(inputs)


show.draw_page(page)
