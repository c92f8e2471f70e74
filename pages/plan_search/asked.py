"""Parallel plan: the question of the form, what the search found, and the plan in force."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.planning import BudgetError, Plan
from core.planning.answer.form import named_plan
from core.planning.answer.searching import Query, own, query_of, searched
from core.planning.answer.words_memory import field_of, refused
from core.planning.search import words
from core.planning.search.constraints import SpaceError
from core.planning.search.found import Found, Searched
from core.training import LayoutError
from pages.parts.inputs import Inputs
from pages.plan_search.form import FORM, LOOK, OWN

_GOOD = "plan_search:good"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for and what was found. here: the plan in force; None where none fits and none is typed."""

    plan: Plan
    query: Query
    result: Searched
    here: Found | None


def asked(inputs: Inputs) -> Asked:
    """The plan of the form, searched; where it cannot be, the last that could be stays."""
    plan = named_plan(inputs.reading)
    try:
        query = query_of(plan)
        result = searched(query)
        st.session_state[_GOOD] = plan
    except (BudgetError, SpaceError) as problem:
        said = words.too_many(problem) if isinstance(problem, SpaceError) else str(problem)
        last: Plan | None = st.session_state.get(_GOOD)
        inputs.fail(said.replace("**", ""), "Still showing the last plan." if last else "Showing the first example.")
        plan = last or named_plan(FORM.read({}))
        query = query_of(plan)
        result = searched(query)
    here = result.best
    if inputs.reading.values[LOOK.id] == OWN:
        try:
            here = own(query, plan.layout)
        except LayoutError as problem:
            label = FORM[field_of(problem)].label
            inputs.fail(f"{label}: {refused(problem)}", "Showing the best found instead.")
    return Asked(plan, query, result, here)
