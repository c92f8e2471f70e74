"""Compute budget, the whole run: failures, checkpoints, goodput, energy, carbon; and the best split of its compute."""

from __future__ import annotations

import streamlit as st

from core.budget.compute_optimal import compute_optimal, overtraining
from core.budget.equations import BudgetError
from core.messages import message, messages
from core.models.flops import train_flop_6nd
from core.planning.estimate import PlanEstimate
from core.planning.form.whole_run import WHOLE
from core.runs.goodput import failure_records
from core.views.compute_optimal import text as compute_optimal_text
from core.views.runs import text_goodput
from core.views.runs.charts_goodput import hours_of_the_run
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS


def whole_run_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """Draw the parts of the end-to-end time, checkpoints, failures, and energy."""
    text = text_goodput.whole_text(a)
    show.takeaway(text)
    alt = plain(message("whole.chart.alt", takeaway=text))
    show.chart(hours_of_the_run(text_goodput.time_shares(a), TOKENS), alt=alt, key="compute:wall")
    asked = inputs.form.part(WHOLE)
    for fields in (asked[:4], asked[4:]):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            for field in fields:
                inputs.draw(field)
    show.draw_problems(inputs, *(field.id for field in asked))
    show.takeaway(text_goodput.failures_text(a))
    headings = (message("whole.table.heading"), message("whole.table.value"))
    show.small_table(headings, text_goodput.checkpoint_rows(a))
    show.takeaway(text_goodput.energy_text(a))
    if basis := text_goodput.power_basis(a):
        show.note(basis)
    with show.fold(message("whole.rates.title"), key="compute:failures") as panel:
        if panel.open:
            show.small_table(
                (
                    *messages("whole.rates", "run accelerators rate"),
                    show.Column(message("whole.rates.counted")),
                    show.Column(message("whole.rates.source")),
                ),
                text_goodput.failure_rows(failure_records()),
            )
    show.how(lambda: [*a.explain_power(), *a.explain_mfu()], key="compute:whole:how")


def split_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """Draw the best split of the plan's compute between parameters and tokens, by each published law."""
    m = a.middle
    flop = train_flop_6nd(m.parameters, m.tokens)
    try:
        allocations = compute_optimal(flop)
    except BudgetError as problem:
        show.error(str(problem))
        return
    show.takeaway(compute_optimal_text.ratio_text(a))
    rows = compute_optimal_text.split_rows(allocations, a)
    show.small_table(compute_optimal_text.split_headings(), rows, here=len(allocations))
    show.note(message("optimal.method"))
    show.how(
        lambda: [
            overtraining.explain(tokens=m.tokens, params=m.parameters),
            *compute_optimal_text.explain_losses(a),
            *(step for s in allocations for step in s.explanations),
        ],
        key="compute:split:how",
    )
