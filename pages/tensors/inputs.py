"""The Tensor views page's first row: code on x, its start shape and element type; under More, its start strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.fields import choice, text
from core.limits import limit
from core.messages import message, pick_message
from core.tensors.examples.presets import PRESETS, older_program
from core.tensors.operations.table import topics
from core.tensors.operations.values import ExpressionError
from core.tensors.parsing.asked import Asked
from core.tensors.parsing.text import read_shape
from core.tensors.sealed.given import names_in
from core.tensors.sealed.trust import Decision, decide
from core.tensors.tracing.report import trace_of
from core.tensors.tracing.script import script
from core.tensors.tracing.steps import Trace
from core.tensors.tracing.trace import ELEMENT_DTYPES, follow
from core.views.tensors.text import fact_rows, unread_line_note
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import PageSpec
from pages.common.server.programs import site

SHAPE, DTYPE, CODE = "2, 3", ELEMENT_DTYPES[0], "x.transpose(1, 0).view(2, 3)"
FIELDS: Mapping[str, str] = {"x": CODE, "shape": SHAPE, "stride": "", "dtype": DTYPE}

PICTURE = "t:storage"
"""Key of the component that draws storages and tensors."""

_CODE = text(
    "x",
    message("tensors.field.code"),
    CODE,
    max_chars=limit("expression_chars"),
    lines=True,
    help=message("tensors.field.code_help"),
)
_SHAPE = text("shape", message("tensors.field.shape"), SHAPE, max_chars=limit("number_chars"))
_STRIDE = text(
    "stride",
    message("tensors.field.strides"),
    "",
    max_chars=limit("number_chars"),
    placeholder=message("tensors.field.strides_default"),
    help=message("tensors.field.strides_help"),
)
_DTYPE = choice("dtype", message("tensors.field.dtype"), ELEMENT_DTYPES, DTYPE)


def preset_texts(code: str, shape: str = SHAPE, dtype: str = DTYPE, stride: str = "") -> dict[str, str]:
    """Return a preset with every field, so that it is lit only when all of them match."""
    return {"x": code, "shape": shape, "stride": stride, "dtype": dtype}


def presets_of(group: str) -> dict[str, dict[str, str]]:
    """Return the presets of a group by their labels."""
    return {
        preset.label: preset_texts(preset.source, ", ".join(map(str, preset.shape)), preset.dtype)
        for preset in PRESETS
        if preset.group == group
    }


def why_of(label: str) -> str:
    """Return what a preset is good for."""
    return next(preset.why for preset in PRESETS if preset.label == label)


_OLDER = ("call", "sizes", "view", "vshape", "verb", "by")
"""Fields of panels that had code of their own."""

_SHOWN = ("layout", "views", "programs")
"""Groups of presets that are above the code."""


class TensorInputs(Inputs):
    """The page's inputs, with what its callbacks need. shown: what is drawn, by field: as entered, or the last good."""

    def __init__(self, page: PageSpec) -> None:
        super().__init__(page)
        self.shown: Mapping[str, str] = FIELDS
        self.given: Mapping[str, str] = {}
        self.decision = Decision("run")
        """Whether the code of the first row runs."""

    def ask_code(self, *, of_older_link: bool) -> str:
        """Draw the field for code, decide whether it runs, and return its text."""
        state, key = st.session_state, self.key(_CODE.id)
        arrived = of_older_link or (key not in state and key in st.query_params)
        code: str = self.ask(_CODE)
        ran: str = state.get(f"{key}:ran", "")
        if arrived and code != ran:
            state[f"{key}:linked"] = code
        self.decision = decide(code, site(), linked=state.get(f"{key}:linked", ""), approved=ran)
        if self.decision.verdict == "run":
            state[f"{key}:ran"] = code
        return code

    def told_to_wait(self, code: str) -> bool:
        """Say why code does not run, with a button for code that waits for it; False for code that runs."""

        def approve() -> None:
            st.session_state[f"{self.key('x')}:ran"] = code

        decision = self.decision
        runs = decision.verdict == "run"
        if decision.message:
            show.note(decision.message) if runs else show.answer(decision.message)
        if decision.verdict == "wait":
            label, key = message("tensors.button.run"), self.key("run:x")
            st.button(label, key=key, on_click=approve, type="primary", icon=":material/play_arrow:")
        return not runs

    def type_in(self, code: str) -> None:
        """Make ``code`` the program (callback)."""
        st.session_state[self.key("x")] = code

    def take_fix(self) -> None:
        """Set the code that the picture offers instead of a rejected view (callback)."""
        code: Any = getattr(st.session_state.get(PICTURE), "fix", None)
        if isinstance(code, str):
            self.type_in(code[: limit("expression_chars")])

    def program(self) -> tuple[object, ...]:
        """Return the code as entered."""
        return tuple(st.session_state.get(self.key(name)) for name in FIELDS)


