"""Compute budget, its question: what is to be found, and the answer in force."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.budget.errors import BudgetError
from core.planning.evaluation import Answer, answer
from core.planning.form.plan_form import FIND, WITHIN, plan_of
from core.planning.plan import Find
from core.views.plan import text as plan_text
from pages.common import plan_sidebar
from pages.common.inputs import Inputs

_GOOD = "compute:good"


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
        if last := st.session_state.get(_GOOD):
            result, instead = answer(last), "Still showing the last answer."
        else:
            result, instead = plan_sidebar.possible(inputs, lambda it: answer(plan_of(it)), problem.field)
        inputs.fail(str(problem), instead)
    why, instead = plan_text.other_peak(result)
    if why:
        inputs.fail(why, instead)
    return BudgetInputs(plan.find, result)


def draw_question(inputs: Inputs) -> None:
    """What is to be found, and within what."""
    with plan_sidebar.question():
        plan_sidebar.ask(inputs, "Find", FIND)
        if inputs.reading.values[FIND.id] != "time":
            plan_sidebar.ask(inputs, "within", WITHIN, width=100)
