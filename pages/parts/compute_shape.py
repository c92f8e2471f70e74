"""Compute budget, a shape of one's own: edited number by number, as one line of text, or read from a config.json."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.limits import limit
from core.models.catalog import CatalogModel
from core.models.spec import SpecError, TransformerSpec
from core.models.spec_text import EXAMPLE, SpecTextError, read_spec, write_spec
from core.planning.own import MIXTURE, SIZES, about, edited, own_model, size_of
from pages.parts import show
from pages.parts.inputs import Inputs

OWN = "Own shape, or a config.json"
_TROUBLE = "compute:shape:trouble"
_SWITCHES = {"glu": "Gated feed-forward", "tied_head": "Head shares the embedding"}


def own_shape(inputs: Inputs) -> CatalogModel:
    """Draw the shape's fields and give the model they describe; the line of text, which is in the link, decides."""
    with st.container(key="compute_shape"):
        place = show.slot()
        text = inputs.text(
            "shape",
            "The whole shape as text",
            EXAMPLE,
            max_chars=limit("spec_chars"),
            help="Every field of the shape that is not at its default. It stands in the link. Parts are written "
            "experts.count=8 experts.per_token=2 experts.width=14336, latent.kv_rank=512, window.size=4096.",
        )
        try:
            spec = read_spec(text)
            inputs.keep("shape", text)
        except SpecTextError as problem:
            spec = read_spec(inputs.last_good("shape", EXAMPLE))
            inputs.fail(f"Shape: {problem}", "Still using the last good one.")
        with place:
            _numbers(inputs, spec)
        _config(inputs)
        if trouble := st.session_state.pop(_TROUBLE, ""):
            inputs.fail(trouble, "The shape stays as it was.")
        show.note(about(spec))
    return own_model(spec)


def _numbers(inputs: Inputs, spec: TransformerSpec) -> None:
    def change(field: str) -> None:
        value = st.session_state[inputs.key(f"e_{field}")]
        try:
            changed = replace(spec, **{field: value}) if field in _SWITCHES else edited(spec, field, int(value or 0))
            st.session_state[inputs.key("shape")] = write_spec(changed)
        except SpecError as problem:
            st.session_state[_TROUBLE] = f"No transformer has this shape: {problem}"

    high = limit("model_dimension")
    for fields in (SIZES, MIXTURE):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            for field, label in fields.items():
                key = inputs.key(f"e_{field}")
                st.session_state[key] = size_of(spec, field)
                low = 0 if field in MIXTURE or field == "ffn" else 1
                st.number_input(label, low, high, key=key, on_change=change, args=(field,), width=128)
            if fields is MIXTURE:
                for field, label in _SWITCHES.items():
                    key = inputs.key(f"e_{field}")
                    st.session_state[key] = getattr(spec, field)
                    st.toggle(label, key=key, on_change=change, args=(field,))


def _config(inputs: Inputs) -> None:
    """Placeholder until the reader lands."""
