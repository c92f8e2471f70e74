"""Fields of Compare beside the plans: the baseline, an example to add, and open panels."""

from __future__ import annotations

from core.fields import choice, slider
from core.limits import limit
from core.messages import message
from core.planning.form.plan_form import plan_form
from core.planning.presets import PRESETS
from pages.common.takeaway import DOWNLOADS

BASE = slider("base", message("comparison.field.base"), 1, limit("compared_plans"), 1)
ADD = choice("add", message("comparison.field.add"), list(PRESETS), next(iter(PRESETS)))

FORM = plan_form("k", BASE, ADD, DOWNLOADS)
