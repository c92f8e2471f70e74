"""Parallel plan: the question of the form, what the search found, and the plan in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from core.budget.errors import BudgetError
from core.planning.form.plan_form import named_plan
from core.planning.plan import Plan
from core.planning.plan_search import SearchRequest, evaluate_own_layout, search_layouts, search_request
from core.search.constraints import SpaceError
from core.search.result import LayoutResult, SearchResult
from core.training.layout import LayoutError
from core.views.plan.text_memory import field_of, refused
from core.views.search import text
from pages.common.inputs import Inputs
from pages.parallel.form import FORM, LOOK, OWN

_GOOD = "plan_search:good"


@dataclass(frozen=True, slots=True)
class SearchInputs:
    """What was asked for and what was found. texts: those of the plan, by id. in_force: the plan in force; None where
    none fits and none is typed."""

    plan: Plan
    texts: Mapping[str, str]
    request: SearchRequest
    result: SearchResult
    in_force: LayoutResult | None


def read_inputs(inputs: Inputs) -> SearchInputs:
    """The plan of the form, searched; where it cannot be, the last that could be stays."""
    plan, texts = named_plan(inputs.reading), inputs.reading.texts
    try:
        request = search_request(plan)
        result = search_layouts(request)
        st.session_state[_GOOD] = plan, texts
    except (BudgetError, SpaceError) as problem:
        message = text.too_many(problem) if isinstance(problem, SpaceError) else str(problem)
        last: tuple[Plan, Mapping[str, str]] | None = st.session_state.get(_GOOD)
        inputs.fail(message.replace("**", ""), "Still showing the last plan." if last else "Showing the first example.")
        begun = FORM.parse({})
        plan, texts = last or (named_plan(begun), begun.texts)
        request = search_request(plan)
        result = search_layouts(request)
    here = result.best
    if inputs.reading.values[LOOK.id] == OWN:
        try:
            here = evaluate_own_layout(request, plan.layout)
        except LayoutError as problem:
            label = FORM[field_of(problem)].label
            inputs.fail(f"{label}: {refused(problem)}", "Showing the best found instead.")
    return SearchInputs(plan, texts, request, result, here)
