"""What Calendar and cost asks: the fields of a plan, those of the calendar, those of the bill, and what is open."""

from __future__ import annotations

from core.fields import switch
from core.planning.calendar.form import CALENDAR_FIELDS
from core.planning.calendar.presets import PRESETS
from core.planning.cost.form import MONEY_FIELDS
from core.planning.form.plan_form import complete_presets, plan_form
from pages.common.plan_sidebar import WHICH_POOL

PAGE_PRESETS = complete_presets(PRESETS)

WHICH = switch(
    WHICH_POOL,
    "Which of ours, or how many to rent: how many of each pool every limit takes",
    False,
    part="panels",
)

FORM = plan_form("y", *CALENDAR_FIELDS, *MONEY_FIELDS, WHICH)
