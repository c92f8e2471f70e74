"""A plan's model: fields in a row, and a shape of one's own, edited by number, as text, or from a config.json."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.fields import SHARED
from core.limits import limit
from core.messages import message
from core.models.building.events import Built, ModelRefused, counted, laid_out
from core.models.building.jobs import BuildRunner
from core.models.configs.custom import (
    MIXTURE,
    PASTE,
    SIZES,
    ConfigSaid,
    about,
    about_built,
    about_counted,
    edited,
    read_config,
    read_model,
    size_label,
    size_of,
)
from core.models.configs.json_text import shorten_config
from core.models.counts_only import write_counted
from core.models.parameters import parameters
from core.models.spec import SpecError, TransformerSpec
from core.models.spec_text import EXAMPLE, write_spec
from core.planning.form.plan_form import MODEL_NAME, SEQ_LEN, SHAPE
from core.planning.plan import OWN_SHAPE
from core.store.locations import data_folder
from core.training.activations.stage import settled
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.server.visitor import visitor
from pages.streamlit_patches import uninterrupted

_TROUBLE = "shape:trouble"
_CONFIG = "shape:config"
_PASTED = "shape:pasted"
"""Where session state has the text that was pasted last: its box is not always drawn."""
_BUILDING, _BUILT, _TAKEN = "shape:building", "shape:built", "shape:taken"
_SWITCHES = {
    "glu": message("sidebar.glu"),
    "tied_head": message("sidebar.tied_head"),
    "tower": message("sidebar.tower"),
    "mtp_modules": message("sidebar.mtp"),
}
_SWITCH_HELP = {"mtp_modules": message("sidebar.mtp_help")}


def adopt_built() -> None:
    """Take over a model that was built since the last run; call it before the page's fields are read."""
    with uninterrupted():
        if text := st.session_state.pop(_BUILT, ""):
            st.session_state[f"{SHARED}_{SHAPE.id}"] = text


def own_model(inputs: Inputs) -> None:
    """Draw the part below the model's field: a box for a config.json, or the shape that was read from it."""
    text, config = inputs.reading.values[SHAPE.id], st.session_state.get(_CONFIG)
    if not text:
        _config(inputs)
    elif config and config.spec and write_spec(config.spec) == text:
        _say(config)
    _building(inputs)


def own_shape(inputs: Inputs) -> None:
    """Draw the shape's fields; the line of text, which is in the link, decides."""
    with st.container(key="own_shape"):
        text = inputs.reading.values[SHAPE.id]
        model = read_model(text) if text else None
        if model is None:
            st.button(message("sidebar.shape_start"), key="plan:start", on_click=inputs.put, args=(SHAPE.id, EXAMPLE))
        elif not model.counted:
            _numbers(inputs, model.spec)
        inputs.draw(SHAPE)
        if model:
            with show.fold(message("sidebar.config_title"), key=inputs.key("fold_config")) as opened:
                if opened.open:
                    _config(inputs)
            if trouble := st.session_state.pop(_TROUBLE, ""):
                inputs.fail(trouble, message("shape.unchanged"))
            show.note(about_counted(model.counted) if model.counted else " ".join(about(model.spec)))


def _numbers(inputs: Inputs, spec: TransformerSpec) -> None:
    def change(field: str) -> None:
        value = st.session_state[inputs.key(f"e_{field}")]
        try:
            if field in _SWITCHES:
                changed = replace(spec, **{field: int(value) if field in ("mtp_modules", "tower") else value})
            else:
                changed = edited(spec, field, int(value or 0))
            st.session_state[inputs.key("shape")] = write_spec(changed)
        except SpecError as problem:
            st.session_state[_TROUBLE] = message("sidebar.shape_invalid", problem=str(problem))

    high = limit("model_dimension")
    for fields in (SIZES, MIXTURE):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            for field in fields:
                key, label = inputs.key(f"e_{field}"), size_label(field)
                st.session_state[key] = size_of(spec, field)
                low = 0 if field in MIXTURE or field == "ffn" else 1
                st.number_input(label, low, high, key=key, on_change=change, args=(field,), width=110)
            if fields is MIXTURE:
                for field, label in _SWITCHES.items():
                    if field == "tower" and not spec.tower:
                        continue
                    key = inputs.key(f"e_{field}")
                    st.session_state[key] = bool(getattr(spec, field))
                    st.toggle(label, key=key, on_change=change, args=(field,), help=_SWITCH_HELP.get(field))


