"""Tensor views, panels on memory: cache lines of a row walk and a column walk, and elements that overlap."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import streamlit as st

from core import fields
from core.fields import choice, quantity
from core.limits import limit
from core.tensors.examples.cache_walk import Walk, WalkBusyError, WalkTiming, explanations, headline, time_walks, walks
from core.tensors.examples.overlap import HAZARDS, METHODS, Hazard, overlap_of, replay
from core.tensors.layout import TensorLayout
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.text import read_shape
from core.tensors.tracing.steps import Trace, TraceStep
from core.units import QuantityText, format_exact
from core.views.tensors.charts_cache_walk import walk_picture
from core.views.tensors.sizes import bytes_text
from core.views.tensors.text import shape_text
from pages.common import show
from pages.common.components import component
from pages.common.figures import wire
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS

RESULT, MATRIX, TRANSPOSE = "the result above", "1024 × 64 float32", "its transpose"
_EXAMPLES = {MATRIX: TensorLayout((1024, 64), (64, 1)), TRANSPOSE: TensorLayout((64, 1024), (1, 64))}
_TIMED = "t:walk:timed"


def _result(run: Trace) -> TraceStep:
    """The tensor at the end: where the last step was refused, the one it was tried on."""
    step = run.last
    return run.steps[step.inputs[0] if step.inputs else 0] if step.kind == "refused" else step


def memory_walk(inputs: Inputs, run: Trace) -> None:
    """Which cache lines both walks touch in a model of the cache, and how long both take on this machine."""
    head = show.slot()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        which = inputs.ask(choice("walk", "Tensor to walk through", [MATRIX, TRANSPOSE, RESULT], MATRIX, few=True))
        clicked = st.button("Time both walks on this machine", key=f"{_TIMED}:button", help="One second on one core.")
    step = _result(run)
    layout, item = (step.layout, step.element_size) if which == RESULT else (_EXAMPLES[which], 4)
    name = f"`{run.label(step)}`" if which == RESULT else which[:1].upper() + which[1:]
    if clicked:
        _time()
    timed: WalkTiming | str | None = st.session_state.get(_TIMED)
    if isinstance(timed, str):
        show.error(timed)
    elif timed is not None:
        text, how = timed.headline
        show.good(f"{text} {how}")
    with head:
        try:
            row, column = _walks(layout, item)
        except ValueError as problem:
            show.takeaway(f"{name}: {problem}")
            return
        sentence, detail = headline(row, column)
        show.takeaway(f"{sentence} {detail}")
    if not row.accesses:
        return
    show.chart(
        _picture(layout, item),
        alt=f"Cache line against access, row by row and column by column. {_plain(sentence)}",
        key="t:walk:chart",
    )
    show.small_table(
        [show.Column("Walk"), *(show.Column(name, numeric=True) for name in _COLUMNS)],
        [_row("Row by row", row), _row("Column by column", column)],
        caption=f"{name}: shape {shape_text(layout.shape)}, strides {shape_text(layout.stride)}, {item} B each; "
        "lines of 64 B",
    )
    show.how(
        lambda: [*explanations(row, column), *(timed.explanations if isinstance(timed, WalkTiming) else ())],
        key="t:walk:how",
        label="How lines are counted",
    )


_COLUMNS = ("Elements", "Lines touched", "Lines fetched", "Bytes fetched", "Bytes used", "Fetched with a 32 KiB cache")


def _row(name: str, walk: Walk) -> tuple[str, ...]:
    return (
        name,
        *map(format_exact, (walk.accesses, walk.touched, walk.single.fetched)),
        bytes_text(walk.single.fetched_bytes),
        QuantityText(
            f"{bytes_text(walk.single.used_bytes)} ({100 * walk.single.use:.3g} %)", walk.single.used_bytes, "B"
        ),
        format_exact(walk.cache.fetched),
    )


def _time() -> None:
    with st.spinner("Timing both walks …"):
        try:
            st.session_state[_TIMED] = time_walks()
        except WalkBusyError as busy:
            st.session_state[_TIMED] = str(busy)


@lru_cache(maxsize=64)
def _walks(layout: TensorLayout, item: int) -> tuple[Walk, Walk]:
    return walks(layout, item)


@lru_cache(maxsize=64)
def _picture(layout: TensorLayout, item: int) -> dict[str, Any]:
    return wire(walk_picture(*_walks(layout, item), TOKENS))


def _plain(text: str) -> str:
    return text.replace("**", "").replace("`", "")


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


def overlap(inputs: Inputs, run: Trace) -> None:
    """Which elements of the result share memory, and an in-place operation replayed write by write."""
    step = _result(run)
    try:
        message = " ".join(overlap_of(step.layout, step.element_size).headline)
    except ValueError as problem:
        message = str(problem)
    show.takeaway(f"`{run.label(step)}` above: {message}")
    presets = show.slot()
    with show.errors_under(inputs):
        view, shape, verb, by = st.columns([2.6, 1, 1, 0.8])
        with view:
            text = inputs.ask(fields.text("view", "View of x", _FIRST["view"], max_chars=limit("expression_chars")))
        with shape:
            sizes = inputs.ask(fields.text("vshape", "Shape of x", _FIRST["vshape"], max_chars=limit("number_chars")))
        with verb:
            method = inputs.ask(choice("verb", "In place", METHODS, _FIRST["verb"]))
        with by:
            amount = int(inputs.ask(quantity("by", "By", _FIRST["by"], "count", low=0, high=1000, whole=True)))
    inputs.presets("Hazards", HAZARD_PRESETS, into=presets, key="hazards")
    try:
        hazard = replay(text, read_shape(sizes), method, amount)
        inputs.keep_good("view", text)
        inputs.keep_good("vshape", sizes)
    except ExpressionError as problem:
        text, sizes = inputs.last_good("view", _FIRST["view"]), inputs.last_good("vshape", _FIRST["vshape"])
        show.error(f"{problem} Still showing `{text}` on shape {sizes}.")
        hazard = replay(text, read_shape(sizes), method, amount)
    message, detail = hazard.headline
    st.html(f'<p class="np-takeaway">{show.rich(f"{message} {detail}")}</p>')
    if hazard.refused:
        show.note(f"{hazard.error_type}: {hazard.error_message}")
    if max(len(hazard.writes), len(hazard.before)) <= _DRAWN and hazard.writes:
        component("replay")(data=_replayed(hazard, text, method, amount), key="t:replay")
    show.how(lambda: hazard.overlap.explanations, key="t:overlap:how", label="How overlap is counted")


def _replayed(hazard: Hazard, view: str, method: str, amount: int) -> dict[str, Any]:
    shape = hazard.overlap.layout.shape
    signs = {"add_": f"+ {amount}", "sub_": f"− {amount}", "mul_": f"× {amount}", "fill_": f"filled with {amount}"}
    texts = [str(value) for value in (*hazard.sequential, *hazard.once, *hazard.before)]
    return {
        "view": view,
        "shape": shape_text(shape),
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
