"""What a whole run loses and draws, as fields: failures, checkpoints, other stops, power and carbon."""

from __future__ import annotations

import math
from dataclasses import replace

from core.fields import Field, optional, quantity
from core.glossary import meaning
from core.limits import limit
from core.runs.energy import MOST_DRAWN, US_GRID, USUAL_PUE
from core.runs.goodput import parse_failures
from core.units import parse_quantity

WHOLE = "whole"
"""The part of the form."""


def _interval(text: str) -> float:
    return parse_quantity(text, "seconds", low=1.0, high=1e8, example="30 min")


def _drawn(text: str) -> float:
    return parse_quantity(text, "ratio", low=0.01, high=MOST_DRAWN, example="100%")


FAILURES = Field(
    "rate1k",
    "Failures/1,000 acc.-days, or MTBF",
    "0.474",
    parse_failures,
    part=WHOLE,
    help="Failures that stop the run. A bare number is per 1,000 accelerator-days; Llama 3 405B had 0.474. Or type "
    "those of the whole cluster: 8 per day, or the mean time between them, MTBF 3 h.",
)
WRITES = quantity(
    "each",
    "Writes, each acc.",
    "120 MB/s",
    "bytes_per_s",
    low=1,
    high=1e12,
    part=WHOLE,
    help="Bandwidth of writing a checkpoint, for each accelerator: storage grows with the cluster. 120 MB/s are the "
    "2 TB/s that Llama 3’s storage sustained for 16,384.",
)
RESTART = quantity(
    "back",
    "Restart",
    "10 min",
    "seconds",
    high=1e6,
    part=WHOLE,
    help="From a failure until it trains again: noticing, replacing, loading, and warming up.",
)
EVERY = optional(
    "every",
    "Checkpoint every",
    _interval,
    nothing=math.nan,
    placeholder="best",
    part=WHOLE,
    help="Training time between checkpoints. Empty: Daly’s best interval.",
)
WAITS = quantity(
    "waits",
    "Training waits",
    "100%",
    "ratio",
    high=1.0,
    part=WHOLE,
    help="Share of a checkpoint’s writing during which training stands still. Written in the background it is a few "
    "percent: the copy out of the accelerators’ memory.",
)
OTHER = quantity(
    "other",
    "Other stops",
    "0%",
    "ratio",
    high=0.9,
    part=WHOLE,
    help="Share of the time on the wall for evaluation, planned stops, idle tails.",
)
TAKEN = replace(
    optional(
        "spot",
        "Spot, interruptions/h",
        lambda text: parse_quantity(text, "number", high=float(limit("interruptions")), example="0.05"),
        nothing=0.0,
        placeholder="none",
        part=WHOLE,
        help="How often an hour all accelerators are taken away at once, as spot capacity is. Each time is a failure: "
        "work since the last checkpoint is lost, and a restart.",
    ),
    omit_if_empty=True,
)
DRAW = optional(
    "draw",
    "Power drawn",
    _drawn,
    nothing=None,
    placeholder="as published",
    part=WHOLE,
    help="Empty: of what the node of the accelerators draws at most, host and fans in it, the share that training was "
    "measured to draw, 76 % as a rule. Or type an average as a share of the accelerators’ own power limits: 100 % is "
    "what published tables take; 10.2 kW for 8 accelerators of 700 W are 182 %.",
)
PUE = quantity(
    "pue",
    "PUE",
    str(USUAL_PUE),
    "number",
    low=1.0,
    high=3.0,
    part=WHOLE,
    help=meaning("PUE"),
)
GRID = quantity(
    "grid",
    "Grid, kg/kWh",
    str(US_GRID),
    "number",
    high=3.0,
    part=WHOLE,
    help="kg of CO₂ equivalent per kWh. 0.385 is the US average in LLaMA’s table.",
)
