"""What a page shows for a plan that cannot be worked out: the last one that could, or what of it can be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias, TypeVar

import streamlit as st

from core.budget.equations import BudgetError
from core.fields import Form, ParsedForm
from core.messages import message
from core.planning.comparison.comparison import suggested
from core.planning.form.layout import LAYING, OWN_LAYOUT_FIELDS
from core.planning.form.training import METHOD
from core.planning.largest_model import DoesNotFitError
from core.search.request import SpaceError
from core.training.layout import LayoutError
from core.training.trained import TrainedError
from core.views.plan.text import EXAMPLE_SHOWN
from core.views.plan.text_memory import field_of
from pages.common.inputs import Inputs

T = TypeVar("T")
Problem: TypeAlias = BudgetError | LayoutError | SpaceError

_OF_LAYOUT = {field.id for field in OWN_LAYOUT_FIELDS}


def worked_out(inputs: Inputs, work: Callable[[ParsedForm], T]) -> T:
    """Return what ``work`` makes of the form. For an invalid form, show the problem and return the result of the last
    valid one, else of the first that is possible. An invalid layout gives way to the fastest, so that every page shows
    the same plan."""
    key = f"{inputs.page.prefix}:worked_out"
    try:
        result = work(inputs.reading)
        st.session_state[key] = inputs.reading
        return result
    except (BudgetError, LayoutError, SpaceError) as wrong:
        problem, (reason, at_fault) = wrong, _message_and_field(inputs.form, wrong)
    last = st.session_state.get(key)
    if last and not _of_own_layout(inputs, at_fault):
        result, instead = work(last), message("error.shown.last", plan=suggested(last.texts))
    else:
        result, instead = first_possible(inputs, work, problem)
    inputs.fail(reason, instead)
    return result


def _message_and_field(form: Form, problem: Problem) -> tuple[str, str]:
    """Return a problem's message and the id of the field at fault."""
    if isinstance(problem, TrainedError):
        field = form[field_of(problem)]
        return message("error.field", field=field.label, problem=str(problem)), field.id
    if isinstance(problem, LayoutError) and not isinstance(problem, SpaceError):
        return message("error.invalid_layout", problem=str(problem)), field_of(problem)
    return str(problem), problem.field


def _of_own_layout(inputs: Inputs, at_fault: str) -> bool:
    return at_fault in _OF_LAYOUT and inputs.reading.texts.get(LAYING.id, LAYING.default) != LAYING.default


def first_possible(inputs: Inputs, work: Callable[[ParsedForm], T], problem: Problem) -> tuple[T, str]:
    """Return what ``work`` makes of the first possible variant of a plan for which it raises ``ValueError``, and a
    message.

    The variants are, in order: the default of the field at fault, or as many accelerators as needed; everything
    trained; the fastest layout; both; and the default plan.
    """
    texts, (_, at_fault) = inputs.reading.texts, _message_and_field(inputs.form, problem)
    needed = problem.needed if isinstance(problem, DoesNotFitError) else None
    first = LAYING.id if _of_own_layout(inputs, at_fault) else at_fault
    for names in ((first,), (METHOD.id,), (LAYING.id,), (LAYING.id, METHOD.id)):
        usual = {name: inputs.form[name].default for name in names if name in texts}
        if needed and at_fault in usual:
            usual[at_fault] = f"{needed:,}"
        with suppress(ValueError):
            result = work(inputs.form.parse({**texts, **usual}))
            named = [
                message("error.shown.field", field=inputs.form[name].label, text=text) for name, text in usual.items()
            ]
            return result, message("error.shown.with", fields=named)
    return work(inputs.form.parse({})), EXAMPLE_SHOWN
