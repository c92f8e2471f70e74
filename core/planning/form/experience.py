"""What somebody knows of a run beside its plan, as fields: how proven the accelerator is, and runs of one's own."""

from __future__ import annotations

from core.fields import Field, choice
from core.limits import limit
from core.planning.own_runs import EXAMPLE, parse_own_runs
from core.planning.plan import BY_AGE, MATURITIES

MATURITY = choice(
    "ready",
    "Its software",
    MATURITIES,
    BY_AGE,
    few=True,
    part="more",
    help="Runs on an architecture that had been out for two years at most reached less of their steps. **by its age**: "
    "new where the latest published runs were so early on it. **first run on it**, **proven**: what you know of yours.",
)
OWN_RUNS = Field(
    "ownruns",
    "Your own runs, one a line",
    "",
    parse_own_runs,
    "lines",
    part="more",
    placeholder=EXAMPLE,
    max_chars=limit("spec_chars"),
    omit_if_empty=True,
    help="What the same people trained before: parameters, tokens, accelerators, and how long, in days, hours or "
    "accelerator-hours; or tokens/s of the whole cluster. The cells of a table are read as well. What they reached of "
    "their steps moves and narrows the range.",
)
