"""The answer at the pace of each of the published runs that are nearest to the plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from core.planning.evaluation import Answer
from core.planning.throughput import WIDTHS
from core.runs.coverage import NearestRun, RunFeatures, nearest_runs
from core.runs.published import PublishedRun
from core.runs.share import run_shares


@dataclass(frozen=True, slots=True)
class SimilarRun:
    """A published run, and what the plan would come to at its share of the steps: ``value`` in the unit of what was
    found, mfu over all hours. similarity: how near it is to the plan, and in what.
    """

    run: PublishedRun
    mfu: float
    value: float
    similarity: NearestRun


def run_features(a: Answer) -> RunFeatures:
    """What published runs are compared with a plan by."""
    m = a.middle
    mixture = bool(a.model and a.model.mixture)
    width = WIDTHS.get(a.dtype, "16-bit")
    return RunFeatures(m.parameters, m.tokens, a.plan.accelerator, m.accelerators, mixture, width)


@lru_cache(maxsize=128)
def similar_runs(a: Answer, most: int = 12) -> tuple[SimilarRun, ...]:
    """The plan's steps at the share that each of the nearest runs reached of its own, the nearest first."""
    shares = {run.evidence: run.share for run in run_shares(a.terms.throughput.has_step_estimate)}
    steps = a.terms.layout_mfu(np.array(a.middle.parameters), np.array(a.middle.accelerators))
    runs: list[SimilarRun] = []
    for near in nearest_runs(run_features(a), tuple(shares), most):
        mfu = float(steps) * shares[near.evidence]
        runs.append(SimilarRun(near.evidence.run, mfu, at_mfu(a, mfu), near))
    return tuple(runs)


def at_mfu(a: Answer, mfu: float) -> float:
    """What was found, at another MFU over all hours: tokens and parameters rise with it, time and accelerators fall."""
    if a.find == "MFU":
        return mfu
    ratio = mfu / a.middle.mfu
    return a.result.mid * (ratio if a.find in ("tokens", "parameters") else 1 / ratio)
