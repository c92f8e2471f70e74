"""How far off a predicted step time may be: from the errors of comparable published steps, each source left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from core.hardware.cluster import Cluster
from core.models.spec import TransformerSpec
from core.rows import read_rows
from core.step_time.constants import family_of
from core.step_time.links import BITS
from core.step_time.parts import Running

_APART = {"mixture": 0.1, "family": 0.4, "bits": 0.5, "software": 0.3}
"""What a published step counts for that differs in this: mixture or dense, family of accelerator, bits of a number,
software."""

_OUTSIDE = 0.1
"""Share of comparable steps beyond either end."""


@dataclass(frozen=True, slots=True)
class Range:
    """Factors on a predicted time between which eight of ten comparable readings lie.

    low, high: at most and at least 1.
    """

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Errors:
    """Every published step with its source left out. measured: over predicted, sorted by it."""

    measured: tuple[float, ...]
    weights: tuple[float, ...]
    mixture: tuple[bool, ...]
    family: tuple[str, ...]
    bits: tuple[int, ...]
    software: tuple[str, ...]


@lru_cache(maxsize=1)
def _errors() -> _Errors:
    rows = sorted(read_rows("step_errors"), key=lambda row: -float(row["error"]))
    of_group = {row["group"]: sum(other["group"] == row["group"] for other in rows) for row in rows}
    return _Errors(
        measured=tuple(math.exp(-float(row["error"])) for row in rows),
        weights=tuple(1 / math.sqrt(of_group[row["group"]]) for row in rows),
        mixture=tuple(row["mixture"] == "1" for row in rows),
        family=tuple(row["family"] for row in rows),
        bits=tuple(BITS[row["dtype"]] for row in rows),
        software=tuple(row["software"] for row in rows),
    )


def range_of(spec: TransformerSpec, cluster: Cluster, running: Running) -> Range:
    """The range of a step of ``spec`` on ``cluster``.

    All published steps count, those of another kind, family, format or software for less, and each source for the root
    of its rows; where nothing comparable is published, the range is that of the others.
    """
    return _range(spec.experts is not None, family_of(cluster.accelerator), BITS[running.dtype], running.software)


@lru_cache(maxsize=256)
def _range(mixture: bool, family: str, bits: int, software: str) -> Range:
    result = _errors()
    weights = np.array(result.weights)
    weights *= np.where(np.array(result.mixture) == mixture, 1.0, _APART["mixture"])
    weights *= np.where(np.array(result.family) == family, 1.0, _APART["family"])
    weights *= np.where(np.array(result.bits) == bits, 1.0, _APART["bits"])
    weights *= np.where(np.array(result.software) == software, 1.0, _APART["software"])
    middle = np.cumsum(weights) - weights / 2
    low, high = np.interp([_OUTSIDE, 1 - _OUTSIDE], middle / weights.sum(), np.array(result.measured))
    return Range(min(1.0, float(low)), max(1.0, float(high)))
