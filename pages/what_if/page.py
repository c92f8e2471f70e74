"""What if: a plan with two of its fields swept, which cells fit and meet the limits, and a cell to use as the plan."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.budget.equations import BudgetError
from core.formula import Explanation
from core.messages import message
from core.planning.estimate import PlanEstimate, estimate
from core.planning.form.links import link_texts
from core.planning.form.plan_form import FIND
from core.planning.sweep.form import X_VALUES, Y_VALUES
from core.planning.sweep.sweep import Recommendation, recommend
from core.training.layout import LayoutError
from core.views.sweep import text
from core.views.sweep.charts import grid, grid_alt
from pages.common import field_changes, plan_sidebar, show
from pages.common.components import component
from pages.common.inputs import Inputs
from pages.common.registry import COMPUTE, MEMORY, PARALLEL
from pages.what_if.inputs import SweepInputs, draw_question, read_inputs

_GRID = "what_if:grid"


def _use(inputs: Inputs, a: SweepInputs, cell: tuple[int, int]) -> None:
    """Make a cell the plan. The values of both axes are written out, so that the board stays as it is."""
    overrides = a.sweep.cell_overrides(*cell)
    field_changes.replaced(inputs, overrides)
    for name, value in {**overrides, X_VALUES.id: a.sweep.x.written, Y_VALUES.id: a.sweep.y.written}.items():
        inputs.put(name, value)


def _board(inputs: Inputs, a: SweepInputs, picked: Recommendation | None, answer: str) -> None:
    def use() -> None:
        chosen: Any = getattr(st.session_state.get(_GRID), "pick", None)
        if isinstance(chosen, str) and (cell := a.sweep.cell_of(chosen)):
            _use(inputs, a, cell)

    drawn = {**grid(a.sweep, a.result, picked), "alt": grid_alt(a.sweep, a.result, answer)}
    component("board")(data=drawn, key=_GRID, on_pick_change=use)


def _explained(a: PlanEstimate) -> list[Explanation | str]:
    try:
        memory = [message("sweep.how.memory"), *a.memory.explain()]
    except LayoutError:
        memory = []
    return [message("sweep.how.plan"), *a.explain(), *memory]


def page(inputs: Inputs) -> None:
    """Draw the answer and the board."""
    a = read_inputs(inputs)
    own: PlanEstimate | None = None
    try:
        own = estimate(a.plan)
    except BudgetError as problem:
        inputs.fail(str(problem), message("sweep.error.no_answer"))
    texts = link_texts({**inputs.reading.texts, FIND.id: "time"})
    draw_question(inputs, a)
    show.input_errors(inputs)
    plan_sidebar.draw_actions(texts)

    picked = recommend(a.sweep)
    answer = " ".join(text.answer(a.sweep, picked))
    with show.guarded(message("common.answer")):
        show.answer(answer, text.plan_text(own) if own else "")
        plan_sidebar.draw_limits(inputs)
    with show.guarded(message("common.chart")):
        _board(inputs, a, picked, answer)
        show.note(text.hint(a.sweep))
        if picked and picked.cell != a.sweep.plan_cell:
            label, args = message("sweep.button"), (inputs, a, picked.cell)
            st.button(label, key=inputs.key("least"), on_click=_use, args=args)
        for notice in text.notices(a.sweep):
            show.note(notice)

    if own:
        show.how(lambda: _explained(own), key="what_if:how")
    show.next_page(message("sweep.link.compute"), COMPUTE, texts)
    show.next_page(message("sweep.link.memory"), MEMORY, texts)
    show.next_page(message("sweep.link.parallel"), PARALLEL, texts)
    show.footer(inputs)


plan_sidebar.draw_page(page)
