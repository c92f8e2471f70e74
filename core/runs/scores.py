"""How far the range is to be trusted: every published whole run predicted without its lab, or from earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from core.budget.interval import Interval
from core.budget.run import accelerator_hours, training_seconds
from core.limits import cached
from core.models.flops import train_flop_6nd
from core.runs.share import RunShare, Shares, like_runs, new_hardware_factor, run_shares, shares_of
from core.runs.utilisation import peak_16bit

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Levels at which what was said is held against what happened."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A whole run as predicted from those of other labs: MFU over all hours, P10 to P90.

    below: whether it stayed below each of `LEVELS`.
    """

    run: RunShare
    utilisation: Interval
    below: tuple[bool, ...]

    def _hours_at(self, mfu: float) -> float:
        run = self.run.evidence.run
        flop = train_flop_6nd(run.params, run.tokens)
        return accelerator_hours(1.0, training_seconds(flop, 1.0, peak_16bit(run.accelerator), mfu))

    @property
    def published_hours(self) -> float:
        """Accelerator-hours that it took."""
        return self._hours_at(self.run.evidence.utilisation)

    @property
    def hours(self) -> Interval:
        """Accelerator-hours as predicted."""
        return self.utilisation.through(self._hours_at)

    @property
    def error(self) -> float:
        """Hours expected over those published, minus 1."""
        return self.run.evidence.utilisation / self.utilisation.mid - 1

    @property
    def inside(self) -> bool:
        """Whether it lies between P10 and P90."""
        return self.utilisation.contains(self.run.evidence.utilisation)


def predictions_of(runs: Sequence[RunShare], known: Callable[[RunShare, RunShare], bool]) -> tuple[Prediction, ...]:
    """Each of ``runs`` predicted from those that are ``known(other, run)`` before it."""
    return tuple(
        _predicted(run, shares_of([o for o in runs if known(o, run)], new_hardware=run.new_hardware)) for run in runs
    )


@cached("tables_kept")
def predictions() -> tuple[Prediction, ...]:
    """Every whole run whose steps are timed, predicted with all of its lab left out; in the table's order."""
    return predictions_of(run_shares(has_step_estimate=True), lambda other, run: other.lab != run.lab)


def _predicted(run: RunShare, shares: Shares) -> Prediction:
    ends = [run.steps_mfu * run.goodput * shares.at(level) for level in LEVELS]
    below = tuple(run.evidence.utilisation <= end for end in ends)
    return Prediction(run, Interval(ends[0], ends[2], ends[-1]), below)


@cached("tables_kept")
def predictions_by_one_of_its_own() -> tuple[Prediction, ...]:
    """Every run whose lab has a like one, predicted from other labs and each of these by itself."""
    runs = run_shares(has_step_estimate=True)
    result: list[Prediction] = []
    for pair in like_runs(runs):
        others = [run for run in runs if run.lab != pair[0].lab]
        for run, known in (pair, pair[::-1]):
            by = new_hardware_factor(others) ** (run.new_hardware - known.new_hardware)
            result.append(
                _predicted(run, shares_of(others, new_hardware=run.new_hardware).given([known.without_failures * by]))
            )
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Score:
    """How well runs were predicted, each lab weighing the same.

    error: median of the absolute errors. bias: median error. inside: share of runs within P10 to P90; half: within P25
    to P75. ratio: P90 over P10. happened: share of runs below each of `LEVELS`.
    """

    runs: int
    labs: int
    error: float
    bias: float
    inside: float
    half: float
    ratio: float
    happened: tuple[float, ...]


def score_of(result: Sequence[Prediction]) -> Score:
    """The score of predictions."""
    labs = [item.run.lab for item in result]
    weights = np.array([1 / labs.count(lab) for lab in labs])
    weights /= weights.sum()
    errors = np.array([item.error for item in result])
    below = np.array([item.below for item in result], dtype=float)

    def median(values: np.ndarray) -> float:
        order = np.argsort(values)
        return float(np.interp(0.5, np.cumsum(weights[order]) - weights[order] / 2, values[order]))

    return Score(
        runs=len(result),
        labs=len(set(labs)),
        error=median(np.abs(errors)),
        bias=median(errors),
        inside=float(weights @ (below[:, -1] - below[:, 0])),
        half=float(weights @ (below[:, -2] - below[:, 1])),
        ratio=float(np.median([item.utilisation.high / item.utilisation.low for item in result])),
        happened=tuple(float(weights @ column) for column in below.T),
    )


@cached("tables_kept")
def score() -> Score:
    """The score of `predictions`."""
    return score_of(predictions())
