"""Random plans, and the five questions about one of them."""

from __future__ import annotations

import random
from dataclasses import replace

from core.budget.equations import Interval
from core.hardware.accelerators import accelerators
from core.models.catalog import catalog
from core.planning.estimate import PlanEstimate, RunEstimate
from core.planning.plan import MFU_KINDS, TYPED, Find, Plan, Within
from core.runs.goodput import Failures, Reliability

INVERSES: dict[Find, str] = {"tokens": "tokens", "parameters": "parameters", "accelerators": "accelerators"}
"""Questions whose answer is a field of the plan."""

KINDS = ("published", "typed", "range")


def columns(a: PlanEstimate) -> tuple[RunEstimate, RunEstimate, RunEstimate]:
    """The low end, the middle and the high end."""
    return a.low, a.middle, a.high


def random_plan(draw: random.Random, kind: str = "") -> Plan:
    """A plan within what people plan: 10M to 2T parameters, 1 to 100,000 accelerators, any of them."""
    kind = kind or draw.choice(KINDS)
    low = draw.uniform(0.05, 0.6)
    high = low if kind == "typed" else draw.uniform(low, 0.7)
    device = draw.choice(accelerators())
    return Plan(
        model=draw.choice(catalog()).name if draw.random() < 0.3 else TYPED,
        parameters=float(round(10 ** draw.uniform(7, 12.3))),
        tokens=float(round(10 ** draw.uniform(9, 14))),
        accelerator=device.name,
        accelerators=float(round(10 ** draw.uniform(0, 5))),
        dtype=draw.choice(("bf16", "fp8", "fp16")),
        seq_len=draw.choice((2048, 8192, 65_536, 1_048_576)),
        mfu=None if kind == "published" else Interval(low, (low + high) / 2, high),
        mfu_kind=draw.choice(MFU_KINDS),
        prices=(2.0, 3.0),
        optimizer=draw.choice(("AdamW", "SGD")),
        reliability=Reliability(
            failures=Failures(0.0 if draw.random() < 0.1 else 10 ** draw.uniform(-2, 1)),
            restart=draw.uniform(0, 1800),
            blocking=draw.choice((1.0, 0.05)),
            elsewhere=draw.choice((0.0, 0.1)),
        ),
    )


def asked(plan: Plan, find: Find, days: float) -> Plan:
    """The same plan with ``find`` asked for, within ``days``."""
    return replace(plan, find=find, within=Within(days))
