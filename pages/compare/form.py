"""What Compare asks beside the plans: which one is the baseline, what to add, and what is open."""

from __future__ import annotations

from core.fields import choice, slider
from core.limits import limit
from core.planning.form.plan_form import plan_form
from core.planning.presets import PRESETS
from pages.common.takeaway import DOWNLOADS

BASE = slider("base", "Baseline", 1, limit("compared_plans"), 1)
ADD = choice("add", "Add a plan", list(PRESETS), next(iter(PRESETS)))

FORM = plan_form("k", BASE, ADD, DOWNLOADS)
