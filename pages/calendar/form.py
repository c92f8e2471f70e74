"""What Calendar and cost asks: the fields of a plan, those of the calendar, and those of the bill."""

from __future__ import annotations

from core.planning.answer.form import plan_form
from core.planning.calendar.form import CALENDAR_FIELDS
from core.planning.money.form import MONEY_FIELDS

FORM = plan_form("y", *CALENDAR_FIELDS, *MONEY_FIELDS)
