"""Parallel plan, the whole space: its picture, ranges that narrow it, and the fastest as a table."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.limits import limit
from core.planning.search_around import layout_texts
from core.search.filter import layout_at, narrowed, thinned, within
from core.search.result import Columns, LayoutResult
from core.views.search import text as search_text
from core.views.search.charts import space
from core.views.search.export import as_csv
from core.wording import plain
from pages.common import show
from pages.common.components import component
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.parallel.form import NARROW, ONLY, SLOWER
from pages.parallel.request import SearchInputs

_TABLE = "parallel:plans"
_TOP = 15


def _drawn(inputs: Inputs, a: SearchInputs, best: LayoutResult) -> tuple[Columns, float]:
    """The plans that the ranges leave, and the pace that none of them exceeds."""
    values = inputs.reading.values
    most = min(result.pace for result in (best, *a.result.pareto)) * (1 + values[SLOWER.id] / 100)
    ranges = {name: allowed for name, field in ONLY.items() if (allowed := values[field.id])}
    return narrowed(a.result.plans, most, ranges), most


def picture(inputs: Inputs, a: SearchInputs) -> None:
    """Every plan by time and memory; nothing where none is left."""
    best = a.result.best
    if best is None:
        return
    plans, most = _drawn(inputs, a, best)
    if len(plans.seconds):
        show.chart(
            space(thinned(plans, limit("plans_drawn")), within(a.result.pareto, most), a.in_force, best.usable, TOKENS),
            alt=f"Plans by seconds per million tokens and memory of the fullest accelerator. "
            f"{plain(search_text.front(a.result))}",
            key="parallel:picture",
        )


def search_space_panel(inputs: Inputs, a: SearchInputs) -> None:
    """The panel's content."""
    best = a.result.best
    if best is None:
        show.note("No layout divides over all accelerators and fits, so there is no space to draw.")
        return
    show.takeaway(search_text.front(a.result))
    for cell, field in zip(st.columns([1.6, 1, 1, 1, 1, 1]), (SLOWER, *ONLY.values()), strict=True):
        with cell:
            inputs.draw(field)
    show.draw_problems(inputs, *(field.id for field in inputs.form.part(NARROW)))
    plans, _ = _drawn(inputs, a, best)
    show.note(search_text.kept(plans, a.result))
    if not len(plans.seconds):
        return

    def pick() -> None:
        chosen: Any = getattr(st.session_state.get(_TABLE), "pick", None)
        if isinstance(chosen, str) and chosen.isdigit() and int(chosen) < min(_TOP, len(plans.seconds)):
            for name, text in layout_texts(layout_at(plans, int(chosen))).items():
                inputs.put(name, text)

    rows = search_text.plan_rows(a.plan, a.request, plans, best, _TOP)
    component("plans")(
        data={
            "caption": "The fastest of those drawn. Choose one by its name: it becomes the layout of the plan.",
            "columns": [{"title": title, "numeric": i not in (0, 2, 7)} for i, title in enumerate(search_text.PLANS)],
            "rows": [
                {
                    "id": f"{i}",
                    "cells": row,
                    "here": a.in_force is not None and layout_at(plans, i) == a.in_force.layout,
                }
                for i, row in enumerate(rows)
            ],
        },
        key=_TABLE,
        on_pick_change=pick,
    )
    st.download_button("Download these plans as CSV", as_csv(plans), "plans.csv", "text/csv", on_click="ignore")
