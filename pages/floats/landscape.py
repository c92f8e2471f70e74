"""Float formats, range and precision: the reach and spacing of every format, and the codes of the small ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import streamlit as st

from core.fields import choice
from core.floats.formats import FORMATS, FloatFormat
from core.floats.range_and_precision import GRID_BITS, explain, grid
from core.floats.typed_numbers import code_text
from core.limits import cached
from core.messages import message
from core.views.floats.charts import dynamic_range, spacing
from core.views.floats.text import kind_label, range_takeaway
from pages.common import show
from pages.common.components import component
from pages.common.figures import kept
from pages.common.theme import TOKENS, projecting
from pages.floats import bits
from pages.floats.inputs import FloatInputs, NumberInputs

_GRID = "floats:codes"
_COLOR = choice(
    "paint",
    message("formats.codes.color"),
    ["class", "value"],
    "class",
    few=True,
    short=(message("formats.codes.by_class"), message("formats.codes.by_value")),
)
_STAIRS = ("fp32", "tf32", "fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2", "fp4_e2m1fn")


def landscape(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """Draw the panel, which runs only while it is open."""
    with inputs.panel("land", message("formats.title")) as opened:
        if opened.open:
            with show.errors_under(inputs):
                _landscape(inputs, number_inputs)


def _landscape(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """Draw range and precision of every format, the codes of a small one, and the limits of all."""
    fmt = number_inputs.fmt
    show.takeaway(range_takeaway(fmt))
    left, right = (st.container(), st.container()) if projecting() else st.columns([1.12, 1])
    with left:
        show.chart(
            kept(dynamic_range, _and(fmt, _STAIRS if projecting() else tuple(FORMATS)), fmt, TOKENS),
            alt=message("formats.range_alt", takeaway=range_takeaway(fmt)),
            key="floats:range",
        )
    with right:
        show.chart(
            kept(spacing, _and(fmt, _STAIRS), fmt, TOKENS),
            alt=message("formats.spacing_alt", takeaway=range_takeaway(fmt)),
            key="floats:spacing",
        )
    codes(inputs, number_inputs)
    with inputs.panel("forms", message("formats.limits.title")) as panel:
        if panel.open:
            bits.format_table(fmt)
            show.derive(explain(fmt))


def _and(fmt: FloatFormat, names: Iterable[str]) -> tuple[FloatFormat, ...]:
    """Return the formats of these names, and ``fmt``."""
    return tuple(dict.fromkeys((*(FORMATS[name] for name in names), fmt)))


def codes(inputs: FloatInputs, number_inputs: NumberInputs) -> None:
    """Draw all codes of a format of up to 8 bits, each a button that loads it into the strip."""
    fmt = number_inputs.fmt
    if fmt.bits > GRID_BITS:
        show.note(message("formats.codes.too_many", bits=float(GRID_BITS)))
        return
    with show.errors_under(inputs):
        color = inputs.ask(_COLOR)

    def pick() -> None:
        sent: Any = getattr(st.session_state.get(_GRID), "pick", None)
        if not isinstance(sent, dict) or sent.get("format") != inputs.chosen().name:
            return
        text = sent.get("code")
        if isinstance(text, str) and len(text) <= 2 and text.strip("0123456789abcdef") == "" and text:
            code = int(text, 16)
            if code >> fmt.bits == 0:
                inputs.type_in(code_text(code, fmt, number_inputs.overflow))

    data = {**_cells(fmt), "colour": color, "code": number_inputs.code}
    component("codes")(data=data, key=_GRID, on_pick_change=pick)


@cached("arrays_kept")
def _cells(fmt: FloatFormat) -> dict[str, object]:
    return {
        "format": fmt.name,
        "bits": fmt.bits,
        "label": message("formats.codes.label", codes=float(1 << fmt.bits), fmt=fmt.title),
        "hint": message("formats.codes.hint"),
        "cells": [
            {"kind": kind_label(c.kind), "text": c.short, "heat": round(c.heat, 3), "full": c.text} for c in grid(fmt)
        ],
    }
