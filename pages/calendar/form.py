"""What Calendar and cost asks: the fields of a plan, those of the calendar, and those of the bill."""

from __future__ import annotations

from core.planning.calendar.presets import PRESETS
from core.planning.cost.calendar_form import CALENDAR_FORM
from core.planning.form.plan_form import complete_presets

CHIPS = complete_presets(PRESETS)

FORM = CALENDAR_FORM
