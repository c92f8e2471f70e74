"""Parallel plan, what surrounds the layout: nearby layouts, other cluster sizes, and launch settings."""

from __future__ import annotations

import math

import streamlit as st

from core.messages import message
from core.planning.plan import whole_accelerators
from core.planning.sensitivity import cluster_results, next_better
from core.search.neighbours import neighbours
from core.views.search import text, text_step
from core.views.search.charts import cluster_sizes
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.plan_page.launch import draw_launch
from pages.common.theme import TOKENS
from pages.parallel.inputs import SearchInputs


def neighbours_panel(_: Inputs, a: SearchInputs) -> None:
    """Draw what one change of the layout does."""
    if a.at is None:
        show.note(message("parallel.no_layout"))
        return
    here = a.at.step
    near = neighbours(here, a.request)
    show.takeaway(text_step.neighbors_text(here, near))
    headings = [show.Column(heading, numeric=0 < i < 4) for i, heading in enumerate(text_step.neighbor_headings())]
    show.small_table(headings, text_step.neighbor_rows(here, near))


def cluster_sizes_panel(_: Inputs, a: SearchInputs) -> None:
    """Draw the plan at each cluster size."""
    results = cluster_results(a.plan)
    deadline, count = a.plan.limits.days, whole_accelerators(a.plan.accelerators)
    finding = " ".join(text.sizes_text(results, deadline, next_better(a.plan)))
    show.takeaway(finding)
    if not results:
        return
    show.chart(
        cluster_sizes(results, count, deadline, TOKENS),
        alt=plain(message("parallel.alt.sizes", finding=plain(finding))),
        key="parallel:sizes",
    )
    rows = [one for one in results if math.log2(one.accelerators / count).is_integer()] or list(results)
    here = [result.accelerators for result in rows]
    headings, cells = text.size_table(rows)
    show.small_table(
        [show.Column(heading, numeric=i != 1) for i, heading in enumerate(headings)],
        cells,
        here=here.index(count) if count in here else None,
    )


def launch_panel(_: Inputs, a: SearchInputs) -> None:
    """Draw the settings of each program."""
    if a.at is None:
        show.note(message("parallel.no_layout"))
        return
    launches = a.at.launches
    show.takeaway(" ".join(text_step.launch_text(launches, a.plan.software, a.plan.device)))
    for tab, item in zip(st.tabs([item.system for item in launches]), launches, strict=True):
        with tab:
            draw_launch(item)