def read_inputs(inputs: TensorInputs) -> dict[str, str]:
    """Draw the row; what was entered, by field."""
    params, older = st.query_params, dict[str, str]()
    if inputs.key("x") not in params:
        older = older_program({name: params.get(inputs.key(name), "") for name in _OLDER})
        params.update({inputs.key(name): text for name, text in older.items()})
        st.session_state.update({inputs.key(name): text for name, text in older.items()})
    code, beside = st.columns([4, 3])
    with code:
        typed = inputs.ask_code(of_older_link=bool(older))
    names = names_in(typed)
    starts = any(item.name == "x" for item in names) or not typed.strip()
    with beside:
        shape, dtype, strides = st.columns(3)
        with shape:
            sizes = inputs.ask(_SHAPE, disabled=not starts)
        with dtype:
            element = inputs.ask(_DTYPE, disabled=not starts)
        with strides:
            steps = inputs.ask(_STRIDE, disabled=not starts)
        with suppress(ExpressionError):
            names = names_in(typed, read_shape(sizes))
        inputs.given = _given(inputs, [item for item in names if item.name != "x"])
    return {"x": typed, "shape": sizes, "stride": steps, "dtype": element}


_HELP = {
    "number": "tensors.field.number_help",
    "tensor": "tensors.field.tensor_help",
    "device": "tensors.field.device_help",
}
"""Roles of names that the code does not define → help of their fields."""


def _given(inputs: TensorInputs, names: Sequence[Asked]) -> dict[str, str]:
    """Draw a field for every name that the code uses and does not define; what stands in them."""
    found: dict[str, str] = {}
    columns = st.columns(2) if names else ()
    for place, item in enumerate(names):
        key, said = f"n_{item.name.replace('.', '_')}", message(_HELP[item.role])
        field = text(key, item.name, item.text, max_chars=limit("number_chars"), help=said)
        with columns[place % 2]:
            found[item.name] = inputs.ask(field).strip() or item.text
    return found


def lecture_presets(inputs: TensorInputs, into: DeltaGenerator) -> None:
    """Draw the presets in their groups, the last ones in a popover; call this after all widgets."""
    with into, st.container(horizontal=True, key="t_presets"):
        for number, group in enumerate(_SHOWN):
            inputs.presets(presets_of(group), into=st.container(width="content"), key=f"presets{number}")
        now = {name: st.session_state.get(inputs.key(name)) for name in FIELDS}
        more = presets_of("more")
        lit = next((label for label, fields in more.items() if fields == now), message("tensors.group.more"))
        # With another label it is another popover, so that a choice closes it and stays in sight.
        inputs.presets(more, into=st.popover(lit, type="tertiary", key=f"t_more_{lit}"), key="presets more")


def traced(inputs: TensorInputs, typed: Mapping[str, str]) -> Trace:
    """Return the trace of what was entered; an invalid start keeps the last valid one, and says why."""
    start = dict(typed)
    try:
        result = _trace(start, inputs)
    except ExpressionError as problem:
        start |= {name: inputs.last_good(name, FIELDS[name]) for name in FIELDS if name != "x"}
        kept = "tensors.note.kept_strides" if start["stride"].strip() else "tensors.note.kept"
        still = pick_message(kept, dtype=start["dtype"], shape=start["shape"], strides=start["stride"])
        inputs.fail(str(problem), still)
        try:
            result = _trace(start, inputs)
        except ExpressionError:
            start |= {name: FIELDS[name] for name in FIELDS if name != "x"}
            result = _trace(start, inputs)
    else:
        for name, text in start.items():
            inputs.keep_good(name, text)
    inputs.shown = start
    for said in unread_line_note(result):
        inputs.fail(said)
    return result


def _trace(typed: Mapping[str, str], inputs: TensorInputs) -> Trace:
    shape, stride = read_shape(typed["shape"]), _stride(typed)
    if inputs.decision.verdict != "run":
        return trace_of((), typed["x"])
    return follow(typed["x"], shape, stride, typed["dtype"], inputs.given)


def _stride(typed: Mapping[str, str]) -> tuple[int, ...] | None:
    return read_shape(typed["stride"]) if typed["stride"].strip() else None


def as_script(inputs: TensorInputs) -> str:
    """Return what is shown as a Python script that runs on its own."""
    shown = inputs.shown
    shape = read_shape(shown["shape"])
    try:
        return script(shown["x"], shape, shown["dtype"], _stride(shown), given=inputs.given)
    except ExpressionError as problem:
        return f"# {problem}"


def answers(run: Trace) -> None:
    """Draw the results of lines that are not tensors."""
    rows = fact_rows(run)
    if rows:
        items = "".join(
            f"<li><small>{line}</small> {show.rich(f'`{_code(text)}`')} {mark} {show.rich(_code(value))}</li>"
            for line, text, value, mark in rows
        )
        st.html(f'<ol class="np-facts">{items}</ol>')


def _code(text: str) -> str:
    return text.replace("`", "'")


def operations() -> None:
    """Draw the operations by topic, and by what they do to memory."""
    kinds = [_kind(topic, tuple(groups.items())) for topic, groups in topics().items()]
    st.html("".join(kinds))


def _kind(title: str, groups: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return a topic of operations as HTML, folded to a line with their number."""
    count = sum(len(examples) for _, examples in groups)
    lists = "".join(
        f"<p>{f'<b>{group}</b> ' if group else ''}{show.rich(' · '.join(f'`{example}`' for example in examples))}</p>"
        for group, examples in groups
    )
    return f'<details class="np-kind"><summary>{title} <small>{count}</small></summary>{lists}</details>'
