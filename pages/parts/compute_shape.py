"""Compute budget, a shape of one's own: edited number by number, as one line of text, or read from a config.json."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.limits import limit
from core.models.catalog import CatalogModel
from core.models.spec import SpecError, TransformerSpec
from core.models.spec_text import EXAMPLE, SpecTextError, read_spec, write_spec
from core.planning.own import MIXTURE, PASTE, SIZES, ConfigSaid, about, edited, own_model, read_config, size_of
from pages.parts import show
from pages.parts.inputs import Inputs

OWN = "Own (config.json)"
_TROUBLE = "compute:shape:trouble"
_SAID = "compute:config"
_SWITCHES = {"glu": "Gated FFN", "tied_head": "Tied head", "mtp_modules": "MTP"}
_SWITCH_HELP = {
    "mtp_modules": "Multi-token prediction: a module beside the main model, as DeepSeek-V3 trains one, that predicts "
    "a token further on. It is one more layer, a projection, and the head once more."
}


def remember(inputs: Inputs, name: str, default: str) -> None:
    """The field is not drawn now: keep its text for the link, and for when it comes back.

    Streamlit forgets a widget that is not drawn, and writes into the address only what was in its state before. So
    the text goes into its state at once, where the field finds it again. A long text at its default, which is a whole
    shape that nobody asked about, stays out of the link.
    """
    key = inputs.key(name)
    kept = str(st.session_state.get(f"{key}:good") or st.query_params.get(key) or default)
    text = kept if len(kept) <= limit("spec_chars") else default
    if text != default or len(default) <= limit("number_chars"):
        inputs.fields[key] = text
    st.session_state.setdefault(key, text)


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
