"""Measure: what this machine really does, next to what it promises, and into the plan."""

from __future__ import annotations

import streamlit as st

from core.measure.choices import CHOICES, programme
from core.measure.device import machine
from core.measure.form import LENGTH, MICRO_BATCH, MODEL, PANELS, WHAT, measure_form
from core.measure.programme import LayerShape, Programme
from core.measure.record import Record
from core.measure.shape import layer_shape
from core.measure.showing import state
from core.measure.timing.kinds import expected_s
from core.models.catalog import model_named
from pages.measure import panels
from pages.measure.running import ask, ended, live, mine, past, say_why_not, shared_runner
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import DEVICE

_LAYERED = ("operations", "attention", "layer")
"""Kinds that take the shapes of a model's layer."""


def _layer(inputs: Inputs) -> LayerShape:
    values = inputs.reading.values
    spec = model_named(values[MODEL.id]).spec
    return layer_shape(spec, values[MODEL.id], int(values[LENGTH.id]), int(values[MICRO_BATCH.id]))


def _asked(inputs: Inputs) -> tuple[str, Programme]:
    values = inputs.reading.values
    choice = next(key for key, one in CHOICES.items() if one.name == values[WHAT.id])
    layer = _layer(inputs) if any(kind in CHOICES[choice].kinds for kind in _LAYERED) else None
    return choice, programme(choice, machine().kind, int(values["n"]), float(values["each"]), layer)


def _draw(inputs: Inputs, wanted: Programme, *, waits: bool, known: bool) -> None:
    """The row of inputs, with the button at its end."""
    runner, form = shared_runner(), inputs.form
    row = st.columns([1.5, 0.75, 0.8, 1.15, 1], vertical_alignment="bottom")
    for place, name in zip(row, (WHAT.id, "n", "each"), strict=False):
        with place:
            inputs.draw(form[name])
    with row[3]:
        name = "Measure on this GPU" if wanted.device == "cuda" else "Measure on this CPU"
        st.button(name, type="primary", key="d:run", disabled=waits, on_click=ask, args=(runner, wanted))
    if known:  # before the first run the answer says it
        with row[4].container(key="measure_estimate"):
            show.note(state.estimate(expected_s(wanted)))
    if wanted.layer is not None:
        for place, one in zip(st.columns([1.5, 0.8, 0.9, 2.2]), form.part("layer"), strict=False):
            with place:
                inputs.draw(one)
    show.input_errors(inputs)


def _found(record: Record) -> None:
    """What a measurement found."""
    with show.guarded("The rates"):
        if "matmul" in record.programme.kinds:
            panels.matmuls(record, key="device:rates")
    for kind in panels.kinds_of(record):
        panels.kind(record, kind)


def page() -> None:
    """The button, the running measurement or the latest one, and how it was done."""
    runner, here = shared_runner(), machine()
    inputs = Inputs(DEVICE, measure_form(here.kind, DEVICE.prefix))
    choice, wanted = _asked(inputs)
    found = past(runner)
    _draw(inputs, wanted, waits=mine(runner) is not None, known=bool(found))
    show.note(state.machine_line(here))
    say_why_not()
    if not live(runner):
        ended(runner)
        if found:
            _found(found[0])
        else:
            show.answer(*state.invitation(here, choice, wanted, expected_s(wanted)))
    if found:
        for one, content in zip(PANELS, (panels.roof, panels.every), strict=False):
            with inputs.panel(one.id, one.label) as panel:
                if panel.open:
                    content(found[0])
    show.how(
        lambda: panels.opened(found[0]) if found else (),
        notes=state.method(here.kind),
        key="device:how",
    )
    show.footer(inputs)


show.body(page)
