"""Tensor views: run an expression on x and see, step by step, what it does to the storage."""

import streamlit as st

from core.limits import limit
from core.tensors import START_DTYPES, ExpressionError, Trace, catalogue, read_shape, trace
from core.tensors.figures import storage_picture
from core.tensors.story import TABLE_HEADINGS, bytes_text, explanations, headline, table
from pages.parts import show
from pages.parts.components import component
from pages.parts.heavy import torch_ready
from pages.parts.inputs import Inputs
from pages.parts.registry import TENSORS

SHAPE, DTYPE, EXPRESSION = "2, 3", START_DTYPES[0], "x.t().view(2, 3)"


def story(shape: str, expression: str, dtype: str = DTYPE) -> dict[str, object]:
    """One chip: every field, so that the chip is lit only when all of them match."""
    return {"shape": shape, "x": expression, "dtype": dtype}


STORIES = {
    "Strides of a 4 × 4": story("4, 4", "x"),
    "Where is [1, 2]?": story("4, 4", "x[1, 2]"),
    "A column is a view": story("2, 3", "x[:, 1]"),
    "Write through a view": story("2, 3", "x.transpose(1, 0)[0, 0] = 100"),
    "Transpose, view: fails": story(SHAPE, EXPRESSION),
    "contiguous() first: works": story("2, 3", "x.t().contiguous().view(2, 3)"),
    "What a copy costs": story("2, 3, 4", "x.view(6, 4).t().reshape(3, 8)", "float32"),
    "View without contiguity": story("4, 6", "x[:, ::2].view(-1)"),
    "Attention-head bug": story(
        "2, 3, 8", "x.view(2, 3, 2, 4).transpose(1, 2).contiguous().transpose(1, 2).view(2, 3, 8)"
    ),
}

inputs = Inputs(TENSORS)


def traced(shape: str, dtype: str, expression: str) -> Trace:
    """The trace of these inputs, or of the last good ones when these cannot run; says why in ``inputs.errors``."""
    try:
        made = trace(expression, read_shape(shape), dtype)
    except ExpressionError as problem:
        good = {name: inputs.last_good(name, str(default)) for name, default in story(SHAPE, EXPRESSION).items()}
        inputs.fail(str(problem), f"Still showing `{good['x']}` on {good['dtype']} of shape {good['shape']}.")
        return trace(good["x"], read_shape(good["shape"]), good["dtype"])
    for name, text in story(shape, expression, dtype).items():
        inputs.keep(name, str(text))
    return made


def use(fixed: str) -> None:
    """Put a working expression into the field."""
    st.session_state[inputs.key("x")] = fixed


chips = show.slot()
cells = st.columns([0.9, 1.8, 3.2])
with cells[0]:
    shape = inputs.text("shape", "Start shape of x", SHAPE, max_chars=limit("number_chars"))
with cells[1]:
    dtype = inputs.choice("dtype", "Element type", START_DTYPES, DTYPE, segmented=True)
with cells[2]:
    expression = inputs.text("x", "Expression on x", EXPRESSION, max_chars=limit("expression_chars"))
errors = show.slot()
inputs.presets("Stories", STORIES, into=chips)
torch_ready()
run = traced(shape, dtype, expression)
with errors:
    show.input_errors(inputs)

show.answer(*headline(run))
refusal = run.refusal
if refusal is not None and refusal.fixes:
    copied = bytes_text(refusal.layout.numel * refusal.element_size)
    with st.container(horizontal=True):
        for number, (instead, fixed) in enumerate(refusal.fixes):
            st.button(f"Use `{instead}`, copies {copied}", key=f"t:fix{number}", on_click=use, args=(fixed,))
component("storage")(data=storage_picture(run), key="t:storage")

with show.fold("The steps as a table", key="t:table", icon=":material/table:") as panel:
    if panel.open:
        show.small_table([show.Column(heading) for heading in TABLE_HEADINGS], table(run))
show.how(
    lambda: explanations(run),
    key="t:how",
    notes=(
        f"Every step ran on torch {run.torch_version}, on x = torch.arange of the start shape; shapes, strides and "
        "errors are torch’s own. View or copy is decided by asking whose storage a result uses.",
    ),
)
with show.fold("What can be typed", key="t:operations", icon=":material/keyboard:") as panel:
    if panel.open:
        rows = [(group, " · ".join(f"`{example}`" for example in examples)) for group, examples in catalogue().items()]
        show.small_table([show.Column("Memory"), show.Column("Operations")], rows)
show.footer(inputs)
