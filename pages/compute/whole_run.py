"""Compute budget, the whole run: failures, checkpoints, goodput, energy, carbon; and the best split of its compute."""

from __future__ import annotations

import streamlit as st

from core.budget.compute_optimal import compute_optimal, overtraining
from core.budget.equations import BudgetError
from core.models.flops import train_flop_6nd
from core.planning.estimate import PlanEstimate
from core.planning.form.whole_run import DRAW, EVERY, FAILURES, GRID, OTHER, PUE, RESTART, TAKEN, WAITS, WHOLE, WRITES
from core.runs.goodput import failure_records
from core.views.compute_optimal import text as compute_optimal_text
from core.views.runs import text_goodput
from core.views.runs.charts_goodput import hours_of_the_run
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS


def whole_run_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """The panel's content."""
    text = text_goodput.whole(a)
    show.takeaway(text)
    show.chart(hours_of_the_run(text_goodput.shares(a), TOKENS), alt=plain(text), key="compute:wall")
    for fields in ((FAILURES, WRITES, RESTART, EVERY), (TAKEN, WAITS, OTHER, DRAW, PUE, GRID)):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            for field in fields:
                inputs.draw(field)
    show.draw_problems(inputs, *(field.id for field in inputs.form.part(WHOLE)))
    show.takeaway(text_goodput.failing(a))
    show.small_table(("of the whole run", ""), text_goodput.whole_rows(a))
    show.takeaway(text_goodput.used(a))
    if basis := text_goodput.power_basis(a):
        show.note(basis)
    with show.fold("Published failure rates", key="compute:failures") as panel:
        if panel.open:
            show.small_table(
                (
                    "run or cluster",
                    "accelerators",
                    "per 1,000 accelerator-days",
                    show.Column("counted"),
                    show.Column("source"),
                ),
                text_goodput.failure_rows(failure_records()),
            )
    show.how(lambda: [*a.explain_power(), *a.explain_mfu()], key="compute:whole:how")


def split_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """The best split of the plan's compute between parameters and tokens, by each published law."""
    m = a.middle
    flop = train_flop_6nd(m.parameters, m.tokens)
    try:
        allocations = compute_optimal(flop)
    except BudgetError as problem:
        show.error(str(problem))
        return
    show.takeaway(compute_optimal_text.trained(a))
    show.small_table(compute_optimal_text.SPLITS, compute_optimal_text.splits(allocations, a), here=len(allocations))
    show.note(
        "Both laws are fits of the same runs of dense models, the second one on points read off the first paper’s "
        "figure: where they differ, so much is uncertain. Their losses hold for that text and its tokeniser. With a "
        "mixture of experts N is the active parameters, for which neither was fitted."
    )
    show.how(
        lambda: [
            overtraining.explain(tokens=m.tokens, params=m.parameters).about("your plan"),
            *compute_optimal_text.explain_losses(a),
            *(step for s in allocations for step in s.explanations),
        ],
        key="compute:split:how",
    )
