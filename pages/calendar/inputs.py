"""Calendar and cost, its questions: the fleet and its days, the plan, and a row of fields for each run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import streamlit as st

from core.budget.equations import BudgetError
from core.fields import ParsedForm
from core.planning.calendar.form import (
    CLOSED,
    COUNTED,
    DUE,
    MONTHLY,
    POOLS,
    RUN_FIELDS,
    SPARE,
    START,
    CalendarRequest,
    calendar_request,
    shape_text,
)
from core.planning.calendar.schedule import Schedule
from core.planning.cost.bill import CostOption
from core.planning.cost.form import prices_of
from core.planning.cost.pool_bill import ways_to_pay
from core.planning.form.links import texts_as_given
from core.planning.form.whole_run import AVERAGE_POWER, DEADLINE, PUE
from core.units import QuantityError
from core.views.plan import text
from pages.calendar.form import FORM
from pages.calendar.pools import pools
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.plan_page.instead import Problem, first_possible, worked_out

_WIDTHS = [1.5, 1.05, 0.95, 1.05, 1.1, 1.05, 1.1]


@dataclass(frozen=True, slots=True)
class CalendarAnswer:
    """What was asked, its calendar, and what it costs each way."""

    question: CalendarRequest
    schedule: Schedule
    ways: tuple[CostOption, ...]


def read_calendar(inputs: Inputs) -> CalendarAnswer:
    """The calendar of the form; where there is none, the last that could be made stays."""
    question, schedule = worked_out(inputs, _made, partial(_on_its_own, inputs))
    if problem := inputs.reading.values[POOLS.id].problem:
        inputs.fail(problem)
    if other := text.other_peak(schedule.runs[0].answer):
        inputs.fail(other)
    return CalendarAnswer(question, schedule, ways_to_pay(schedule, prices_of(inputs.reading)))


def _on_its_own(inputs: Inputs, problem: Problem) -> tuple[tuple[CalendarRequest, Schedule], str]:
    """What is shown where no calendar could be made before: the plan without pools and runs, or what can be of it."""
    with suppress(BudgetError):
        return _made(FORM.parse(texts_as_given(inputs.reading.texts))), "Showing the plan on its own cluster."
    return first_possible(inputs, _made, problem)


def _made(reading: ParsedForm) -> tuple[CalendarRequest, Schedule]:
    """What is asked of a calendar that can be, and the calendar."""
    question = calendar_request(reading)
    return question, question.schedule()


def draw_question(inputs: Inputs) -> None:
    """The calendar’s days."""
    with plan_sidebar.question():
        plan_sidebar.ask(inputs, "From", START, width=115)
        plan_sidebar.ask(inputs, "to end by", DUE, width=115, placeholder=inputs.reading.texts[DEADLINE.id].strip())
        with show.popover("Fleet", key="calendar:fleet") as box:
            if box.open:
                for field in (SPARE, CLOSED, MONTHLY, AVERAGE_POWER, PUE):
                    inputs.draw(field)


def _shape_of(inputs: Inputs, name: str) -> None:
    """A config.json that was pasted becomes the text of its shape, which a link can carry."""
    with suppress(QuantityError):
        if (text := inputs.now(name).strip()).startswith("{"):
            inputs.put(name, shape_text(text))


def draw_runs(inputs: Inputs) -> None:
    """The pools of the fleet, and a row of fields for each run."""
    several = bool(inputs.reading.values[POOLS.id].offers)
    pools(inputs)
    with st.columns([1, 2])[0]:
        inputs.draw(COUNTED)
    for k in range(1, inputs.reading.values[COUNTED.id] + 1):
        with st.container(key=inputs.key(f"row{k}")):
            fields = [field for name, field in RUN_FIELDS[k].items() if name != "pool" or several]
            cells = st.columns([*_WIDTHS, 1.0][: len(fields)], vertical_alignment="bottom")
            for cell, field in zip(cells, fields, strict=True):
                with cell:
                    label = field.label.removeprefix("Run ").replace(",", " ·")
                    inputs.draw(field, label=label, changed=partial(_shape_of, inputs, field.id))
    show.input_errors(inputs)
