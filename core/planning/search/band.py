"""How far readings of comparable published steps lie from what is predicted: the range of a plan's step time."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from core.planning.search.found import Found
from core.planning.search.question import Question
from core.planning.step.evidence import published_evidence

_LEAST = 12
"""Fewer rows than this say nothing of a range."""

_TENTH, _NINTH = 0.1, 0.9


@lru_cache(maxsize=64)
def band(family: str, mixture: bool) -> tuple[float, float]:
    """Measured over predicted time between which eight of ten comparable rows lie.

    Comparable are dense models, or mixtures of experts, on accelerators of the family; on all where it has too few.
    """
    rows = published_evidence().where(lambda run: run.mixture == mixture)
    near = rows.where(lambda run: run.cluster.accelerator.family == family)
    chosen = near if len(near.runs) >= _LEAST else rows
    low, high = np.quantile(1 / chosen.ratio, (_TENTH, _NINTH))
    return float(low), float(high)


def ranged(question: Question, found: Found) -> Found:
    """The plan with its range, where it has none yet."""
    if not math.isnan(found.low):
        return found
    low, high = band(question.cluster.accelerator.family, question.spec.experts is not None)
    return replace(found, low=low * found.seconds, high=high * found.seconds)
