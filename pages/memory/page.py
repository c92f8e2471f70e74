"""Training memory: whether a plan fits its accelerators, what uses their memory, and the cheapest fix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from core.messages import message
from core.planning.form.links import link_texts, texts_as_given
from core.planning.form.plan_form import plan_as_given
from core.planning.largest_model import explain_by_states
from core.planning.layout import plan_checkpoint
from core.planning.memory_estimate import MemoryEstimate, memory_estimate
from core.views.plan import text_finetuning, text_fixes, text_memory
from core.views.plan.memory_rows import explain_host, memory_rows
from core.views.report.rows import HEADINGS
from core.views.training import text
from core.views.training.charts_device import device_bars
from core.wording import plain
from pages.common import plan_sidebar, show
from pages.common.experiments.panel import draw_experiments
from pages.common.inputs import Inputs
from pages.common.plan_page.fixes import draw_fixes
from pages.common.plan_page.instead import worked_out
from pages.common.plan_page.notices import draw_notices
from pages.common.plan_page.panels import draw_panels
from pages.common.registry import COMPUTE, EXERCISES, PARALLEL
from pages.common.takeaway import DOWNLOADS, download_panel
from pages.common.theme import TOKENS
from pages.memory.activations import activations_panel
from pages.memory.finetuning import draw_largest
from pages.memory.form import GROUPS, READING
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
    """Draw the answer, the bar, and the panels behind it."""
    h = worked_out(inputs, lambda reading: memory_estimate(plan_as_given(reading)))
    show.input_errors(inputs)
    plan_sidebar.draw_actions(texts_as_given(inputs.reading.texts))

    with show.guarded(message("common.answer")):
        show.answer(text_fixes.verdict(h), text_memory.counted(h))
        plan_sidebar.draw_limits(inputs)
    others: Sequence[str] = ()
    with show.guarded(message("common.chart")):
        alt = message("memory.picture.alt", takeaway=text_memory.sentence(h))
        show.chart(device_bars([("", h.device_memory)], h.usable, TOKENS), alt=plain(alt), key="memory:bars")
        inputs.draw(READING)
        show.note(text_memory.reading_text(h, inputs.reading.values[READING.id]))
        with st.container(key=inputs.key("remarks")):
            others = draw_notices(text_memory.remarks(h))
            show.small_table(
                (HEADINGS[0], message("memory.row.value")),
                [(show.remarked(row.label, row.note), row.range_cells(3)[0]) for row in memory_rows(h)],
            )
        if text_finetuning.tunes(h):
            draw_largest(inputs, h)

    draw_panels(inputs, GROUPS, _PANELS, h)
    draw_experiments(inputs)

    show.how(
        lambda: [
            *(message("memory.how.device"), *h.explain(), *explain_host(h), *text_finetuning.explain_foreach(h)),
            *((message("memory.how.states"), *explain_by_states(h)) if h.plan.trained.everything else ()),
            *(message("memory.how.checkpoint"), plan_checkpoint(h.plan).explain(h.parameters)),
        ],
        key="memory:how",
        notes=[
            *others,
            message("memory.how.checked"),
            show.sourced(text.cited(h.optimizer, h.policy)),
        ],
    )
    show.next_page(message("memory.link.parallel"), PARALLEL, link_texts(inputs.reading.texts))
    show.next_page(message("memory.link.compute"), COMPUTE, link_texts(inputs.reading.texts))
    show.next_page(message("memory.link.exercises"), EXERCISES, {"topics": "memory"})
    show.footer(inputs)


plan_sidebar.draw_page(page)
