"""What a calendar asks of pools: which of them its runs are best on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date

from core.fields import ParsedForm
from core.planning.calendar.form import MOST, RUN_FIELDS, CalendarRequest, calendar_request
from core.planning.cost.calendar_form import CALENDAR_FORM
from core.planning.cost.choose_pools import PoolLine, choose_pools
from core.planning.cost.form import prices_of
from core.planning.form.plan_form import plan_as_given
from core.planning.plan import Plan

NO_POOL = {fields[name].id: "" for fields in RUN_FIELDS.values() for name in ("pool", "count")}
"""The texts of runs that are on the plan's cluster, on all of it."""


@dataclass(frozen=True, slots=True)
class ComparedPools:
    """The pools of a team held against each other. plan: with the limits that its runs share."""

    plan: Plan
    due: date
    lines: tuple[PoolLine, ...]


def compare_pools(reading: ParsedForm, request: CalendarRequest) -> ComparedPools | None:
    """The runs of a calendar on each pool; None without a deadline. request: what the form asked when it last could be
    answered. Raises `BudgetError` where the runs cannot be."""
    if not request.due:
        return None
    plan, most = plan_as_given(reading), reading.values[MOST.id]
    limits = plan.limits if math.isnan(most) else replace(plan.limits, dollars=most)
    anywhere = calendar_request(CALENDAR_FORM.parse({**reading.texts, **NO_POOL})).runs
    runs = tuple(replace(run, plan=replace(run.plan, limits=limits)) for run in anywhere)
    lines = choose_pools(runs, request.fleet, request.start, request.due, prices_of(reading))
    return ComparedPools(replace(plan, limits=limits), request.due, lines)
