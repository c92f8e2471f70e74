"""Compute budget, its question: what is to be found, and the answer in force."""

from __future__ import annotations

from core.messages import message
from core.planning.estimate import PlanEstimate, estimate
from core.planning.form.plan_form import FIND, WITHIN, plan_of
from core.views.plan import text as plan_text
from pages.common import plan_sidebar
from pages.common.inputs import Inputs
from pages.common.plan_page.instead import worked_out


def read_answer(inputs: Inputs) -> PlanEstimate:
    """Return the estimate of the form's plan, or the last valid one if it has no result."""
    result = worked_out(inputs, lambda reading: estimate(plan_of(reading)))
    if other := plan_text.other_peak(result):
        inputs.fail(other)
    return result


def draw_question(inputs: Inputs) -> None:
    """Draw the quantity to solve for, and its limit."""
    with plan_sidebar.question():
        plan_sidebar.ask(inputs, message("compute.question.find"), FIND)
        if inputs.reading.values[FIND.id] != "time":
            plan_sidebar.ask(inputs, message("compute.question.within"), WITHIN, width=100)
