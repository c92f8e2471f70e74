"""Parallel plan, the search space: its picture, and the fastest layouts as a table."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.limits import limit
from core.messages import message
from core.planning.sensitivity import layout_texts
from core.views.search import text
from core.views.search.charts import space
from core.views.search.export import as_csv
from core.wording import plain
from pages.common import show
from pages.common.components import component
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.parallel.inputs import SearchInputs

_TABLE = "parallel:plans"
_TOP = 15
_SLOWEST = 1.5
"""How many times the fastest pace is drawn."""


def draw_space(a: SearchInputs) -> None:
    """Draw the fastest layouts by time and memory; nothing if none fits."""
    if best := a.result.best:
        plans, here = a.result.plans.fastest(_SLOWEST, limit("plans_drawn")), a.at.step if a.at else None
        show.chart(
            space(plans, a.result.pareto, here, best.usable, TOKENS),
            alt=plain(message("parallel.alt.space", finding=text.pareto_text(a.result))),
            key="parallel:picture",
        )


def search_space_panel(inputs: Inputs, a: SearchInputs) -> None:
    """Draw the panel."""
    best, plans = a.result.best, a.result.plans
    if best is None:
        show.note(message("parallel.no_layout"))
        return
    show.takeaway(text.pareto_text(a.result))

    def pick() -> None:
        chosen: Any = getattr(st.session_state.get(_TABLE), "pick", None)
        if isinstance(chosen, str) and chosen.isdigit() and int(chosen) < min(_TOP, len(plans.seconds)):
            for name, value in layout_texts(plans.at(int(chosen))).items():
                inputs.put(name, value)

    here = a.at.step.layout if a.at else None
    headings, rows = text.space_table(a.plan, a.request, plans, best, _TOP)
    component("plans")(
        data={
            "caption": message("parallel.space.caption"),
            "columns": [{"title": t, "numeric": i not in (0, 2, 7)} for i, t in enumerate(headings)],
            "rows": [{"id": f"{i}", "cells": row, "here": plans.at(i) == here} for i, row in enumerate(rows)],
        },
        key=_TABLE,
        on_pick_change=pick,
    )
    st.download_button(message("parallel.space.download"), as_csv(plans), "layouts.csv", "text/csv", on_click="ignore")
