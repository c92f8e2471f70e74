"""Calendar and cost, its questions: the fleet and its days, the plan, and a row of fields for each run."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.budget.errors import BudgetError
from core.planning.calendar.form import CLOSED, COUNTED, DUE, MONTHLY, RUN_FIELDS, SPARE, START, calendar_request
from core.planning.calendar.form import CalendarRequest as Question
from core.planning.calendar.schedule import Schedule
from core.planning.cost.bill import CostOption, costs
from core.planning.cost.form import prices_of
from core.planning.form.plan_form import (
    ACCELERATOR,
    COUNT,
    DRAW,
    DTYPE,
    MFU,
    MODEL_NAME,
    PACE,
    PARAMETERS,
    PUE,
    SEQ_LEN,
    TRAINED,
    named_plan,
)
from core.planning.plan import OWN
from core.views.plan import text
from pages.calendar.form import FORM
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.shape import own_shape, row

_GOOD = "calendar:good"
_PLAN = (MODEL_NAME, PARAMETERS, TRAINED, SEQ_LEN, ACCELERATOR, COUNT, MFU)
_MORE = (PACE, DTYPE, DRAW, PUE)
_WIDTHS = [1.5, 1.05, 0.95, 1.05, 1.1, 1.05, 1.1]


@dataclass(frozen=True, slots=True)
class CalendarInputs:
    """What was asked, its calendar, and what it costs each way."""

    question: Question
    schedule: Schedule
    ways: tuple[CostOption, ...]


def read_inputs(inputs: Inputs) -> CalendarInputs:
    """The calendar of the form; where there is none, the last that could be made stays."""
    question = calendar_request(inputs.reading)
    try:
        schedule = question.schedule()
        st.session_state[_GOOD] = question
    except BudgetError as problem:
        last: Question | None = st.session_state.get(_GOOD)
        inputs.fail(str(problem), "Still showing the last calendar." if last else "Showing the first example.")
        question = last or calendar_request(FORM.parse({}))
        schedule = question.schedule()
    why, instead = text.other_peak(schedule.runs[0].answer)
    if why:
        inputs.fail(why, instead)
    return CalendarInputs(question, schedule, costs(schedule, prices_of(inputs.reading)))


def draw(inputs: Inputs) -> None:
    """Every field of the question but those of the bill."""
    plan = named_plan(inputs.reading)
    row(inputs, [0.9, 0.9, 0.8, 2.2, 1.0], (START, DUE, SPARE, CLOSED, MONTHLY), plan)
    row(inputs, [1.63, 1.04, 0.74, 1.04, 1.56, 0.8, 0.9], _PLAN, plan)
    if plan.model == OWN:
        own_shape(inputs)
    with show.more(inputs, "More: what the MFU is of, peak’s dtype, power", *_MORE, key="fold") as more:
        if more.open:
            row(inputs, [2, 1, 1, 1], _MORE, plan)
    with st.columns([1, 2])[0]:
        inputs.draw(COUNTED)
    for k in range(1, inputs.reading.values[COUNTED.id] + 1):
        with st.container(key=inputs.key(f"row{k}")):
            cells = st.columns(_WIDTHS, vertical_alignment="bottom")
            for cell, field in zip(cells, RUN_FIELDS[k].values(), strict=True):
                with cell:
                    inputs.draw(field, label=field.label.removeprefix("Run ").replace(",", " ·"))
    show.input_errors(inputs)
