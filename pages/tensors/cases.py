"""Tensor views, the panel of surprises: results that look wrong but are not, and steps torch does not take."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import streamlit as st

from core.fields import choice
from core.tensors.examples.surprises import CASES, NEGATIVE, NegativePreset, NegativeStep, negative_step
from core.views.tensors.charts import negative_picture
from core.views.tensors.sizes import bytes_text
from core.views.tensors.text import shape_text, word
from pages.common import show
from pages.common.components import component
from pages.common.inputs import Inputs
from pages.tensors.inputs import TensorInputs, preset_texts

_TABLE = "t:cases"


def odd(inputs: TensorInputs) -> None:
    """Results that surprise, and under them the negative steps that torch does not take."""
    _surprises(inputs)
    _negative_steps(inputs)


def _surprises(inputs: TensorInputs) -> None:
    """The table of cases; a click on one runs it above."""
    fields = [preset_texts(case.source, ", ".join(map(str, case.shape)), case.dtype) for case in CASES]
    now: dict[str, Any] = {name: st.session_state.get(inputs.key(name)) for name in fields[0]}

    def pick() -> None:
        sent: Any = getattr(st.session_state.get(_TABLE), "pick", None)
        if isinstance(sent, int) and 0 <= sent < len(fields):
            for name, value in fields[sent].items():
                st.session_state[inputs.key(name)] = value

    component("cases")(
        data={
            "headings": ("Case: click to see it above", "One would say", "torch gives", "Why that is right"),
            "rows": _rows(),
            "here": fields.index(now) if now in fields else -1,
        },
        key=_TABLE,
        on_pick_change=pick,
    )


@lru_cache(maxsize=1)
def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for case in CASES:
        last = case.run().last
        rows.append(
            {
                "title": case.title,
                "code": case.source,
                "shape": f"x of shape {shape_text(case.shape)}",
                "looks": case.looks,
                "gives": (
                    f"{shape_text(last.layout.shape)}, strides {shape_text(last.layout.stride)}",
                    f"{'' if last.is_contiguous else 'not '}contiguous",
                    f"{word(last)}, {bytes_text(last.bytes_allocated)}",
                ),
                "why": case.why,
            }
        )
    return rows


def _negative_steps(inputs: Inputs) -> None:
    """numpy's view with a negative stride, beside torch's refusal and the copy it offers instead."""
    labels = [preset.label for preset in NEGATIVE]
    chosen = inputs.ask(choice("neg", "An index with a negative step", labels, labels[0], few=True))
    step = _negative(NEGATIVE[labels.index(chosen)])
    text, detail = step.headline
    st.html(f'<p class="np-takeaway">{show.rich(f"{text} {detail}")}</p>')
    component("storage")(data=negative_picture(step), key="t:negative")
    if step.handed_over[0]:
        show.note(f"`torch.from_numpy` refuses numpy’s view as well: {step.handed_over[0]}: {step.handed_over[1]}")


@lru_cache(maxsize=16)
def _negative(preset: NegativePreset) -> NegativeStep:
    return negative_step(preset)
