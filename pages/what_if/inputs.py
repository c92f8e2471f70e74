"""The what-if sweep, its questions: the plan, the two sides, and what the cells show and keep to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import streamlit as st

from core.budget.equations import BudgetError
from core.fields import Field, ParsedForm
from core.planning.estimate import estimate
from core.planning.plan import Plan, Within
from core.planning.sweep.axes import AXES, Axis, default_values, parse_values
from core.planning.sweep.form import DUE, RESULT, X_VALUES, Y_VALUES, X, Y
from core.planning.sweep.sweep import RESULTS, Result, Sweep, SweptAxis, plan_of_texts, sweep_plan, sweep_within
from core.units import QuantityError
from core.views.plan.text import limit_text
from core.views.sweep.text import clashing
from pages.common import plan_sidebar
from pages.common.inputs import Inputs
from pages.common.plan_page.instead import first_possible

_GOOD = "what_if:good"


@dataclass(frozen=True, slots=True)
class SweepInputs:
    """What was asked for: the plan itself, the sweep of it, and what its cells show."""

    plan: Plan
    sweep: Sweep
    result: Result


def read_inputs(inputs: Inputs) -> SweepInputs:
    """The sweep of the form; a list that cannot be read stays what it was, and an axis that meets itself gives way."""
    texts, values = inputs.reading.texts, inputs.reading.values
    plan = plan_of_texts(texts)
    x, y = AXES[values[X.id]], AXES[values[Y.id]]
    if x is y:
        y = next(axis for axis in AXES.values() if axis is not x)
        inputs.fail(clashing(x), f"Using {y.name} instead.")
    across, up = _swept_axis(inputs, x, X_VALUES, plan), _swept_axis(inputs, y, Y_VALUES, plan)
    result = _swept(inputs, texts, across, up, sweep_within(values[DUE.id], plan))
    if not result.answered:
        try:
            estimate(plan)
        except BudgetError as problem:
            texts, instead = first_possible(inputs, _answered, problem)
            inputs.fail(str(problem), instead)
            plan, result = plan_of_texts(texts), _swept(inputs, texts, across, up, result.within)
    return SweepInputs(plan, result, RESULTS[values[RESULT.id]])


def _swept(inputs: Inputs, texts: Mapping[str, str], x: SweptAxis, y: SweptAxis, within: Within) -> Sweep:
    """The sweep; where too many layouts would be tried, that of the first values of each side."""
    try:
        return sweep_plan(texts, x, y, within)
    except BudgetError as problem:
        message = str(problem)
    most = max(len(x.texts), len(y.texts))
    while most > 1:
        most = most * 3 // 4
        with suppress(BudgetError):
            sweep = sweep_plan(texts, replace(x, texts=x.texts[:most]), replace(y, texts=y.texts[:most]), within)
            inputs.fail(message, f"Showing the first {most} values of each side.")
            return sweep
    raise AssertionError("one plan is never too many")


def _answered(reading: ParsedForm) -> Mapping[str, str]:
    """The texts of a plan that has an answer."""
    estimate(plan_of_texts(reading.texts))
    return reading.texts


def _swept_axis(inputs: Inputs, axis: Axis, field: Field, plan: Plan) -> SweptAxis:
    """The values of one side: those typed, else the last that could be read, else those around the plan's own."""
    good: dict[tuple[str, str], str] = st.session_state.get(_GOOD, {})
    text = inputs.reading.values[field.id]
    here = (field.id, axis.id)
    try:
        values = parse_values(axis, text)
        st.session_state[_GOOD] = {**good, here: text}
    except QuantityError as wrong:
        text = good.get(here, "")
        values = parse_values(axis, text)
        used = f"Still using {text}." if text else "Using values around the plan’s own."
        inputs.fail(wrong.about(field.label), used)
    return SweptAxis(axis, values or default_values(axis, plan, inputs.reading.texts))


def draw_question(inputs: Inputs, a: SweepInputs) -> None:
    """The two sides, what the cells show, and what they keep to."""
    deadline = sweep_within(None, a.plan)
    own = "no limit" if math.isinf(deadline.days) else limit_text(deadline)
    with plan_sidebar.question():
        for word, axis, values in (("Across", X, X_VALUES), ("up", Y, Y_VALUES)):
            plan_sidebar.ask(inputs, word, axis, width=164)
            plan_sidebar.ask(inputs, "", values, width=90)
        plan_sidebar.ask(inputs, "show", RESULT, width=112)
        plan_sidebar.ask(inputs, "within", DUE, width=78, placeholder=own)
