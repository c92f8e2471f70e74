"""What if, its question: two axes with their values, the result in the cells, and the limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import streamlit as st

from core.budget.equations import BudgetError
from core.fields import Field, ParsedForm
from core.messages import message
from core.number_text import QuantityError
from core.planning.estimate import estimate
from core.planning.plan import Plan, Within
from core.planning.sweep.axes import AXES, Axis, default_values, parse_values
from core.planning.sweep.form import DUE, RESULT, X_VALUES, Y_VALUES, X, Y
from core.planning.sweep.sweep import RESULTS, Result, Sweep, SweptAxis, plan_of_texts, sweep_plan, sweep_within
from core.views.plan.text import limit_text
from pages.common import plan_sidebar
from pages.common.inputs import Inputs
from pages.common.plan_page.instead import first_possible

_VALID = "what_if:good"


@dataclass(frozen=True, slots=True)
class SweepInputs:
    """The plan, its sweep, and the result that cells show."""

    plan: Plan
    sweep: Sweep
    result: Result


def read_inputs(inputs: Inputs) -> SweepInputs:
    """Return the sweep of the form. An invalid list keeps its last valid values; two equal axes become different."""
    texts, values = inputs.reading.texts, inputs.reading.values
    plan = plan_of_texts(texts)
    x, y = AXES[values[X.id]], AXES[values[Y.id]]
    if x is y:
        y = next(axis for axis in AXES.values() if axis is not x)
        inputs.fail(
            message("sweep.error.same_axis", axis=x.field.label), message("sweep.error.other_axis", axis=y.field.label)
        )
    across, up = _swept_axis(inputs, x, X_VALUES, plan), _swept_axis(inputs, y, Y_VALUES, plan)
    sweep = _swept(inputs, texts, across, up, sweep_within(values[DUE.id], plan))
    if not sweep.answered:
        try:
            estimate(plan)
        except BudgetError as problem:
            texts, instead = first_possible(inputs, _answered, problem)
            inputs.fail(str(problem), instead)
            plan, sweep = plan_of_texts(texts), _swept(inputs, texts, across, up, sweep.within)
    return SweepInputs(plan, sweep, RESULTS[values[RESULT.id]])


def _swept(inputs: Inputs, texts: Mapping[str, str], x: SweptAxis, y: SweptAxis, within: Within) -> Sweep:
    """Return the sweep, of the first values of each side if it would try too many layouts."""
    try:
        return sweep_plan(texts, x, y, within)
    except BudgetError as problem:
        too_many = str(problem)
    most = max(len(x.texts), len(y.texts))
    while most > 1:
        most = most * 3 // 4
        with suppress(BudgetError):
            sweep = sweep_plan(texts, replace(x, texts=x.texts[:most]), replace(y, texts=y.texts[:most]), within)
            inputs.fail(too_many, message("sweep.error.first_values", values=float(most)))
            return sweep
    raise AssertionError("one plan is never too many")


def _answered(reading: ParsedForm) -> Mapping[str, str]:
    estimate(plan_of_texts(reading.texts))
    return reading.texts


def _swept_axis(inputs: Inputs, axis: Axis, field: Field, plan: Plan) -> SweptAxis:
    """Return the values of one side: those entered, else the last valid ones, else those around the plan’s."""
    valid: dict[tuple[str, str], str] = st.session_state.get(_VALID, {})
    text, here = inputs.reading.values[field.id], (field.id, axis.id)
    try:
        values = parse_values(axis, text)
        st.session_state[_VALID] = {**valid, here: text}
    except QuantityError as problem:
        text = valid.get(here, "")
        values = parse_values(axis, text)
        last = message("sweep.error.last_values", values=text) if text else message("sweep.error.default_values")
        inputs.fail(problem.about(field.label), last)
    return SweptAxis(axis, values or default_values(axis, plan, inputs.reading.texts))


def draw_question(inputs: Inputs, a: SweepInputs) -> None:
    """Draw both axes, the result in the cells, and their limit."""
    own = sweep_within(None, a.plan)
    placeholder = message("sweep.field.no_limit") if math.isinf(own.days) else limit_text(own)
    with plan_sidebar.question():
        plan_sidebar.ask(inputs, message("sweep.ask.x"), X, width=168)
        plan_sidebar.ask(inputs, "", X_VALUES, width=90)
        plan_sidebar.ask(inputs, message("sweep.ask.y"), Y, width=168)
        plan_sidebar.ask(inputs, "", Y_VALUES, width=90)
        plan_sidebar.ask(inputs, message("sweep.ask.result"), RESULT, width=112)
        plan_sidebar.ask(inputs, message("sweep.ask.limit"), DUE, width=78, placeholder=placeholder)
