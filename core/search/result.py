"""What a search finds: one plan, and all of them as columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from core.step_time.parts import Running, StepTime
from core.training.device.memory import DeviceMemory
from core.training.layout import Layout


@dataclass(frozen=True)
class LayoutResult:
    """One plan. Numbers only, no arrays.

    usable: bytes that one accelerator has.  mfu: model FLOPs of the step over the dense peak.  low, high: seconds of a
    step between which eight of ten comparable readings lie.
    """

    layout: Layout
    running: Running
    step: StepTime
    memory: DeviceMemory
    usable: float
    mfu: float
    low: float
    high: float

    @cached_property
    def seconds(self) -> float:
        """Seconds of one step."""
        return float(self.step.total)

    @property
    def spare(self) -> float:
        """Bytes left on the fullest accelerator; negative where they are missing."""
        return self.usable - float(self.memory.total)


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """Plans as arrays of one length, the fastest first.

    bound: index into the fields of `StepTime` of the largest part beside matmul, attention and elementwise.
    """

    layout: Layout
    overlap: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]
    memory: npt.NDArray[np.float64]
    bound: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class SearchResult:
    """All that a search found.

    best: by the objective; None where nothing fits.  second: the best of other degrees than it has, interleaving left
    aside.  pareto: plans that none beats in both time and memory, fastest first.  plans: the fastest of those that fit,
    up to a cap, and all of a small space.  count: plans that divide.  fitting: those of them that fit.  nearest: where
    nothing fits, the plan that misses by least.  seconds: of the search itself.  dollars: rent of one step of the best
    plan; NaN without a price.  kept_free: share of an accelerator's memory that all of them leave free.
    """

    best: LayoutResult | None
    second: LayoutResult | None
    pareto: tuple[LayoutResult, ...]
    plans: Columns
    count: int
    fitting: int
    nearest: LayoutResult | None
    seconds: float
    dollars: float = math.nan
    kept_free: float = 0.0
