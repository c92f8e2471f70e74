"""Float formats, the landscape: how far all formats reach, how finely they divide, every code of the small ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import streamlit as st

from core.fields import choice
from core.floats.formats import FORMATS, FloatFormat
from core.floats.range_and_precision import GRID_BITS, explain, grid, reach, steepness, takeaway
from core.floats.typed_numbers import code_text
from core.limits import cached
from core.views.floats.charts import dynamic_range, spacing
from pages.common import show
from pages.common.components import component
from pages.common.figures import kept
from pages.common.theme import TOKENS, projecting
from pages.floats import bits
from pages.floats.inputs import COMMON, FloatInputs, NumberInputs

_GRID = "floats:codes"
_STAIRS = ("fp32", "tf32", "fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2", "fp4_e2m1fn")


def landscape(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """The panel, running only while it is open."""
    with inputs.panel(
        "land", "The landscape: reach and spacing of every format, all codes of the small ones"
    ) as opened:
        if opened.open:
            with show.errors_under(inputs):
                _landscape(inputs, number_inputs)


def _landscape(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """Range and precision of every format, the grid of a small format's codes, and what all formats can hold."""
    fmt = number_inputs.fmt
    here = reach(fmt)
    show.takeaway(takeaway(fmt))
    left, right = (st.container(), st.container()) if projecting() else st.columns([1.12, 1])
    with left:
        show.chart(
            kept(dynamic_range, _and(fmt, _STAIRS if projecting() else tuple(FORMATS)), fmt, TOKENS),
            alt=f"Dynamic range of every format on one logarithmic axis. {fmt.title} reaches from "
            f"2^{here.smallest:.0f} to 2^{here.largest:.1f}; fp64 reaches furthest, fp4 least of the formats listed.",
            key="floats:range",
        )
    with right:
        show.chart(
            kept(spacing, _and(fmt, _STAIRS), fmt, TOKENS),
            alt=f"Relative distance between neighbours against magnitude. {steepness(fmt)}",
            key="floats:spacing",
        )
    codes(inputs, number_inputs)
    _limits(inputs, fmt)


def _limits(inputs: FloatInputs, fmt: FloatFormat) -> None:
    """What every format can hold, and how that of the chosen one is computed: folded, as it explains the others."""
    title = "What each format can hold, and how range and spacing are computed"
    with inputs.panel("forms", title) as panel:
        if panel.open:
            bits.format_table(fmt)
            show.derive(explain(fmt))


def _and(fmt: FloatFormat, names: Iterable[str]) -> tuple[FloatFormat, ...]:
    """The formats of these names, and ``fmt``."""
    return tuple(dict.fromkeys((*(FORMATS[name] for name in names), fmt)))


def codes(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """All codes of a format of up to 8 bits, each a button that loads it into the strip."""
    fmt = number_inputs.fmt
    if fmt.bits > GRID_BITS:
        show.note(
            f"A format of up to {GRID_BITS} bits, such as {FORMATS[COMMON[5]].title}, also shows all its codes here."
        )
        return
    with show.errors_under(inputs):
        colour = inputs.ask(choice("paint", "All codes, coloured by", ["class", "value"], "class", few=True))

    def pick() -> None:
        sent: Any = getattr(st.session_state.get(_GRID), "pick", None)
        if not isinstance(sent, dict) or sent.get("format") != inputs.chosen().name:
            return
        text = sent.get("code")
        if isinstance(text, str) and len(text) <= 2 and text.strip("0123456789abcdef") == "" and text:
            code = int(text, 16)
            if code >> fmt.bits == 0:
                inputs.type_in(code_text(code, fmt, number_inputs.overflow))

    data = {**_cells(fmt), "colour": colour, "code": number_inputs.code}
    component("codes")(data=data, key=_GRID, on_pick_change=pick)


@cached("arrays_kept")
def _cells(fmt: FloatFormat) -> dict[str, object]:
    words = {"inf": "infinity", "nan": "not a number"}
    return {
        "format": fmt.name,
        "bits": fmt.bits,
        "label": f"All {1 << fmt.bits} codes of {fmt.title}, by their bits",
        "hint": "Point at a code to read it; click it to load it into the strip above.",
        "cells": [
            {"kind": words.get(c.kind, c.kind), "text": c.short, "heat": round(c.heat, 3), "full": c.text}
            for c in grid(fmt)
        ],
    }
