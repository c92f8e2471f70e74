"""What a search finds: one plan, and all of them as columns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from core.step_time.parts import StepTime
from core.training.device.memory import DeviceMemory
from core.training.layout import Layout


@dataclass(frozen=True)
class LayoutResult:
    """One plan. Numbers only, no arrays.

    tokens: of one step, at their mean length. usable: bytes that one accelerator has. mfu: model FLOPs of the step over
    the dense peak. low, high: seconds of a step between which eight of ten comparable readings lie.
    """

    layout: Layout
    tokens: int
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
    def pace(self) -> float:
        """Seconds that a million tokens take, by which plans with steps of unlike many compare."""
        return 1e6 * self.seconds / self.tokens

    @property
    def spare(self) -> float:
        """Bytes left on the fullest accelerator; negative where they are missing."""
        return self.usable - float(self.memory.total)


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """Plans as arrays of one length, the fastest first.

    tokens: of one step. bound: index into the fields of `StepTime` of the largest part beside matmul, attention and
    elementwise.
    """

    layout: Layout
    tokens: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]
    memory: npt.NDArray[np.float64]
    bound: npt.NDArray[np.int64]

    @property
    def pace(self) -> npt.NDArray[np.float64]:
        """Seconds that a million tokens take."""
        return 1e6 * self.seconds / self.tokens

    def at(self, place: int) -> Layout:
        """One layout, of whole numbers."""
        return Layout(*(int(getattr(self.layout, field.name)[place]) for field in fields(Layout)))

    def fastest(self, slower: float, most: int) -> Columns:
        """At most so many, evenly from the fastest to those of ``slower`` times its pace."""
        inside = np.flatnonzero(self.pace <= slower * self.pace[:1])
        places = inside[np.linspace(0, len(inside) - 1, min(most, len(inside))).astype(np.intp)]
        layout = Layout(*(getattr(self.layout, field.name)[places] for field in fields(Layout)))
        tokens, seconds, memory = self.tokens[places], self.seconds[places], self.memory[places]
        return Columns(layout, tokens, seconds, memory, self.bound[places])


@dataclass(frozen=True, eq=False, slots=True)
class SearchResult:
    """All that a search found.

    best: the fastest; None where nothing fits.  pareto: plans that none beats in both time and memory, fastest first.
    plans: the fastest of those that fit, up to a cap.  count: plans that can be.  fitting: those of them that fit.
    nearest: where nothing fits, the plan that misses by least.  kept_free: share of an accelerator's memory that all of
    them leave free.
    """

    best: LayoutResult | None
    pareto: tuple[LayoutResult, ...]
    plans: Columns
    count: int
    fitting: int
    nearest: LayoutResult | None
    kept_free: float = 0.0
