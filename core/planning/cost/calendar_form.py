"""All that a calendar asks, as one form: a plan, the fleet and its runs, and prices."""

from __future__ import annotations

from core.planning.calendar.form import CALENDAR_FIELDS
from core.planning.cost.form import MONEY_FIELDS
from core.planning.form.plan_form import plan_form

CALENDAR_FORM = plan_form("y", *CALENDAR_FIELDS, *MONEY_FIELDS)
