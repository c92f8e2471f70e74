"""Parallel plan, the whole space: its picture, and the fastest as a table."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.limits import limit
from core.planning.sensitivity import layout_texts
from core.views.search import text as search_text
from core.views.search.charts import space
from core.views.search.export import as_csv
from core.wording import plain
from pages.common import show
from pages.common.components import component
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.parallel.request import SearchInputs

_TABLE = "parallel:plans"
_TOP = 15
_SLOWEST = 1.5
"""How many times the fastest plan's pace is drawn."""


def picture(a: SearchInputs) -> None:
    """The fastest plans by time and memory; nothing where none fits."""
    if best := a.result.best:
        plans = a.result.plans.fastest(_SLOWEST, limit("plans_drawn"))
        show.chart(
            space(plans, a.result.pareto, a.in_force, best.usable, TOKENS),
            alt=f"Plans by seconds per million tokens and memory of the fullest accelerator. "
            f"{plain(search_text.front(a.result))}",
            key="parallel:picture",
        )


def search_space_panel(inputs: Inputs, a: SearchInputs) -> None:
    """The panel's content."""
    best, plans = a.result.best, a.result.plans
    if best is None:
        show.note("No layout divides over all accelerators and fits, so there is no space to draw.")
        return
    show.takeaway(search_text.front(a.result))
    show.note(search_text.kept(a.result))

    def pick() -> None:
        chosen: Any = getattr(st.session_state.get(_TABLE), "pick", None)
        if isinstance(chosen, str) and chosen.isdigit() and int(chosen) < min(_TOP, len(plans.seconds)):
            for name, text in layout_texts(plans.at(int(chosen))).items():
                inputs.put(name, text)

    rows = search_text.plan_rows(a.plan, a.request, plans, best, _TOP)
    component("plans")(
        data={
            "caption": "The fastest. Choose one by its name: it becomes the layout of the plan.",
            "columns": [{"title": title, "numeric": i not in (0, 2, 7)} for i, title in enumerate(search_text.PLANS)],
            "rows": [
                {
                    "id": f"{i}",
                    "cells": row,
                    "here": a.in_force is not None and plans.at(i) == a.in_force.layout,
                }
                for i, row in enumerate(rows)
            ],
        },
        key=_TABLE,
        on_pick_change=pick,
    )
    st.download_button("Download these plans as CSV", as_csv(plans), "plans.csv", "text/csv", on_click="ignore")
