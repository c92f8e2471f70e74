"""What Parallel plan asks: the fields of a plan, and those of its own panels."""

from __future__ import annotations

from core.fields import choice
from core.planning.form.plan_form import complete_presets, plan_form
from core.planning.presets import SEARCH_PRESETS
from core.step_time.calibration.measured_steps import step_runs
from pages.common.plan_page.panels import Groups, switches
from pages.common.takeaway import DOWNLOADS

_SHOWN = "shown"

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

SOURCE = choice("src", "Source", ("all", *dict.fromkeys(run.group for run in step_runs())), "all", part=_SHOWN)

PAGE_PRESETS = complete_presets(SEARCH_PRESETS)

FORM = plan_form("s", SOURCE, *PANELS.values())
