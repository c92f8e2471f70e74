"""What Compute budget asks: the fields of a plan, and those of its own pictures and panels."""

from __future__ import annotations

from core.fields import Field, choice, optional, slider, switch
from core.limits import limit
from core.planning.actuals.log import read_log
from core.planning.form.plan_form import complete_presets, plan_form
from core.planning.presets import PRESETS
from core.units import parse_quantity
from pages.common.plan_page.panels import Groups, switches
from pages.common.takeaway import DOWNLOADS

_SHOWN = "shown"

PAGE_PRESETS = complete_presets(PRESETS)

GROUPS: Groups = {
    "The run": {
        "whole": "The whole run: failures, checkpoints, energy, CO₂",
        "moves": "What moves the answer",
        "actuals": "A running job against the plan: on time, when it ends, what changed",
    },
    "How sure it is": {
        "runs": "Evidence: the published runs, and how well they predict",
    },
    "Model and FLOPs": {
        "flops": "Where the FLOPs go, and which MFU that is",
        "roof": "Roofline of a layer",
        "split": "Parameters or tokens? The compute-optimal split",
        "parts": "The model’s parameters, and the peak",
    },
    "To take along": {
        "table": "The plan as a table",
        DOWNLOADS.id: DOWNLOADS.label,
    },
}
"""Heading → the panels under it, in the order in which they are asked for."""

PANELS = switches(GROUPS)

RATE = optional(
    "rate",
    "Tokens per second of the whole cluster, if you measured them",
    lambda text: parse_quantity(text, "count", low=1e-9, high=1e15, example="2.7M"),
    nothing=None,
    part=_SHOWN,
)
BASIS = choice(
    "basis",
    "Runs",
    ("whole", "steady"),
    "whole",
    few=True,
    part=_SHOWN,
    help="Whole runs: all hours that were billed. Steady: steps alone, from benchmarks and single stages.",
)
MOVED = choice("moved", "Answer", ("days", "dollars"), "days", few=True, part=_SHOWN)
SWING = slider("sway", "Tokens, parameters, accelerators: ± %", 5, 50, 20, part=_SHOWN)
MICRO_BATCH = slider("mb", "Tokens at once: 2ᵏ, k", 0, 17, 13, part=_SHOWN, help="Tokens of one micro-batch.")
FUSED = switch(
    "flash",
    "Fused attention",
    True,
    part=_SHOWN,
    help="On: scores, softmax and values are one operation on the scores that the mask leaves, and these never leave "
    "the chip, as in FlashAttention. Off: three operations on all scores, which write them to memory and read them "
    "back.",
)
WINDOWED = choice(
    "win", "Window", ("most frequent", "window", "full attention"), "most frequent", few=True, part=_SHOWN
)
FFN = choice("ffn", "Feed-forward", ("most frequent", "experts", "dense"), "most frequent", few=True, part=_SHOWN)

LOG = Field(
    "log",
    "Tokens of a running job",
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
    WINDOWED,
    FFN,
    LOG,
    *PANELS.values(),
)
