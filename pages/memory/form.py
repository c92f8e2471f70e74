"""What Training memory asks: the fields of a plan, and those of its own panels."""

from __future__ import annotations

from core.fields import choice
from core.messages import message
from core.planning.form.plan_form import complete_presets, plan_form
from core.planning.presets import MEMORY_PRESETS
from pages.common.experiments.panel import switches as switches_of_experiments
from pages.common.plan_page.panels import Groups, switches
from pages.common.registry import MEMORY
from pages.common.takeaway import DOWNLOADS
from pages.memory import serving

READINGS = ("allocated", "reserved", "device")

PAGE_PRESETS = complete_presets(MEMORY_PRESETS)

GROUPS: Groups = {
    message("memory.group.fit"): {
        "why": message("memory.panel.why"),
        "zeros": message("memory.panel.zeros"),
        "post": message("memory.panel.post"),
    },
    message("memory.group.parts"): {
        "optims": message("memory.panel.optimizers"),
        "policy": message("memory.panel.policy"),
        "acts": message("memory.panel.activations"),
        "step": message("memory.panel.step"),
    },
    message("memory.group.next"): {
        "launch": message("memory.panel.launch"),
        "serve": message("memory.panel.serving"),
        DOWNLOADS.id: DOWNLOADS.label,
    },
}
"""Heading → the panels under it, in the order in which they are asked for."""

PANELS = switches(GROUPS)

LAYER = choice(
    "layer", message("memory.activations.field"), ("with experts", "dense"), "with experts", few=True, part="shown"
)

READING = choice(
    "as",
    message("memory.reading.field"),
    READINGS,
    READINGS[-1],
    few=True,
    short=[message("memory.reading.allocated"), message("memory.reading.reserved"), message("memory.reading.device")],
    part="shown",
)

FORM = plan_form("m", LAYER, READING, *serving.FIELDS, *PANELS.values(), *switches_of_experiments(MEMORY.id))
