"""Compute budget, its questions: what to find, the model, its tokens, the cluster, and what is folded under More."""

from __future__ import annotations

import math
from dataclasses import dataclass

import streamlit as st

from core.budget.errors import BudgetError
from core.planning.evaluation import Answer, answer
from core.planning.form.known import MATURITY, OWN_RUNS
from core.planning.form.layout import TRAINING_SOFTWARE, ZERO
from core.planning.form.plan_form import (
    ACCELERATOR,
    ATTENTION,
    COUNT,
    DTYPE,
    FIND,
    MFU,
    MODEL_NAME,
    OPTIMIZER,
    PACE,
    PARAMETERS,
    POLICY,
    PRICE,
    SEQ_LEN,
    TRAINED,
    WITHIN,
    plan_of,
)
from core.planning.form.rates import MEASURED_FIELDS
from core.planning.form.search import BATCH, NETWORK
from core.planning.plan import OWN, Find, Plan
from core.views.plan import text as plan_text
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.rates import draw_rates, measure_here, rates_note
from pages.common.shape import own_shape, stack

_GOOD = "compute:good"
_FIRST = (MODEL_NAME, PARAMETERS, TRAINED, ACCELERATOR, (COUNT, MFU))
_MORE = (PACE, DTYPE, SEQ_LEN, ATTENTION, PRICE)
_STATES = (OPTIMIZER, POLICY, ZERO)
_STEP = (BATCH, TRAINING_SOFTWARE, NETWORK)
_SOLVED = {"tokens": TRAINED, "parameters": PARAMETERS, "accelerators": COUNT, "MFU": MFU}
"""What can be found → the field that shows the answer instead."""


@dataclass(frozen=True, slots=True)
class BudgetInputs:
    """What was asked for, and the answer in force: the last good one where the question has none."""

    wanted: Find
    answer: Answer


def read_inputs(inputs: Inputs) -> BudgetInputs:
    """The plan of the form, answered; where it cannot be, the last that could be stays."""
    plan = plan_of(inputs.reading)
    try:
        result = answer(plan)
        st.session_state[_GOOD] = plan
    except BudgetError as problem:
        last: Plan | None = st.session_state.get(_GOOD)
        result = answer(last or Plan())
        inputs.fail(str(problem), "Still showing the last answer." if last else plan_text.FIRST)
    why, instead = plan_text.other_peak(result)
    if why:
        inputs.fail(why, instead)
    return BudgetInputs(plan.find, result)


def draw_question(inputs: Inputs) -> None:
    """What is to be found, and within what."""
    with st.container(key="np-question", horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.html('<span class="np-ask" aria-hidden="true">Find</span>', width="content")
        inputs.draw(FIND, bare=True)
        if inputs.reading.values[FIND.id] != "time":
            st.html('<span class="np-ask" aria-hidden="true">within</span>', width="content")
            with st.container(width=120):
                inputs.draw(WITHIN, bare=True)


def draw(inputs: Inputs, budget: BudgetInputs) -> None:
    """Every other field, the answer in the place of the one that is found."""
    wanted, a = budget.wanted, budget.answer
    plan = plan_of(inputs.reading)
    solved = {field: plan_text.in_its_field(wanted, a) for name, field in _SOLVED.items() if name == wanted}
    if wanted == "parameters":
        solved[MODEL_NAME] = ("Model", "of any shape")
    stack(inputs, _FIRST, plan, solved)
    # A price that nobody published is asked for where it can be seen; any other is folded away with the rest.
    unpriced = plan.prices is None and math.isnan(plan.price_range[0])
    if unpriced:
        inputs.draw(PRICE)
    rates_note(inputs, plan)
    measure_here(plan)
    if plan.model == OWN and wanted != "parameters":
        own_shape(inputs)
    show.input_errors(inputs)
    folded = tuple(field for field in _MORE if field != PRICE or not unpriced)
    title = "More: format, length, price, states, software, network, own runs"
    with show.more(inputs, title, *_MORE, *_STATES, *_STEP, *MEASURED_FIELDS, MATURITY, OWN_RUNS, key="fold") as more:
        if more.open:
            stack(inputs, (*folded, *_STATES, *_STEP), plan)
            draw_rates(inputs)
            stack(inputs, (MATURITY, OWN_RUNS), plan)
