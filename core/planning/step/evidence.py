"""Predicted beside measured step times: how far off, source by source, and how often the better plan is recognised."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from core.planning.step.constants import Constant, step_constants
from core.planning.step.fit import Floats, predicted
from core.planning.step.links import wide_peak
from core.planning.step.runs import StepRun, flop_of_token, step_runs

APART = 0.05
"""Difference in measured time below which two plans count as equally good: steps are not published more exactly."""


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """Published steps with their seconds, measured and predicted."""

    runs: tuple[StepRun, ...]
    measured: Floats
    predicted: Floats

    @property
    def ratio(self) -> Floats:
        """Predicted over measured."""
        return self.predicted / self.measured

    def where(self, which: Callable[[StepRun], bool]) -> Evidence:
        """The rows for which ``which`` holds."""
        at = [index for index, run in enumerate(self.runs) if which(run)]
        return Evidence(tuple(self.runs[index] for index in at), self.measured[at], self.predicted[at])


@dataclass(frozen=True, slots=True)
class Errors:
    """Distribution of relative errors. bias: the median of predicted over measured."""

    name: str
    rows: int
    median: float
    p90: float
    worst: float
    bias: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """How well plans are ordered that differ in nothing but the plan.

    right: share of ``pairs`` whose faster one is predicted faster.  regret_median, regret_p90: over ``choices`` among
    published plans, how much longer the one predicted best takes than the best.
    """

    pairs: int
    right: float
    choices: int
    regret_median: float
    regret_p90: float


def evidence(runs: Sequence[StepRun] | None = None, constants: Sequence[Constant] | None = None) -> Evidence:
    """Every published step, or those given, under the published constants or others."""
    chosen = step_runs() if runs is None else tuple(runs)
    measured = np.array([run.seconds for run in chosen])
    return Evidence(chosen, measured, predicted(chosen, constants or step_constants()))


@lru_cache(maxsize=1)
def published_evidence() -> Evidence:
    """Every published step under the published constants."""
    return evidence()


def errors(name: str, found: Evidence) -> Errors:
    """The errors of rows, of which there is at least one."""
    ratio = found.ratio
    off = np.abs(ratio - 1)
    p90 = float(np.quantile(off, 0.9))
    return Errors(name, len(off), float(np.median(off)), p90, float(off.max()), float(np.median(ratio)))


def errors_by(key: Callable[[StepRun], str], found: Evidence) -> tuple[Errors, ...]:
    """The errors of each group of rows, in the order in which groups first appear."""
    names = dict.fromkeys(key(run) for run in found.runs)

    def rows(name: str) -> Evidence:
        return found.where(lambda run: key(run) == name)

    return tuple(errors(name, rows(name)) for name in names)


def by_utilisation(found: Evidence) -> Evidence:
    """The same rows predicted by one utilisation for each family of accelerators and format: the median of its rows."""

    def kind(run: StepRun) -> tuple[str, str]:
        return run.cluster.accelerator.family, run.running.dtype

    at_peak = np.array([_seconds_at_peak(run) for run in found.runs])
    kinds = [kind(run) for run in found.runs]
    guess = np.empty(len(kinds))
    for one in set(kinds):
        rows = np.array([other == one for other in kinds])
        guess[rows] = at_peak[rows] / np.median(at_peak[rows] / found.measured[rows])
    return Evidence(found.runs, found.measured, guess)


def _seconds_at_peak(run: StepRun) -> float:
    flop = flop_of_token("causal", run.spec, run.seq_len) * run.sequences * run.seq_len
    return flop / (run.cluster.count * wide_peak(run.cluster.accelerator))


def _question(run: StepRun) -> Hashable:
    """What two plans share that answer the same question, in one source and release."""
    device = run.cluster.accelerator.name
    return run.group, run.spec, device, run.cluster.count, run.seq_len, run.sequences, run.format


def ranking(found: Evidence) -> Ranking:
    """Plans of the same source for the same model, cluster, batch and format held against each other."""
    asked: dict[Hashable, list[int]] = {}
    for index, run in enumerate(found.runs):
        asked.setdefault(_question(run), []).append(index)
    right: list[bool] = []
    regret: list[float] = []
    for rows in asked.values():
        plans = {(found.runs[row].layout, found.runs[row].running) for row in rows}
        if len(plans) < 2:
            continue
        chosen = min(rows, key=lambda row: found.predicted[row])
        regret.append(float(found.measured[chosen] / found.measured[rows].min() - 1))
        for one, other in itertools.combinations(rows, 2):
            apart = found.measured[one] / found.measured[other] - 1
            if abs(apart) > APART and found.predicted[one] != found.predicted[other]:
                right.append(bool((found.predicted[one] > found.predicted[other]) == (apart > 0)))
    return Ranking(
        pairs=len(right),
        right=float(np.mean(right)),
        choices=len(regret),
        regret_median=float(np.median(regret)),
        regret_p90=float(np.quantile(regret, 0.9)),
    )
