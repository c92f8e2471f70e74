"""Tensor views: run an expression on x and see, step by step, what it does to the storage."""

import streamlit as st

from core.messages import message
from core.views.tensors.charts import storage_picture
from core.views.tensors.text import explanations, headline
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
    """Draw the inputs, what the code does to memory, and the panels."""
    inputs = TensorInputs(TENSORS)

    presets = show.slot()
    typed = read_inputs(inputs)
    errors = show.slot()
    run = traced(inputs, typed)
    with errors:
        show.input_errors(inputs)

    with show.guarded(message("tensors.section.answer")):
        if not inputs.told_to_wait(typed["x"]):
            answer, *details = headline(run)
            show.answer(answer, " ".join(details))
        answers(run)
        where_it_stands(inputs)
        for note in run.notes:
            show.note(note)
    with show.guarded(message("tensors.section.picture")):
        if len(run) > 1 or run.starts_with_x:
            component("storage")(
                data={**storage_picture(run), "slide": projecting()},
                key=PICTURE,
                on_fix_change=inputs.take_fix,
            )

    PANELS = {
        "named": (message("tensors.panel.named"), lambda: named_axes(inputs, run)),
        "shared": (message("tensors.panel.overlap"), lambda: overlap(inputs, run)),
        "program": (message("tensors.panel.program"), program),
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
        with show.fold(message("tensors.panel.script"), key="t:script", icon=":material/code:") as panel:
            if panel.open:
                st.code(as_script(inputs), language="python")
        show.how(
            lambda: explanations(run),
            key="t:how",
            notes=(message("tensors.how", torch=f"torch {run.torch_version}".strip()),),
        )
        with show.fold(message("tensors.panel.operations"), key="t:operations", icon=":material/keyboard:") as panel:
            if panel.open:
                operations()
    lecture_presets(inputs, presets)
    show.next_page(message("tensors.link.exercises"), EXERCISES, {"topics": "views"})
    show.footer(inputs)


show.draw_page(page)
