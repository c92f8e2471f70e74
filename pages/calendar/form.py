"""What Calendar and cost asks: the fields of a plan, those of the calendar, and those of the bill."""

from __future__ import annotations

from core.planning.calendar.form import CALENDAR_FIELDS
from core.planning.calendar.presets import STORIES
from core.planning.cost.form import MONEY_FIELDS
from core.planning.form.plan_form import plan_form, whole

CHIPS = whole(STORIES)

FORM = plan_form("y", *CALENDAR_FIELDS, *MONEY_FIELDS)
