"""Parallel plan: the fastest layout that fits, what its step goes to, and the whole space that it was found in."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.planning.form.layout import KEPT_FIELDS
from core.planning.form.links import link_texts, texts_as_given
from core.planning.memory_estimate import memory_estimate
from core.search.request import FREE, explain
from core.views.plan import text as plan_text
from core.views.search import text as search_text
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.plan_page.fixes import draw_fixes
from pages.common.plan_page.panels import draw_panels
from pages.common.registry import COMPUTE, MEMORY
from pages.common.takeaway import DOWNLOADS, download_panel
from pages.common.theme import projecting
from pages.parallel.evidence import draw_parts, evidence_panel
from pages.parallel.form import GROUPS
from pages.parallel.inputs import draw_question
from pages.parallel.neighbours import cluster_sizes_panel, launch_panel, neighbours_panel
from pages.parallel.published import measured_steps_panel, published_layouts_panel
from pages.parallel.request import SearchInputs, read_inputs
from pages.parallel.search_space import picture, search_space_panel

_PANELS: dict[str, Callable[[Inputs, SearchInputs], None]] = {
    "space": search_space_panel,
    "why": evidence_panel,
    "near": neighbours_panel,
    "runs": published_layouts_panel,
    "sizes": cluster_sizes_panel,
    "proof": measured_steps_panel,
    "launch": launch_panel,
    DOWNLOADS.id: lambda inputs, a: download_panel(inputs, texts_as_given(a.texts), of_layout=a.in_force is not None),
}


def _free(inputs: Inputs) -> None:
    for field in KEPT_FIELDS:
        inputs.put(field.id, field.default)


def page(inputs: Inputs) -> None:
    """The answer, and the panels behind it."""
    a = read_inputs(inputs)
    draw_question(inputs)
    show.input_errors(inputs)
    plan_sidebar.draw_actions(texts_as_given(a.texts))

    here = a.in_force
    with show.guarded("The answer"):
        if a.at is None or here is None:
            show.answer(search_text.nothing_fits(a.plan, a.request, a.result))
            if a.result.nearest:
                draw_fixes(inputs, memory_estimate(a.plan))
            elif a.plan.constraints != FREE:
                st.button("Keep to nothing", on_click=_free, args=(inputs,))
        else:
            show.answer(search_text.sentence(a.at), plan_text.times_text(a.at))
        plan_sidebar.draw_limits(inputs)
    with show.guarded("The picture"):
        left, right = (st.container(), st.container()) if projecting() else st.columns([1.25, 1])
        with left:
            picture(a)
        with right:
            if here is not None:
                draw_parts(here)
        if a.at is not None and here is not None:
            lines = (
                search_text.counted(a.at, a.result),
                search_text.assumed_network(a.at),
                search_text.little_free(a.plan.limits.free, a.result, here),
                search_text.against_best(a.plan, a.result, here),
            )
            for line in filter(None, lines):
                show.note(line)

    draw_panels(inputs, GROUPS, _PANELS, a)

    if here is not None:
        show.how(
            lambda: explain(a.request, here, a.plan.tokens),
            key="parallel:how",
            notes=[search_text.STEP_SUMS],
        )
    texts = link_texts(a.texts)
    show.next_page("Use this plan: what each accelerator has to hold", MEMORY, texts)
    show.next_page("Use this plan: FLOPs, days and dollars of the whole run", COMPUTE, texts)
    show.footer(inputs)


plan_sidebar.draw_page(page)
