"""What Parallel plan asks: the fields of a plan, and those of its own panels."""

from __future__ import annotations

from core.planning.form.plan_form import complete_presets, plan_form
from core.planning.presets import SEARCH_PRESETS
from pages.common.plan_page.panels import Groups, switches
from pages.common.takeaway import DOWNLOADS

GROUPS: Groups = {
    "This layout": {
        "why": "Why this one? Its step, pipeline, stages and devices",
        "near": "Neighbours: one step in each direction",
        "launch": "Launch settings: Megatron-LM, torchtitan, TRL",
    },
    "Other layouts and clusters": {
        "space": "The whole space: the fastest as a table",
        "sizes": "How many accelerators?",
    },
    "How sure it is": {
        "runs": "Published layouts beside ours",
        "proof": "Evidence: predicted against measured steps",
    },
    "To take along": {
        DOWNLOADS.id: DOWNLOADS.label,
    },
}
"""Heading → the panels under it, in the order in which they are asked for."""

PANELS = switches(GROUPS)

PAGE_PRESETS = complete_presets(SEARCH_PRESETS)

FORM = plan_form("s", *PANELS.values())
