"""The published runs that a plan repeats, under its answer."""

from __future__ import annotations

from collections.abc import Iterable

from core.planning.estimate import PlanEstimate
from core.planning.nearest_runs import repeated_runs
from core.views.common.rows import cited
from core.views.runs.text import repeated_run
from pages.common import show


def repeated_notices(answers: Iterable[PlanEstimate]) -> list[show.Html]:
    """Return what each published run took that one of the answers repeats, and its source."""
    found = {repeated_run(a, run): run for a in answers for run in repeated_runs(a)}
    return [show.sourced(cited(run.source, run.confidence), after=line) for line, run in found.items()]
