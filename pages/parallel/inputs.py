"""Parallel plan, what it reads: the constraints, the layout of the plan, and the search space around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from core.budget.equations import BudgetError
from core.fields import ParsedForm
from core.messages import message
from core.planning.estimate import PlanEstimate, timed_estimate
from core.planning.form.layout import KEPT_FIELDS
from core.planning.form.plan_form import plan_as_given
from core.planning.layout import search_request
from core.planning.plan import Plan
from core.search.fastest import searched
from core.search.request import SearchRequest, SearchResult
from core.training.layout import LayoutError
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.plan_page.instead import worked_out


@dataclass(frozen=True, slots=True)
class SearchInputs:
    """A plan and its search.

    texts: of the plan's fields, by id. at: the plan with its layout; None if it has none that fits.
    """

    plan: Plan
    texts: Mapping[str, str]
    at: PlanEstimate | None
    request: SearchRequest
    result: SearchResult


def read_inputs(inputs: Inputs) -> SearchInputs:
    """Return the plan of the form with its search; the last valid one if this one is invalid."""
    return worked_out(inputs, _read)


def _read(reading: ParsedForm) -> SearchInputs:
    plan = plan_as_given(reading)
    request = search_request(plan)
    try:
        at = timed_estimate(plan)
    except (BudgetError, LayoutError):
        result = searched(request)
        if plan.own_layout or result.best is not None:
            raise
        return SearchInputs(plan, reading.texts, None, request, result)
    result = searched(request)
    fits = at.step.spare >= 0 or plan.own_layout or result.best is not None
    return SearchInputs(plan, reading.texts, at if fits else None, at.request, result)


def draw_question(inputs: Inputs) -> None:
    """Draw the constraints on the layouts that are searched."""
    with plan_sidebar.question(), show.popover(message("parallel.constraints"), key="plan:kept") as kept:
        if kept.open:
            for i in range(0, _NUMBERS, 2):
                with st.container(horizontal=True):
                    for field in KEPT_FIELDS[i : min(i + 2, _NUMBERS)]:
                        inputs.draw(field)
            for field in KEPT_FIELDS[_NUMBERS:]:
                inputs.draw(field)


_NUMBERS = 7
"""Constraints that are numbers, which stand in pairs."""
