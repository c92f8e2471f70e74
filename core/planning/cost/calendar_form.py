"""What Calendar and cost asks, as one form."""

from __future__ import annotations

from core.planning.calendar.form import CALENDAR_FIELDS
from core.planning.cost.form import MONEY_FIELDS
from core.planning.form.plan_form import plan_form

CALENDAR_FORM = plan_form("y", *CALENDAR_FIELDS, *MONEY_FIELDS)
