"""The Tensor views page's first row: code on x, its start shape and element type; under More, its start strides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.limits import limit
from core.tensors import START_DTYPES, ExpressionError, Trace, read_shape, trace
from pages.parts.inputs import Inputs

SHAPE, DTYPE, CODE = "2, 3", START_DTYPES[0], "x.t().view(2, 3)"
FIELDS: Mapping[str, str] = {"x": CODE, "shape": SHAPE, "dtype": DTYPE}

PICTURE = "t:storage"
"""Key of the component that draws storages and tensors."""

CODE_HELP = (
    "Up to twelve lines of PyTorch on x, such as y = x.t() and then y.view(6). The code is read, not run as Python: "
    "only the operations listed at the end of the page do anything."
)


def story(code: str, shape: str = SHAPE, dtype: str = DTYPE) -> dict[str, object]:
    """One chip: every field, so that the chip is lit only when all of them match."""
    return {"x": code, "shape": shape, "dtype": dtype}


class TensorInputs(Inputs):
    """The page's inputs, with what its callbacks need."""

    def put(self, code: str) -> None:
        """In a callback: make ``code`` the expression."""
        st.session_state[self.key("x")] = code

    def take_fix(self) -> None:
        """In the picture's callback: the code that it offers instead of a refused view."""
        code: Any = getattr(st.session_state.get(PICTURE), "fix", None)
        if isinstance(code, str):
            self.put(code[: limit("expression_chars")])


def ask(inputs: TensorInputs) -> dict[str, str]:
    """Draw the row; what was typed, by field."""
    code, start = st.columns([2.1, 1])
    with code:
        typed = inputs.lines("x", "Code on x", CODE, max_chars=limit("expression_chars"), help=CODE_HELP)
    with start:
        shape = inputs.text("shape", "Start shape of x", SHAPE, max_chars=limit("number_chars"))
        dtype = inputs.choice("dtype", "Element type", START_DTYPES, DTYPE, segmented=True)
    return {"x": typed, "shape": shape, "dtype": dtype}


def traced(inputs: TensorInputs, typed: Mapping[str, str]) -> Trace:
    """The trace of what was typed, or of the last good input when that cannot run; says why in ``inputs.errors``."""
    try:
        made = trace(typed["x"], read_shape(typed["shape"]), dtype=typed["dtype"])
    except ExpressionError as problem:
        good = {name: inputs.last_good(name, default) for name, default in FIELDS.items()}
        shown = " · ".join(good["x"].splitlines())
        inputs.fail(str(problem), f"Still showing `{shown}` on {good['dtype']} of shape {good['shape']}.")
        return trace(good["x"], read_shape(good["shape"]), dtype=good["dtype"])
    for name, text in typed.items():
        inputs.keep(name, text)
    return made
