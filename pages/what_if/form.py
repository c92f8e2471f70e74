"""What the what-if sweep asks: the fields of a plan, and those of the sweep."""

from __future__ import annotations

from core.fields import switch
from core.planning.form.plan_form import complete_presets, plan_form
from core.planning.sweep.form import SWEEP_FIELDS, SWEEP_PRESETS

PANELS = {"table": switch("table", "The table behind it, to sort and to take away", False, part="panels")}
"""Titles of the panels."""

PAGE_PRESETS = complete_presets(SWEEP_PRESETS)

FORM = plan_form("w", *SWEEP_FIELDS, *PANELS.values())
