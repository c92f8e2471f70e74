"""Saved calendars: when each ends and what it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from core.budget.errors import BudgetError
from core.limits import cached
from core.planning.calendar.form import calendar_request
from core.planning.calendar.schedule import Schedule
from core.planning.comparison.comparison import with_saved_results
from core.planning.comparison.entry import Entry
from core.planning.cost.bill import CostOption, energy_of
from core.planning.cost.calendar_form import CALENDAR_FORM
from core.planning.cost.form import prices_of
from core.planning.cost.pool_bill import ways_to_pay


@dataclass(frozen=True, eq=False, slots=True)
class CalendarResult:
    """A calendar with its schedule and ways of paying; with neither where it cannot be placed, as ``problem`` says."""

    schedule: Schedule | None
    ways: tuple[CostOption, ...]
    problem: str

    @property
    def dollars(self) -> float:
        """What it costs as its page leads with: rented, or on its pools; NaN where unknown."""
        return self.ways[0].total.mid if self.ways else math.nan


def calendar_result(entry: Entry) -> CalendarResult:
    """Return what a calendar comes to."""
    return _placed(tuple(entry.texts[field.id] for field in CALENDAR_FORM.fields))


@cached("arrays_kept")
def _placed(texts: tuple[str, ...]) -> CalendarResult:
    """The same of a calendar's texts in the form's order, by which it is kept."""
    reading = CALENDAR_FORM.parse({field.id: text for field, text in zip(CALENDAR_FORM.fields, texts, strict=True)})
    try:
        s = calendar_request(reading).schedule()
    except BudgetError as problem:
        return CalendarResult(None, (), str(problem))
    return CalendarResult(s, ways_to_pay(s, prices_of(reading)), "")


def with_results(entry: Entry) -> Entry:
    """A plan or calendar with the results of now; with none where it has no answer."""
    if entry.kind == "plan":
        return with_saved_results(entry)
    item = calendar_result(entry)
    if item.schedule is None:
        return replace(entry, results={})
    s = item.schedule
    results = {
        "days": s.ends.mid,
        "dollars": item.dollars,
        "accelerators": float(sum(pool.accelerators for pool in s.pools)),
        "watt_hours": energy_of(s).mid,
    }
    return replace(entry, results={name: value for name, value in results.items() if math.isfinite(value)})
