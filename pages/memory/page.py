"""Training memory: whether a plan fits its accelerators, what fills them, and the cheapest change if it does not."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.planning.form.links import link_texts, texts_as_given
from core.planning.form.plan_form import plan_as_given
from core.planning.largest_model import explain_by_states
from core.planning.layout import plan_checkpoint
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.views.plan import text_finetuning, text_fixes, text_host, text_memory
from core.views.training import text
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import plan_sidebar, show
from pages.common.experiments.panel import draw_experiments
from pages.common.inputs import Inputs
from pages.common.plan_page.fixes import draw_fixes
from pages.common.plan_page.instead import worked_out
from pages.common.plan_page.panels import draw_panels
from pages.common.registry import COMPUTE, EXERCISES, PARALLEL
from pages.common.takeaway import DOWNLOADS, download_panel
from pages.common.theme import TOKENS
from pages.memory.activations import activations_panel
from pages.memory.finetuning import finetuning
from pages.memory.form import GROUPS
from pages.memory.launch import launch_panel
from pages.memory.optimizers import optimizers_panel
from pages.memory.parallel import parallel_panel
from pages.memory.policy import precision_panel
from pages.memory.post_training import post_training_panel
from pages.memory.serving import serving_panel
from pages.memory.step import step_panel

_PANELS: dict[str, Callable[[Inputs, MemoryEstimate], None]] = {
    "why": draw_fixes,
    "optims": optimizers_panel,
    "policy": precision_panel,
    "zeros": parallel_panel,
    "post": post_training_panel,
    "step": step_panel,
    "acts": activations_panel,
    "launch": launch_panel,
    "serve": serving_panel,
    DOWNLOADS.id: lambda inputs, _: download_panel(inputs, texts_as_given(inputs.reading.texts)),
}


def page(inputs: Inputs) -> None:
    """The answer, the bar, and the panels behind it."""
    h = worked_out(inputs, lambda reading: memory_estimate(plan_as_given(reading)), "plan that can be")
    show.input_errors(inputs)
    plan_sidebar.draw_actions(texts_as_given(inputs.reading.texts))

    with show.guarded("The answer"):
        message = text_memory.sentence(h)
        show.answer(text_fixes.verdict(h), text_memory.counted(h))
        plan_sidebar.draw_limits(inputs)
    with show.guarded("The picture"):
        show.chart(device_bars([("", h.device_memory)], h.usable, TOKENS), alt=plain(message), key="memory:bars")
    if not h.plan.trained.everything or text_memory.tunes(h):
        with show.guarded("Fine-tuning"):
            finetuning(inputs, h)
    with st.container(key=inputs.key("remarks")), show.guarded("Remarks"):
        for line in (text_finetuning.update(h), text_host.host(h), *text_memory.remarks(h)):
            if line:
                show.note(line)
        if lacking := text.matrix_units(h.policy, h.plan.device):
            show.note(lacking)
        if alone := text_memory.states_alone(h):
            show.note(alone)
        show.note(text_memory.checkpoint(h))
        show.note(text.memory_read_as(h.plan.device, h.plan.runtime_options.display))
        show.source(text.cited(h.optimizer, h.policy))

    draw_panels(inputs, GROUPS, _PANELS, h)
    draw_experiments(inputs)

    show.how(
        lambda: [
            *("On one accelerator", *h.explain(), *text_host.explain_host(h), *text_finetuning.explain_update(h)),
            *(("Model states alone", *explain_by_states(h)) if h.plan.trained.everything else ()),
            *("A checkpoint", plan_checkpoint(h.plan).explain(h.parameters)),
        ],
        key="memory:how",
        notes=(text.CHECKED,),
    )
    show.next_page("Which layout is fastest", PARALLEL, link_texts(inputs.reading.texts))
    show.next_page("How long it trains, and what that costs", COMPUTE, link_texts(inputs.reading.texts))
    show.next_page("Exercises on memory: predict, then see", EXERCISES, {"topics": "memory"})
    show.footer(inputs)


plan_sidebar.draw_page(page)
