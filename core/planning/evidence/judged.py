"""TEMP"""

from __future__ import annotations

from dataclasses import dataclass

from core.planning.budget.interval import Interval
from core.planning.evidence.runs import PublishedRun


@dataclass(frozen=True)
class Prediction:
    run: PublishedRun
    published: float
    hours: Interval
    error: float
    inside: bool


@dataclass(frozen=True)
class Score:
    runs: int
    error: float
    inside: float
    ratio: float


def predictions(by: str = "model") -> tuple[Prediction, ...]:
    return ()


def score(by: str = "model") -> Score:
    return Score(1, 0.2, 0.8, 2.4)
