"""The fields of Parallel plan: those of a plan, and the switches of its panels."""

from __future__ import annotations

from core.messages import message
from core.planning.form.plan_form import complete_presets, plan_form
from core.planning.presets import SEARCH_PRESETS
from pages.common.plan_page.panels import Groups, switches
from pages.common.takeaway import DOWNLOADS

GROUPS: Groups = {
    message("parallel.group.layout"): {
        "why": message("parallel.panel.why"),
        "near": message("parallel.panel.near"),
        "launch": message("parallel.panel.launch"),
    },
    message("parallel.group.others"): {
        "space": message("parallel.panel.space"),
        "sizes": message("parallel.panel.sizes"),
    },
    message("parallel.group.evidence"): {"proof": message("parallel.panel.proof")},
    message("parallel.group.export"): {DOWNLOADS.id: DOWNLOADS.label},
}
"""Heading → the panels under it, in the order in which people ask for them."""

PANELS = switches(GROUPS)

PAGE_PRESETS = complete_presets(SEARCH_PRESETS)

FORM = plan_form("s", *PANELS.values())
