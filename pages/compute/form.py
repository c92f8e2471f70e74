"""What Compute budget asks: the fields of a plan, and those of its own pictures and panels."""

from __future__ import annotations

from core.fields import Field, choice, optional, slider, switch
from core.limits import limit
from core.messages import message
from core.planning.actuals.log import read_log
from core.planning.form.plan_form import complete_presets, plan_form
from core.planning.presets import PRESETS
from core.quantities import parse_quantity
from pages.common.plan_page.panels import Groups, switches
from pages.common.takeaway import DOWNLOADS

_SHOWN = "shown"

PAGE_PRESETS = complete_presets(PRESETS)

GROUPS: Groups = {
    message("compute.group.run"): {
        "whole": message("compute.panel.whole"),
        "moves": message("compute.panel.moves"),
        "actuals": message("compute.panel.actuals"),
        "runs": message("compute.panel.runs"),
    },
    message("compute.group.model"): {
        "flops": message("compute.panel.flops"),
        "roof": message("compute.panel.roof"),
        "split": message("compute.panel.split"),
        "parts": message("compute.panel.parts"),
    },
    message("compute.group.export"): {
        "table": message("compute.panel.table"),
        DOWNLOADS.id: DOWNLOADS.label,
    },
}
"""Heading → the panels under it, in the order in which they are asked for."""

PANELS = switches(GROUPS)

RATE = optional(
    "rate",
    message("compute.field.rate"),
    lambda text: parse_quantity(text, "count", low=1e-9, high=1e15, example="2.7M"),
    nothing=None,
    part=_SHOWN,
    help=message("compute.field.rate_help"),
)
BASIS = choice(
    "basis",
    message("compute.field.basis"),
    ("whole", "steady"),
    "whole",
    few=True,
    short=(message("compute.basis.whole"), message("compute.basis.steady")),
    part=_SHOWN,
    help=message("compute.field.basis_help"),
)
_MOVED = (message("compute.moved.days"), message("compute.moved.dollars"))
MOVED = choice(
    "moved", message("compute.field.moved"), ("days", "dollars"), "days", few=True, short=_MOVED, part=_SHOWN
)
SWING = slider("sway", message("compute.field.swing"), 5, 50, 20, part=_SHOWN, help=message("compute.field.swing_help"))
MICRO_BATCH = slider(
    "mb", message("compute.field.micro_batch"), 0, 17, 13, part=_SHOWN, help=message("compute.field.micro_batch_help")
)
FUSED = switch("flash", message("compute.field.fused"), True, part=_SHOWN, help=message("compute.field.fused_help"))
LOG = Field(
    "log",
    message("compute.field.log"),
    "",
    read_log,
    "lines",
    part=_SHOWN,
    max_chars=limit("spec_chars"),
    omit_if_empty=True,
)
"""A log that is short enough for a link."""

FORM = plan_form(
    "c",
    RATE,
    BASIS,
    MOVED,
    SWING,
    MICRO_BATCH,
    FUSED,
    LOG,
    *PANELS.values(),
)
