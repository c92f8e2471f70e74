"""Of plans that stream by in blocks: the fastest, and those that none beats in both time and memory.

A block is seconds of many shapes' axes, infinite where a plan does not count, memory of their last axes, and the number
of its first plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BINS = 512
"""Steps of memory by which most beaten plans are told apart without sorting."""

_SEED = 17
"""Every so many plans of a block are compared first, so that they beat most of the others."""

_LAST = float(np.finfo(np.float64).max)


class KeptPlans:
    """Plans that were kept, as columns of one length."""

    def __init__(self) -> None:
        self.seconds, self.memory, self.ids = np.empty(0), np.empty(0), np.empty(0, dtype=np.int64)

    def _joined(self, seconds: Floats, memory: Floats, first: int, places: Ints) -> Ints:
        """Take in plans at some places of a block; the order of all that are kept now, the fastest first.

        Equally fast ones follow by memory, and of equal ones the first comes first.
        """
        flat, values = seconds.reshape(-1), memory.reshape(-1)
        self.seconds = np.concatenate([self.seconds, flat[places]])
        self.memory = np.concatenate([self.memory, values[places % memory.size]])
        self.ids = np.concatenate([self.ids, first + places])
        return np.lexsort((self.ids, self.memory, self.seconds))

    def _keep(self, which: Any) -> None:
        self.seconds, self.memory, self.ids = self.seconds[which], self.memory[which], self.ids[which]


class Front(KeptPlans):
    """Plans that none beats in time or memory and equals in the other, the fastest first; of equal ones the first."""

    def __init__(self) -> None:
        super().__init__()
        self._scale = 0.0
        self._beaten = np.full(_BINS + 2, _LAST)

    def add(self, seconds: Floats, memory: Floats, first: int) -> None:
        """Take a block in."""
        if not self._scale:
            self._scale = _BINS / float(memory.max())
        at, flat = self._bins(memory), seconds.reshape(-1)
        some = np.arange(0, flat.size, _SEED)
        self._merge(seconds, memory, first, some[flat[some] < self._beaten[at.reshape(-1)[some % at.size]]])
        self._merge(seconds, memory, first, np.flatnonzero(seconds < self._beaten.take(at)))

    def _bins(self, memory: Floats) -> Any:
        return np.minimum(memory * self._scale, float(_BINS)).astype(np.intp)

    def _merge(self, seconds: Floats, memory: Floats, first: int, places: Ints) -> None:
        order = self._joined(seconds, memory, first, places)
        values = self.memory[order]
        least = np.minimum.accumulate(values)
        self._keep(order[np.concatenate([[True], values[1:] < least[:-1]])] if len(order) else order)
        # Seconds from which a plan is beaten by one that is a step of memory lower.
        beaten = np.full(_BINS + 2, _LAST)
        np.minimum.at(beaten, self._bins(self.memory) + 1, self.seconds)
        self._beaten = np.minimum.accumulate(beaten)


class Fastest(KeptPlans):
    """The ``top`` fastest plans."""

    def __init__(self, top: int) -> None:
        super().__init__()
        self._top, self._limit = top, _LAST

    def add(self, seconds: Floats, memory: Floats, first: int) -> None:
        """Take a block in."""
        flat = seconds.reshape(-1)
        places = np.flatnonzero(flat <= self._limit)
        if len(places) > self._top:
            some = flat[places]
            places = places[some <= np.partition(some, self._top - 1)[self._top - 1]]
        self._keep(self._joined(seconds, memory, first, places)[: self._top])
        if len(self.seconds) == self._top:
            self._limit = float(self.seconds[-1])
