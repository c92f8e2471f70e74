"""The what-if sweep: a plan with two of its numbers swept, what fits and meets the deadline, and a cell to load."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.budget.equations import BudgetError
from core.formula import Explanation
from core.planning.estimate import PlanEstimate, estimate
from core.planning.form.links import link_texts
from core.planning.form.plan_form import FIND
from core.planning.sweep.form import X_VALUES, Y_VALUES
from core.planning.sweep.sweep import Recommendation, recommend
from core.training.layout import LayoutError
from core.views.sweep import text as sweep_text
from core.views.sweep.charts import grid
from core.wording import plain
from pages.common import field_changes, plan_sidebar, show
from pages.common.components import component
from pages.common.inputs import Inputs
from pages.common.registry import COMPUTE, MEMORY, PARALLEL
from pages.what_if.form import PANELS
from pages.what_if.inputs import SweepInputs, draw_question, read_inputs

_GRID = "what_if:grid"


def _load(inputs: Inputs, a: SweepInputs, cell: tuple[int, int]) -> None:
    """Make a cell the plan. The sweep's values are written out, so that it stays as it is around it."""
    sets = a.sweep.sets(*cell)
    field_changes.replaced(inputs, sets)
    for name, text in sets.items():
        inputs.put(name, text)
    inputs.put(X_VALUES.id, a.sweep.x.written)
    inputs.put(Y_VALUES.id, a.sweep.y.written)


def _picture(inputs: Inputs, a: SweepInputs, picked: Recommendation | None, text: str) -> None:
    def load() -> None:
        chosen: Any = getattr(st.session_state.get(_GRID), "pick", None)
        cell = a.sweep.cell_of(chosen) if isinstance(chosen, str) else None
        if cell:
            _load(inputs, a, cell)

    drawn = grid(a.sweep, a.result, picked)
    component("board")(data={**drawn, "alt": f"{drawn['title']}. {plain(text)}"}, key=_GRID, on_pick_change=load)


def _table(a: SweepInputs) -> None:
    headings, rows = sweep_text.table(a.sweep, a.result)
    here = a.sweep.plan_cell
    words_in = {0: a.sweep.y.axis.chosen, 1: a.sweep.x.axis.chosen}
    numeric = [not words_in.get(i) and i < len(headings) - 1 for i in range(len(headings))]
    show.small_table(
        [show.Column(heading, numeric=holds) for heading, holds in zip(headings, numeric, strict=True)],
        rows,
        caption="Every cell, of the middle of its range.",
        here=here[0] * a.sweep.shape[1] + here[1] if here else None,
    )


def _explained(a: PlanEstimate) -> list[Explanation | str]:
    try:
        explanations = a.memory.explain()
    except LayoutError:
        explanations = ()
    return ["Your plan", *a.explain(), *(("On one accelerator", *explanations) if explanations else ())]


def page(inputs: Inputs) -> None:
    """The answer, the sweep, and the table behind it."""
    a = read_inputs(inputs)
    own: PlanEstimate | None = None
    try:
        own = estimate(a.plan)
    except BudgetError as problem:
        inputs.fail(str(problem), "The plan itself has no answer.")
    texts = link_texts({**inputs.reading.texts, FIND.id: "time"})
    draw_question(inputs, a)
    show.input_errors(inputs)
    plan_sidebar.draw_actions(texts)

    picked = recommend(a.sweep)
    text = sweep_text.sentence(a.sweep, picked)
    with show.guarded("The answer"):
        show.answer(text, sweep_text.own(own, a.sweep.within) if own else "")
        plan_sidebar.draw_limits(inputs)
    with show.guarded("The sweep"):
        _picture(inputs, a, picked, text)
        if picked and picked.cell != a.sweep.plan_cell:
            st.button("Make that the plan", key=inputs.key("least"), on_click=_load, args=(inputs, a, picked.cell))
        show.note(f"{sweep_text.counted(a.sweep)} Choose a cell to make it the plan; arrow keys move between cells.")
        for note in filter(None, (sweep_text.apart(a.sweep), sweep_text.without(a.sweep))):
            show.note(note)

    with inputs.panel("table", PANELS["table"].label) as opened:
        if opened.open:
            _table(a)

    if own:
        show.how(lambda: _explained(own), key="what_if:how")
    show.next_page("How long your plan trains, and what that costs", COMPUTE, texts)
    show.next_page("What each accelerator has to hold under it", MEMORY, texts)
    show.next_page("Which layout is fastest for it", PARALLEL, texts)
    show.footer(inputs)


plan_sidebar.draw_page(page)
