"""The answer at the pace of each of the published runs that are nearest to the plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from core.planning.evaluation import Answer
from core.runs.coverage import NearestRun, nearest_runs
from core.runs.published import PublishedRun


@dataclass(frozen=True, slots=True)
class SimilarRun:
    """A published run, and what the plan would come to at its utilisation: ``value`` in the unit of what was found.

    similarity: how near it is to the plan, and in what.
    """

    run: PublishedRun
    mfu: float
    value: float
    similarity: NearestRun


@lru_cache(maxsize=128)
def similar_runs(a: Answer, most: int = 12) -> tuple[SimilarRun, ...]:
    """The plan at the utilisation of each of the nearest runs, the nearest first."""
    runs: list[SimilarRun] = []
    for near in nearest_runs(a.run_features, most):
        mfu = near.evidence.utilisation * a.scale
        runs.append(SimilarRun(near.evidence.run, mfu, at_mfu(a, mfu), near))
    return tuple(runs)


def at_mfu(a: Answer, mfu: float) -> float:
    """What was found, at another MFU over all hours: tokens and parameters rise with it, time and accelerators fall."""
    if a.find == "MFU":
        return mfu
    ratio = mfu / a.middle.mfu
    return a.result.mid * (ratio if a.find in ("tokens", "parameters") else 1 / ratio)