def _take(inputs: Inputs, text: str) -> None:
    """Turn a config.json into the shape, and build and count a model without formulas (callback)."""
    text = shorten_config(text)
    config = read_config(text) if text.strip() else None
    st.session_state[_CONFIG] = config
    for name in (_BUILDING, _TAKEN):
        st.session_state.pop(name, None)
    if config and config.spec:
        inputs.put(SHAPE.id, write_spec(config.spec))
    if config and config.buildable:
        tokens = int(inputs.reading.values[SEQ_LEN.id])
        st.session_state[_BUILDING] = builder().submit(text, tokens, visitor()).key


def read_pasted(inputs: Inputs) -> None:
    """Read the pasted config.json again if a custom model without a shape is selected (callback)."""
    if inputs.now(MODEL_NAME.id) == OWN_SHAPE and not inputs.now(SHAPE.id) and _PASTED in st.session_state:
        _take(inputs, st.session_state[_PASTED])


def _config(inputs: Inputs) -> None:
    """Draw the box for pasting or uploading a config.json, and the result."""
    key, upload = "plan:config", "plan:upload"

    def pasted() -> None:
        text = st.session_state.get(key) or ""
        if len(text) <= limit("config_chars"):
            st.session_state[_PASTED] = text
        _take(inputs, text)

    def uploaded() -> None:
        if file := st.session_state.get(upload):
            _take(inputs, file.getvalue().decode("utf-8", errors="replace"))

    # Any length is taken, since a box with a most empties itself: the reader says what is too long.
    st.session_state.setdefault(key, st.session_state.get(_PASTED, ""))
    st.text_area(message("sidebar.config_paste"), key=key, height=100, on_change=pasted, placeholder=PASTE)
    most = limit("config_file_bytes") >> 20
    st.file_uploader(message("sidebar.config_file"), type="json", max_upload_size=most, key=upload, on_change=uploaded)
    if config := st.session_state.get(_CONFIG):
        _say(config)


def _say(config: ConfigSaid) -> None:
    (show.good if config.clean else show.error)(config.text)


def _building(inputs: Inputs) -> None:
    """Draw how a model that is being built goes."""
    if _BUILDING in st.session_state:
        job = builder().poll(st.session_state[_BUILDING])
        run_every = 1.0 if job and job.under_way else None
        st.fragment(_watch, run_every=run_every)(inputs.key(SHAPE.id), st.session_state.get(_CONFIG))


@st.cache_resource
def builder() -> BuildRunner:
    """Return the one builder of models of this server, which takes turns with those of the machine's other servers."""
    return BuildRunner(data_folder() / "building.lock")


def _watch(shape: str, config: ConfigSaid | None) -> None:
    """Draw how the build goes; its model once it is done, or why there is none."""
    job = builder().poll(st.session_state.get(_BUILDING, ""))
    if job is None:
        show.error(message("sidebar.build_full"))
    elif job.state == "waiting":
        show.note(
            message("sidebar.build_queued", ahead=float(job.ahead)) if job.ahead else message("sidebar.build_next")
        )
    elif job.state == "building":
        show.note(message("sidebar.building", seconds=job.seconds))
    elif isinstance(job.answer, Built) and (model := counted(job.answer)):
        if config and config.spec:
            show.note(about_built(config.spec, model))
            _offer_tower(shape, config.spec, model.total)
            return
        spec = laid_out(job.answer)
        spec = settled(spec) if spec else None
        if st.session_state.get(_TAKEN) != job.key:
            st.session_state[_TAKEN] = job.key
            st.session_state[_BUILT] = write_spec(spec) if spec else write_counted(model)
            st.rerun(scope="app")
        facts: list[str] = [about_counted(model), job.answer.shape_refused]
        if spec:
            facts = [message("shape.read_layers", made=model.made), *about(spec)]
            facts += [about_built(spec, model)] if parameters(spec).total < model.total else []
        show.good(" ".join(filter(None, [message("sidebar.built"), *facts])))
        if spec:
            _offer_tower(shape, spec, model.total)
    else:
        reason = message("sidebar.flops_not_counted")
        if isinstance(job.answer, ModelRefused):
            reason = job.answer.reason
        show.error(message("sidebar.not_built", reason=reason))
        if config and (draft := config.draft):

            def use() -> None:
                st.session_state[shape] = write_spec(draft)

            st.button(message("sidebar.use_draft"), on_click=use)


def _offer_tower(shape: str, spec: TransformerSpec, total: int) -> None:
    """Draw a button that adds what a built model has beyond its text model."""
    beyond = total - parameters(spec).total

    def add() -> None:
        st.session_state[shape] = write_spec(replace(spec, tower=beyond))

    if beyond > 0:
        st.button(message("sidebar.add_tower", parameters=float(beyond)), on_click=add, key="plan:tower")
