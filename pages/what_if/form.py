"""Fields of What if: those of a plan, and those of the sweep."""

from __future__ import annotations

from core.planning.form.plan_form import complete_presets, plan_form
from core.planning.presets import SWEEP_PRESETS
from core.planning.sweep.form import SWEEP_FIELDS

PAGE_PRESETS = complete_presets(SWEEP_PRESETS)

FORM = plan_form("w", *SWEEP_FIELDS)
