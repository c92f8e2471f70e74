"""Parallel plan, around the plan in force: its neighbours, other cluster sizes, and how it is launched."""

from __future__ import annotations

import math

import streamlit as st

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
from pages.parallel.request import SearchInputs

_NONE = "Nothing fits, so there is no layout to look around from. Choose one of your own under “Layout”."


def neighbours_panel(_: Inputs, a: SearchInputs) -> None:
    """What one step in each direction changes."""
    if a.in_force is None:
        show.note(_NONE)
        return
    result = neighbours(a.in_force, a.request)
    show.takeaway(text_step.around(a.in_force, result))
    show.small_table(
        [show.Column(heading, numeric=0 < i < 4) for i, heading in enumerate(text_step.NEIGHBOURS)],
        [text_step.neighbour_row(a.in_force, neighbour) for neighbour in result],
        caption=f"On the same accelerators with the same batch, from {text.degrees(a.in_force.layout)}.",
    )


def cluster_sizes_panel(_: Inputs, a: SearchInputs) -> None:
    """The plan at each size of cluster."""
    price = a.plan.price_range[0]
    results = cluster_results(a.plan)
    deadline, count = a.plan.limits.days, whole_accelerators(a.plan.accelerators)
    message = f"{text.better(next_better(a.plan))}{text.scaling(results, deadline)}"
    show.takeaway(message)
    if not results:
        return
    show.chart(
        cluster_sizes(results, count, deadline, TOKENS),
        alt=f"Days for all tokens against accelerators, the plan at each. {plain(message)}",
        key="parallel:sizes",
    )
    rows = [one for one in results if math.log2(one.accelerators / count).is_integer()] or list(results)
    here = [result.accelerators for result in rows]
    show.small_table(
        [show.Column(heading, numeric=i != 1) for i, heading in enumerate(text.SIZES)],
        text.size_rows(rows),
        caption="The plan at each size, days and dollars of the whole run. Last are all accelerator-hours over those "
        "of the smallest cluster.",
        here=here.index(count) if count in here else None,
    )
    if math.isnan(price):
        show.note(f"The price of {a.request.cluster.accelerator.name} is unknown: type yours in the sidebar.")


def launch_panel(_: Inputs, a: SearchInputs) -> None:
    """The lines of each program."""
    if a.in_force is None or a.at is None:
        show.note(_NONE)
        return
    launches = a.at.launches
    show.takeaway(text_step.launched(launches, a.plan.software, a.plan.device))
    for tab, item in zip(st.tabs([item.system for item in launches]), launches, strict=True):
        with tab:
            draw_launch(item)
