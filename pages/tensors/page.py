"""Tensor views: run an expression on x and see, step by step, what it does to the storage."""

import streamlit as st

from core.views.tensors.charts import storage_picture
from core.views.tensors.text import explanations, headline, passed_over
from pages.common import show
from pages.common.components import component
from pages.common.registry import EXERCISES, TENSORS
from pages.common.server.programs import programs_ready
from pages.common.theme import projecting
from pages.tensors.inputs import (
    PICTURE,
    TensorInputs,
    answers,
    as_script,
    lecture_presets,
    operations,
    read_inputs,
    traced,
)
from pages.tensors.lecture import program, where_it_stands
from pages.tensors.memory import overlap
from pages.tensors.named import named_axes
from pages.tensors.training import training


def page() -> None:
    """Inputs, what the code does to the storage, and the panels behind it."""
    inputs = TensorInputs(TENSORS)

    presets = show.slot()
    typed = read_inputs(inputs)
    errors = show.slot()
    run = traced(inputs, typed)
    with errors:
        show.input_errors(inputs)

    with show.guarded("The answer"):
        if not inputs.told_to_wait("x", typed["x"], inputs.decision):
            show.answer(*headline(run))
        answers(run)
        where_it_stands(inputs)
        if passed := passed_over(run):
            show.note(passed)
    with show.guarded("The picture of the storage"):
        if len(run) > 1 or run.starts_with_x:
            component("storage")(
                data={**storage_picture(run), "slide": projecting()},
                key=PICTURE,
                on_fix_change=inputs.take_fix,
            )

    PANELS = {
        "named": ("Named axes: what einops and einsum do to memory", lambda: named_axes(inputs, run)),
        "shared": ("Overlap: elements that share memory, and writing in place", lambda: overlap(inputs, run)),
        "program": ("The lecture’s program, line by line", program),
    }
    with st.container(gap=None, key="t_panels"):
        training(run)
        for name, (title, draw) in PANELS.items():
            with inputs.panel(name, title) as panel:
                if panel.open and (why := programs_ready()):
                    show.note(why)
                elif panel.open:
                    with show.errors_under(inputs):
                        draw()
        with show.fold("As a Python script, to copy and run", key="t:script", icon=":material/code:") as panel:
            if panel.open:
                st.code(as_script(inputs), language="python")
        show.how(
            lambda: explanations(run),
            key="t:how",
            notes=(
                f"{f'torch {run.torch_version}'.strip()} runs the code in its own process. "
                "x is torch.arange of the start shape. A result is a view if it uses the storage of an input. "
                "Bytes are those of torch’s CPU allocator, including temporaries. GPU kernels use other temporaries. "
                "FLOPs are torch’s own count of matmuls, convolutions, and attention.",
            ),
        )
        with show.fold("What can be typed", key="t:operations", icon=":material/keyboard:") as panel:
            if panel.open:
                operations()
    lecture_presets(inputs, presets)
    show.next_page("Exercises: predict shape, strides, view or copy, then see", EXERCISES, {"topics": "views"})
    show.footer(inputs)


show.draw_page(page)
