"""Parallel plan: the question of the form, the plan's one layout, and the whole space that it lies in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from core.budget.equations import BudgetError
from core.fields import ParsedForm
from core.planning.estimate import PlanEstimate, timed_estimate
from core.planning.form.plan_form import plan_as_given
from core.planning.layout import search_request
from core.planning.plan import Plan
from core.search.fastest import searched
from core.search.request import LayoutResult, SearchRequest, SearchResult
from core.training.layout import LayoutError
from pages.common.inputs import Inputs
from pages.common.plan_page.instead import worked_out

Searched: TypeAlias = tuple[PlanEstimate | None, SearchRequest, SearchResult]


@dataclass(frozen=True, slots=True)
class SearchInputs:
    """What was asked for and what was found. texts: those of the plan, by id. at: the plan's layout as it is timed;
    None where it has none, so that what it has to keep to is asked again."""

    plan: Plan
    texts: Mapping[str, str]
    at: PlanEstimate | None
    request: SearchRequest
    result: SearchResult

    @property
    def in_force(self) -> LayoutResult | None:
        """The layout of the plan as it is timed; None where none is found that fits."""
        if self.at is None or (self.at.step.spare < 0 and not self.plan.own_layout and self.result.best is None):
            return None
        return self.at.step


def read_inputs(inputs: Inputs) -> SearchInputs:
    """The plan of the form, searched; where it cannot be, the last that could be stays."""
    return worked_out(inputs, _read, "plan")


def _read(reading: ParsedForm) -> SearchInputs:
    """The plan of a form, its texts, and what is found of it."""
    plan = plan_as_given(reading)
    return SearchInputs(plan, reading.texts, *_searched(plan))


def _searched(plan: Plan) -> Searched:
    """The plan's layout and the space around it; the space alone where nothing in it keeps to what it has to."""
    try:
        at = timed_estimate(plan)
    except (BudgetError, LayoutError):
        request = search_request(plan)
        result = searched(request)
        if plan.own_layout or result.best is not None:
            raise
        return None, request, result
    return at, at.request, searched(search_request(plan))
