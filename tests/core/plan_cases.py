"""Random plans, and the five questions about one of them."""

from __future__ import annotations

import random
from dataclasses import replace

from core.budget.equations import Interval
from core.hardware.accelerators import accelerators
from core.models.catalog import catalog
from core.planning.calendar.pools import Pool
from core.planning.calendar.schedule import Schedule
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


def in_use(s: Schedule, pool: Pool | None = None) -> tuple[list[float], list[int]]:
    """Moments at which the number of busy accelerators, of one pool or of all, changes in the middle, and how many
    from each on."""
    changes: dict[float, int] = {0.0: 0, s.ends.mid: 0}
    for run in s.runs_on(pool) if pool else s.runs:
        edges = [run.middle.begin, *(edge for pause in run.pauses for edge in pause), run.middle.end]
        for i, edge in enumerate(edges):
            changes[edge] = changes.get(edge, 0) + (run.accelerators if i % 2 == 0 else -run.accelerators)
    moments = sorted(changes)
    busy, counts = 0, list[int]()
    for at in moments:
        busy += changes[at]
        counts.append(busy)
    return moments, counts
