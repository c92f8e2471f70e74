"""What Calendar and cost asks: the fields of a plan, those of the calendar, and those of the bill."""

from __future__ import annotations

from core.planning.calendar.form import CALENDAR_FIELDS
from core.planning.calendar.presets import PRESETS
from core.planning.cost.form import MONEY_FIELDS
from core.planning.form.plan_form import complete_presets, plan_form

CHIPS = complete_presets(PRESETS)

FORM = plan_form("y", *CALENDAR_FIELDS, *MONEY_FIELDS)
