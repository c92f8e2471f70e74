"""What tests ask of a plan."""

from __future__ import annotations

from dataclasses import replace

from core.planning.calendar.pools import Pool
from core.planning.calendar.schedule import Schedule
from core.planning.estimate import PlanEstimate, RunEstimate
from core.planning.plan import Find, Plan, Within


def columns(a: PlanEstimate) -> tuple[RunEstimate, RunEstimate, RunEstimate]:
    """The low end, the middle and the high end."""
    return a.low, a.middle, a.high


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
