"""Compute budget, a shape of one's own: edited number by number, as one line of text, or read from a config.json."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.limits import limit
from core.models.own import MIXTURE, PASTE, SIZES, ConfigSaid, about, edited, read_config, size_of
from core.models.spec import SpecError, TransformerSpec
from core.models.spec_text import read_spec, write_spec
from core.planning.answer.form import SHAPE
from pages.parts import show
from pages.parts.inputs import Inputs

_TROUBLE = "compute:shape:trouble"
_SAID = "compute:config"
_SWITCHES = {"glu": "Gated FFN", "tied_head": "Tied head", "mtp_modules": "MTP"}
_SWITCH_HELP = {
    "mtp_modules": "Multi-token prediction: a module beside the main model, as DeepSeek-V3 trains one, that predicts "
    "a token further on. It is one more layer, a projection, and the head once more."
}


def own_shape(inputs: Inputs) -> None:
    """Draw the shape's fields; the line of text, which is in the link, decides."""
    with st.container(key="compute_shape"):
        spec = read_spec(inputs.reading.values[SHAPE.id])
        _numbers(inputs, spec)
        inputs.draw(SHAPE)
        _config(inputs)
        if trouble := st.session_state.pop(_TROUBLE, ""):
            inputs.fail(trouble, "The shape stays as it was.")
        show.note(about(spec))


def _numbers(inputs: Inputs, spec: TransformerSpec) -> None:
    def change(field: str) -> None:
        value = st.session_state[inputs.key(f"e_{field}")]
        try:
            if field in _SWITCHES:
                changed = replace(spec, **{field: int(value) if field == "mtp_modules" else value})
            else:
                changed = edited(spec, field, int(value or 0))
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
                st.number_input(label, low, high, key=key, on_change=change, args=(field,), width=110)
            if fields is MIXTURE:
                for field, label in _SWITCHES.items():
                    key = inputs.key(f"e_{field}")
                    st.session_state[key] = bool(getattr(spec, field))
                    st.toggle(label, key=key, on_change=change, args=(field,), help=_SWITCH_HELP.get(field))


def _config(inputs: Inputs) -> None:
    """A config.json, pasted or uploaded, becomes the shape; what is too long for a link stays out of it."""

    def take(text: str) -> None:
        said = read_config(text) if text.strip() else None
        st.session_state[_SAID] = said
        if said and said.spec:
            st.session_state[inputs.key("shape")] = write_spec(said.spec)

    def pasted() -> None:
        take(st.session_state.get(inputs.key("config")) or "")

    def uploaded() -> None:
        if file := st.session_state.get(inputs.key("upload")):
            take(file.getvalue().decode("utf-8", errors="replace"))

    with st.expander("Read a Hugging Face config.json"):
        left, right = st.columns([2, 1])
        with left:
            # Any length is taken, since a box with a most empties itself: the reader says what is too long.
            st.text_area("Paste it here", key=inputs.key("config"), height=120, on_change=pasted, placeholder=PASTE)
        with right:
            st.file_uploader(
                "or choose the file", type="json", max_upload_size=1, key=inputs.key("upload"), on_change=uploaded
            )
        said: ConfigSaid | None = st.session_state.get(_SAID)
        if said:
            (show.good if said.clean else show.error)(said.text)
