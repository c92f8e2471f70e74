"""Measure: what this machine really does, next to what it promises, and into the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from core.store.last_measured import last_measured
from core.units import format_duration
from core.views.benchmark import matmul, others, state
from core.views.benchmark.common import measured_line
from pages.common import show
from pages.common.experiments.panel import draw_experiments, switches
from pages.common.inputs import Inputs
from pages.common.registry import MEASURE
from pages.measure import panels
from pages.measure.running import ask, ended, live, own_snapshot, say_why_not, shared_keeper, shared_runner

_NOTHING = "Nothing has been measured here yet."
_LAYERED = ("attention", "layer")


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
            show.note(f"Takes about {format_duration(expected_s(wanted), 2)}.")
    if wanted.layer is not None:
        for place, field in zip(st.columns([1.5, 0.8, 0.9, 2.2]), form.part("layer"), strict=False):
            with place:
                inputs.draw(field)
    show.input_errors(inputs)


def _results(record: Record, more: Record, records: Sequence[Record]) -> None:
    """What a measurement found, what that means for a plan, and what else was timed. more: with that added. records:
    all there are, the newest first."""
    if record.in_use:
        show.error(state.in_use(record.in_use))
    own: tuple[Kind, ...] = panels.kinds_of(record)
    timed: list[Kind] = [kind for kind in own if others.says(record, kind)]
    led: Kind | None = None
    if "matmul" in record.programme.kinds:
        with show.guarded("The rates"):
            panels.matmuls(more, led=False)
        own = ()
    elif timed:
        led = timed[0]
        show.answer(others.says(record, led), measured_line(record))
    for kind in own:
        panels.kind(more, kind, led=kind == led)
    panels.use(more)
    if led and (older := next(filter(matmul.bests, records), None)):
        with show.question("How fast are matmuls?"):
            panels.matmuls(older, led=True)
    alike = [one for one in reversed(records) if one.method == record.method and not one.in_use]
    lines = {p.item.kind: measured_line(one) for one in alike for p in one.points}
    for kind in panels.kinds_of(more):
        if kind not in own:
            panels.kind(more, kind, measured="" if kind in timed else lines.get(kind, ""))


def _of_this_device(kept: Iterable[Record], newest: Record | None) -> list[Record]:
    """What was measured on the device of this machine, the newest first."""
    here = machine()
    known = {r.id: r for r in kept if r.programme.device == here.kind and r.facts and here.has(here.kind, r.facts.name)}
    if newest:
        known[newest.id] = newest
    return sorted(known.values(), key=lambda record: record.started, reverse=True)


def page() -> None:
    """The button, the running measurement or the latest one, and how it was done."""
    runner, here = shared_runner(), machine()
    inputs = Inputs(MEASURE, measure_form(here.kind, MEASURE.prefix, switches(MEASURE.id)))
    choice, wanted = _read_inputs(inputs)
    latest = runner.latest_with_results()
    kept, unreadable = last_measured()
    records = _of_this_device(kept, latest.record if latest else None)
    record = records[0] if records else None
    more = panels.supplemented(record, [one for one in records[1:] if not one.in_use]) if record else None
    _draw(inputs, wanted, waits=own_snapshot(runner) is not None, known=record is not None)
    say_why_not()
    for problem in filter(None, (unreadable, shared_keeper().problem)):
        show.error(problem)
    if not live(runner):
        ended(runner)
        if record and more:
            _results(record, more, records)
            show.note(state.machine_line(here))
        else:
            show.answer(*state.invitation(here, choice, wanted, expected_s(wanted)))
            show.note(state.machine_line(here))
            steps = state.steps(items(wanted), expected_s(wanted))
            show.small_table(state.STEPS, steps, caption="What will happen", words=None)
    content = {
        "roof": lambda: panels.roof(more) if more else show.note(_NOTHING),
        "every": lambda: panels.every(more) if more else show.note(_NOTHING),
    }
    for field in PANELS:
        with inputs.panel(field.id, field.label) as panel:
            if panel.open:
                content[field.id]()
    draw_experiments(inputs)
    show.how(lambda: panels.opened(more) if more else (), notes=state.method(here.kind), key="measure:how")
    show.footer(inputs)


show.draw_page(page)
