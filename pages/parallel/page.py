"""Parallel plan: the fastest layout that fits, its step, and the search space."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.messages import message
from core.planning.form.layout import KEPT_FIELDS
from core.planning.form.links import link_texts, texts_as_given
from core.planning.memory_estimate import memory_estimate
from core.search.request import FREE, explain
from core.views.plan import text as plan_text
from core.views.plan import text_rates
from core.views.search import text
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.plan_page.fixes import draw_fixes
from pages.common.plan_page.notices import draw_notices
from pages.common.plan_page.panels import draw_panels
from pages.common.registry import COMPUTE, MEMORY
from pages.common.takeaway import DOWNLOADS, download_panel
from pages.common.theme import projecting
from pages.parallel.evidence import draw_step, evidence_panel
from pages.parallel.form import GROUPS
from pages.parallel.inputs import SearchInputs, draw_question, read_inputs
from pages.parallel.neighbours import cluster_sizes_panel, launch_panel, neighbours_panel
from pages.parallel.published import measured_steps_panel
from pages.parallel.search_space import draw_space, search_space_panel

_PANELS: dict[str, Callable[[Inputs, SearchInputs], None]] = {
    "why": evidence_panel,
    "near": neighbours_panel,
    "launch": launch_panel,
    "space": search_space_panel,
    "sizes": cluster_sizes_panel,
    "proof": measured_steps_panel,
    DOWNLOADS.id: lambda inputs, a: download_panel(inputs, texts_as_given(a.texts), of_layout=a.at is not None),
}


def _relax(inputs: Inputs) -> None:
    for field in KEPT_FIELDS:
        inputs.put(field.id, field.default)


def page(inputs: Inputs) -> None:
    """Draw the answer, its picture and rows, and the panels."""
    a = read_inputs(inputs)
    draw_question(inputs)
    show.input_errors(inputs)
    plan_sidebar.draw_actions(texts_as_given(a.texts))

    at, others = a.at, list[str]()
    with show.guarded(message("common.answer")):
        if at is None:
            show.answer(text.does_not_fit(a.plan, a.request, a.result))
            if a.result.nearest:
                draw_fixes(inputs, memory_estimate(a.plan))
            elif a.plan.constraints != FREE:
                st.button(message("parallel.relax"), on_click=_relax, args=(inputs,))
        else:
            show.answer(text.headline(at), f"{text.step_range(at)} {plan_text.times_text(at)}")
            if wrong := plan_text.does_not_fit(at):
                show.error(wrong)
        plan_sidebar.draw_limits(inputs)
    with show.guarded(message("common.chart")):
        left, right = (st.container(), st.container()) if projecting() else st.columns([1.25, 1])
        with left:
            draw_space(a)
        if at is not None:
            with right:
                draw_step(at.step)
            others = draw_notices(
                [
                    *plan_text.layout_notices(at),
                    text.fastest_text(a.plan, a.result, at.step),
                    text.network_note(at.request),
                    text_rates.change(a.plan),
                ]
            )
            show.small_table(
                (message("row.heading.quantity"), message("parallel.value")),
                [(show.remarked(row.label, row.note), row.range_cells(3)[0]) for row in text.answer_rows(at, a.result)],
            )

    draw_panels(inputs, GROUPS, _PANELS, a)

    if at is not None:
        notes = [message("parallel.how"), *others]
        show.how(lambda: explain(a.request, at.step, a.plan.tokens), key="parallel:how", notes=notes)
    texts = link_texts(a.texts)
    show.next_page(message("parallel.link.memory"), MEMORY, texts)
    show.next_page(message("parallel.link.compute"), COMPUTE, texts)
    show.footer(inputs)


plan_sidebar.draw_page(page)
