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
from core.views.flops.text import fixed_parameters
from core.views.plan import text as plan_text
from core.views.plan.text_rates import usual_network
from core.wording import price
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.rates import draw_rates, measure_here, rates_note
from pages.common.shape import own_shape

_GOOD = "compute:good"
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


def draw(inputs: Inputs, budget: BudgetInputs) -> None:
    """Every field of the question, the answer in the place of the one that is found."""
    wanted, a = budget.wanted, budget.answer
    plan = plan_of(inputs.reading)
    top = st.columns([3.4, 1.3, 1.6], vertical_alignment="bottom")
    with top[0]:
        inputs.draw(FIND)
    if wanted != "time":
        with top[1]:
            inputs.draw(WITHIN)
    cells = st.columns([1.6, 1.3, 1.15, 1.55, 1.05, 1.0])
    for cell, field in zip(cells, (MODEL_NAME, PARAMETERS, TRAINED, ACCELERATOR, COUNT, MFU), strict=True):
        with cell:
            if _SOLVED.get(wanted) == field:
                inputs.parsed_value(field, *plan_text.in_its_field(wanted, a))
            elif field == MODEL_NAME and wanted == "parameters":
                inputs.parsed_value(field, "Model", "of any shape")
            elif field == PARAMETERS and (model := plan.known):
                label, text = fixed_parameters(model)
                st.text_input(label, text, disabled=True, key=inputs.key(f"fixed_{model.active}"))
            else:
                inputs.draw(field)
    rates_note(inputs, plan)
    measure_here(plan)
    if plan.model == OWN and wanted != "parameters":
        own_shape(inputs)
    # A price that nobody published is asked for where it can be seen; any other is folded away with the rest.
    unpriced = plan.prices is None and math.isnan(plan.price_range[0])
    if unpriced:
        with top[2]:
            inputs.draw(PRICE)
    show.input_errors(inputs)
    title = "More: peak’s dtype, length, price, model states, batch, software, network, measured rates, your own runs"
    with show.more(inputs, title, *_MORE, *_STATES, *_STEP, *MEASURED_FIELDS, MATURITY, OWN_RUNS, key="fold") as more:
        if more.open:
            for cell, field in zip(st.columns([1.5, 0.9, 1, 1.2, 1.4]), _MORE, strict=True):
                with cell:
                    if field != PRICE:
                        inputs.draw(field)
                    elif not unpriced:
                        inputs.draw(field, placeholder=price(*plan.price_range))
            for cell, field in zip(st.columns([1, 1.7, 2]), _STATES, strict=True):
                with cell:
                    inputs.draw(field)
            for cell, field in zip(st.columns([1, 1.7, 2]), _STEP, strict=True):
                with cell:
                    if field == NETWORK:
                        inputs.draw(field, placeholder=usual_network(plan))
                    else:
                        inputs.draw(field)
            draw_rates(inputs)
            inputs.draw(MATURITY)
            inputs.draw(OWN_RUNS)
