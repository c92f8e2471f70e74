"""The published runs that the plan is, and the answer at the pace of each of those that are nearest to it."""

from __future__ import annotations

from dataclasses import dataclass

from core.hardware.accelerators import find
from core.limits import cached
from core.models.catalog import catalog
from core.planning.estimate import PlanEstimate
from core.planning.plan import OWN_SHAPE
from core.planning.solving import WIDTHS
from core.runs.published import PublishedRun, full_runs
from core.runs.run_efficiency import run_shares
from core.runs.scores import NearestRun, RunFeatures, nearest_runs

_SAME = 0.05
"""Largest difference in tokens, and in accelerators where they are published, of a plan that is a published run."""


def _is_same(planned: float, published: float) -> bool:
    return not abs(published / planned - 1) > _SAME  # NaN: not published


def repeated_runs(a: PlanEstimate) -> tuple[PublishedRun, ...]:
    """Return the published whole runs that the plan repeats: same model, tokens, accelerator, and number of them.

    A custom shape is the same model where all of its fields are.
    """
    if a.model is None or a.model.counted or not a.plan.trained.everything:
        return ()
    m, spec = a.middle, a.model.spec
    custom = a.plan.model == OWN_SHAPE
    names = [model.name for model in catalog() if model.spec == spec] if custom else [a.model.name]
    return tuple(
        run
        for name in names
        for run in full_runs(name)
        if find(run.accelerator) is a.device
        and _is_same(m.tokens, run.tokens)
        and _is_same(m.accelerators, run.accelerators)
    )


@dataclass(frozen=True, slots=True)
class SimilarRun:
    """Published run, and the plan's result at its run efficiency.

    value: the solved quantity, in its unit. mfu: end-to-end MFU. similarity: how near the run is to the plan, and in
    what.
    """

    run: PublishedRun
    mfu: float
    value: float
    similarity: NearestRun


def run_features(a: PlanEstimate) -> RunFeatures:
    """Return what published runs are compared with a plan by."""
    m = a.middle
    mixture = bool(a.model and a.model.mixture)
    width = WIDTHS.get(a.dtype, "16-bit")
    return RunFeatures(m.parameters, m.tokens, a.plan.accelerator, m.accelerators, mixture, width)


@cached("results_kept")
def similar_runs(a: PlanEstimate, most: int = 12) -> tuple[SimilarRun, ...]:
    """Return the plan's results at the run efficiencies of the nearest published runs, the nearest first."""
    shares = {run.evidence: run.share for run in run_shares(a.terms.has_step_estimate)}
    steps = a.layout_mfu
    runs: list[SimilarRun] = []
    for near in nearest_runs(run_features(a), tuple(shares), most):
        mfu = float(steps) * shares[near.evidence]
        runs.append(SimilarRun(near.evidence.run, mfu, at_mfu(a, mfu), near))
    return tuple(runs)


def at_mfu(a: PlanEstimate, mfu: float) -> float:
    """Return the solved quantity at another end-to-end MFU.

    Tokens and parameters rise with the MFU, and time and accelerators fall.
    """
    if a.find == "MFU":
        return mfu
    ratio = mfu / a.middle.mfu
    return a.result.mid * (ratio if a.find in ("tokens", "parameters") else 1 / ratio)
