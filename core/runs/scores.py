"""How far the expectation is to be trusted: every published whole run predicted without its model, or its whole lab."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from core.budget.interval import Interval
from core.runs.expectation import RunFeatures, expected_utilisation, hours_at
from core.runs.nearest import Fit, fit_of
from core.runs.published import PublishedRun
from core.runs.utilisation import Evidence, evidence

Without: TypeAlias = Literal["model", "lab"]
"""What is left out with a run that is predicted: its model, or everything its lab trained."""


def same_lab(run: PublishedRun, other: PublishedRun) -> bool:
    """Whether one lab trained both, as far as the table says."""
    return bool(run.lab) and run.lab == other.lab


def same_model(run: PublishedRun, other: PublishedRun) -> bool:
    """Whether two rows train the same model: one name, or one architecture under two names (equal parameters)."""
    if run.model == other.model or (run.catalog and run.catalog == other.catalog):
        return True
    return abs(run.params / other.params - 1) < 5e-3 and abs(run.params_total / other.params_total - 1) < 5e-3


@dataclass(frozen=True, slots=True)
class Prediction:
    """A whole run as predicted from the others, beside what it took.

    published: its accelerator-hours. hours, utilisation: expected, P10, P50, P90. error: P50 over published, minus 1.
    """

    run: PublishedRun
    published: float
    hours: Interval
    utilisation: Interval
    error: float
    inside: bool


@lru_cache(maxsize=2)
def predictions(by: Without = "model") -> tuple[Prediction, ...]:
    """Every whole run that is evidence, predicted with its own model, or its whole lab, left out; in table order."""
    return predictions_of(evidence("whole"), by)


def predictions_of(rows: Sequence[Evidence], by: Without) -> tuple[Prediction, ...]:
    """The same of any runs."""
    fits: dict[Hashable, Fit] = {}
    result: list[Prediction] = []
    for row in rows:
        run = row.run
        others = tuple(
            other for other in rows if not (same_model(other.run, run) or (by == "lab" and same_lab(other.run, run)))
        )
        key = tuple(other.run.model for other in others)
        if key not in fits:
            fits[key] = fit_of(others)
        setting = RunFeatures(run.params, run.tokens, run.accelerator, 1.0, row.experts, row.width)
        expected = expected_utilisation(setting, fits[key])
        used = Interval(float(expected.low), float(expected.mid), float(expected.high))
        hours = used.through(lambda share, setting=setting: float(hours_at(setting, share)))
        published = float(hours_at(setting, row.utilisation))
        result.append(Prediction(run, published, hours, used, hours.mid / published - 1, hours.contains(published)))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Score:
    """How well the predictions did.

    error: median of the absolute errors of P50. inside: share of runs within P10 to P90. ratio: median P90 over P10.
    """

    runs: int
    error: float
    inside: float
    ratio: float


@lru_cache(maxsize=2)
def score(by: Without = "model") -> Score:
    """The score of `predictions`."""
    return score_of(predictions(by))


def score_of(result: Sequence[Prediction]) -> Score:
    """The score of any predictions."""
    return Score(
        runs=len(result),
        error=float(np.median([abs(prediction.error) for prediction in result])),
        inside=float(np.mean([prediction.inside for prediction in result])),
        ratio=float(np.median([prediction.hours.high / prediction.hours.low for prediction in result])),
    )
