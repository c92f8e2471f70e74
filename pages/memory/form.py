"""What Training memory asks: the fields of a plan, and those of its own panels."""

from __future__ import annotations

from core.fields import choice
from core.planning.form.plan_form import complete_presets, plan_form
from core.planning.presets import MEMORY_PRESETS
from pages.common.experiments.panel import switches as switches_of_experiments
from pages.common.plan_page.panels import Groups, switches
from pages.common.registry import MEMORY
from pages.common.takeaway import DOWNLOADS
from pages.memory import serving

PAGE_PRESETS = complete_presets(MEMORY_PRESETS)

GROUPS: Groups = {
    "Does it fit": {
        "why": "Why not? What fills it, and what would make it fit",
        "zeros": "ZeRO and parallelism: what each degree saves",
        "post": "Post-training: what DPO, GRPO and PPO hold beside it",
    },
    "States and activations": {
        "optims": "Optimizers side by side",
        "policy": "Precision, tensor by tensor",
        "acts": "Activations: what forward keeps for backward",
    },
    "See it happen": {
        "step": "Through one step: when memory rises and falls",
    },
    "What comes next": {
        "launch": "Launch settings: TRL",
        "serve": "Serving it: users that fit, and the least time of a token",
        DOWNLOADS.id: DOWNLOADS.label,
    },
}
"""Heading → the panels under it, in the order in which they are asked for."""

PANELS = switches(GROUPS)

GROWN = choice("grow", "Growing", ("data", "tensor", "pipeline", "context"), "data", few=True, part="shown")
LAYER = choice("layer", "Layer", ("with experts", "dense"), "with experts", few=True, part="shown")

FORM = plan_form("m", GROWN, LAYER, *serving.FIELDS, *PANELS.values(), *switches_of_experiments(MEMORY.id))
