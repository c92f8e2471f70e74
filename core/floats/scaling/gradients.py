"""Gradients whose size changes from step to step, as those of a run do: the same course for every way of scaling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from core.limits import cached, limit

Floats = npt.NDArray[np.float64]

WANDER = 0.2
"""Standard deviation of what one step adds to the wandering of the median, in binades."""

KEPT = 0.95
"""Share of its wandering that the median keeps from one step to the next: it strays by 0.64 binades, not further."""

SPIKES = 0.01
"""Chance of a step to be a spike."""

_ERFC = np.frompyfunc(math.erfc, 1, 1)
_ROOT = math.sqrt(2)


def below(log: npt.ArrayLike, mean: npt.ArrayLike, spread: float) -> Floats:
    """Return the share of a normal distribution below ``log``; keeps its digits far out in the lower tail."""
    return np.asarray(_ERFC((np.asarray(mean) - np.asarray(log)) / (spread * _ROOT)), dtype=np.float64) / 2


def between(low: npt.ArrayLike, high: npt.ArrayLike, mean: npt.ArrayLike, spread: float) -> Floats:
    """Return the share of a normal distribution between two places, by the tail in which they are small."""
    low, high, mean = np.asarray(low), np.asarray(high), np.asarray(mean)
    flip = low > mean
    first, last = np.where(flip, 2 * mean - high, low), np.where(flip, 2 * mean - low, high)
    return np.maximum(below(last, mean, spread) - below(first, mean, spread), 0.0)


def share(
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    median: npt.ArrayLike,
    spread: float,
    largest: npt.ArrayLike = math.inf,
    count: float = math.inf,
) -> Floats:
    """Return, for each step, the expected share of its gradients from ``low`` to ``high``, given its largest."""
    top = np.asarray(largest)
    others = between(np.minimum(low, top), np.minimum(high, top), median, spread) / below(top, median, spread)
    return others + ((np.asarray(low) <= top) * (top < np.asarray(high)) - others) / count


@dataclass(frozen=True, slots=True)
class Course:
    """How gradients change over a run.

    steps: of training. first, last: log2 of the median magnitude at the first and at the last step. spread: standard
    deviation of log2 of the magnitudes within a step, in binades. spike: binades by which a few steps exceed the
    others. count: gradients in a step. seed: of all that is drawn.
    """

    steps: int = 600
    first: float = -24.0
    last: float = -30.0
    spread: float = 4.0
    spike: float = 6.0
    count: float = 1e6
    seed: int = 1


@dataclass(frozen=True, slots=True)
class DrawnGradients:
    """The gradients of every step. Made by `draw`.

    medians, largest: log2 of the median magnitude of each step and of its largest one. spikes: which steps are.
    """

    course: Course
    medians: Floats
    largest: Floats
    spikes: npt.NDArray[np.bool_]

    def share(self, low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
        """Return, for each step, the expected share of its gradients from ``low`` to ``high``, given its largest."""
        return share(low, high, self.medians, self.course.spread, self.largest, self.course.count)


@cached("arrays_kept")
def draw(course: Course) -> DrawnGradients:
    """Return the gradients of a run: log-normal magnitudes whose median drifts, wanders and sometimes jumps.

    log2 of the median goes straight from ``first`` to ``last``, and wanders about that: each step keeps `KEPT` of it
    and adds a normal number of deviation `WANDER`. One step in a hundred (`SPIKES`) lies ``spike`` binades higher.
    The largest of ``count`` independent magnitudes is drawn as such, from its own distribution.
    Raises ``ValueError`` for numbers of steps and gradients out of range.
    """
    most = limit("scaled_steps")
    if not 1 <= course.steps <= most or course.count < 1 or course.spread <= 0:
        raise ValueError(f"{course}: 1 to {most:,} steps of at least one gradient, with a positive spread")
    random = np.random.default_rng(course.seed)
    pushes = random.normal(0.0, WANDER, course.steps)
    spikes = random.random(course.steps) < SPIKES
    chances = random.random(course.steps)
    wander = np.empty(course.steps)
    strayed = 0.0
    for step, push in enumerate(pushes.tolist()):
        wander[step] = strayed
        strayed = KEPT * strayed + push
    medians = np.linspace(course.first, course.last, course.steps) + wander + course.spike * spikes
    # The chance that all are below x is F(x)^count; far up, 1 - F keeps the digits that F has lost.
    above = -np.expm1(np.log(1 - chances) / course.count)
    tail = NormalDist().inv_cdf
    sigmas = np.array([-tail(min(max(share, 1e-300), 1 - 1e-16)) for share in above.tolist()])
    return DrawnGradients(course, medians, medians + course.spread * sigmas, spikes)
