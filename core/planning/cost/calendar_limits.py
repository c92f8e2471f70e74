"""Whether a calendar keeps the plan's limits: all of its runs together, stages and pools included."""

from __future__ import annotations

import math

from core.budget.interval import Interval
from core.planning.calendar.schedule import Schedule
from core.planning.cost.bill import peak_of
from core.planning.plan_limits import Check, all_checks, check_of


def calendar_checks(s: Schedule, dollars: Interval) -> tuple[Check, ...]:
    """Every limit of the plan that the runs share, and the memory of the run that has least to spare.

    dollars: what the calendar costs. Its own deadline stands in for the plan's, whose part of a day counts.
    """
    return (*shared_checks(s, dollars), *memory_checks(s))


def shared_checks(s: Schedule, dollars: Interval) -> tuple[Check, ...]:
    """The same without memory, for which layouts are searched."""
    limits = s.runs[0].answer.plan.limits
    every = (
        check_of("deadline", s.deadline, s.ends, limits.level),
        check_of("money", limits.dollars, dollars, limits.level),
        check_of("power", limits.watts, Interval.point(peak_of(s)), limits.level),
    )
    return tuple(check for check in every if not math.isnan(check.limit))


def memory_checks(s: Schedule) -> tuple[Check, ...]:
    """The memory of the run that has least to spare, and of its hosts where that is limited; unknown where a run has no
    layout."""
    every = sorted((check for run in s.runs for check in all_checks(run.answer)), key=_tightest)
    tightest = (next((check for check in every if check.id == name), None) for name in ("host", "memory"))
    return tuple(check for check in tightest if check)


def _tightest(check: Check) -> tuple[bool, bool, float]:
    """What is unknown comes first, then what is too much, then what leaves least."""
    return check.met is not None, check.met is not False, -check.over
