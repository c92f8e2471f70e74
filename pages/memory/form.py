"""What Training memory asks: the fields of a plan, and those of its own panels."""

from __future__ import annotations

from core.fields import choice, switch
from core.planning.form.plan_form import complete_presets, plan_form
from core.planning.presets import MEMORY_PRESETS
from pages.common.takeaway import TAKE
from pages.memory import optimizer_paths

CHIPS = complete_presets(MEMORY_PRESETS)

PANELS = {
    name: switch(name, title, False, part="panels")
    for name, title in {
        "why": "Why not? What fills it, and what would make it fit",
        "optims": "Optimizers side by side",
        "policy": "Precision, tensor by tensor",
        "zeros": "ZeRO and parallelism: what each degree saves",
        "step": "Through one step: when memory rises and falls",
        "acts": "Activations: what forward keeps for backward",
        "torch": "See it on torch: one real step on this machine",
        "motion": "Optimizers in motion: what the state buys",
    }.items()
} | {TAKE.id: TAKE}
"""Titles of the panels in the order in which they are asked for."""

GROWN = choice("grow", "Growing", ("data", "tensor", "pipeline", "context"), "data", few=True, part="shown")
LAYER = choice("layer", "Layer", ("with experts", "dense"), "with experts", few=True, part="shown")

FORM = plan_form("m", GROWN, LAYER, *optimizer_paths.FIELDS, *PANELS.values(), n="8B", count="8")
