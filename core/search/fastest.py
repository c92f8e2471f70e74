"""The fastest layout on a number of accelerators: every layout of one space, timed on that very number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core.limits import cached
from core.search.gate import turn
from core.search.request import SearchRequest
from core.search.space import Ints, columns_of, count_layouts, laid, layouts_at
from core.training.layout import Layout

Array = npt.NDArray[np.float64]

_FIRST_ASKED = 256
"""Layouts of which the memory is asked first, the fastest; then eight times as many, and so on."""

_FAILING, _BUSY = 0.95, 0.9
"""Below this goodput, or where a smaller share is busy, it is tried whether half of the accelerators train faster."""


@dataclass(frozen=True, slots=True)
class FoundLayout:
    """A layout on a number of accelerators.

    sequences: of one step. tokens_per_second: of its steps alone. memory_bytes: on the fullest accelerator.
    fits: whether that is no more than there is.
    """

    layout: Layout
    sequences: int
    tokens_per_second: float
    memory_bytes: float
    fits: bool

    @property
    def busy(self) -> int:
        """Accelerators that take part."""
        return int(self.layout.accelerators)


Goodput: TypeAlias = Callable[[Array], Array]
"""Share of its time that a run trains on so many accelerators; two that say the same are equal, and hash so."""


def fastest(request: SearchRequest, count: int, goodput: Goodput) -> FoundLayout | None:
    """The layout on up to ``count`` accelerators that trains most tokens over all hours, failures counted.

    Where none fits it is the one that holds least; None where no layout keeps to the constraints.
    """
    request = request.on(1)
    found = _fastest_on(request, count, goodput)
    if found is None or not found.fits or (_goodput_of(found, goodput) > _FAILING and found.busy > _BUSY * count):
        return found  # What does not fit on so many does not fit on fewer.
    fewer = fastest(request, count // 2, goodput) if count > 1 else None
    return max(found, fewer, key=lambda one: _useful(one, goodput)) if fewer else found


def _goodput_of(found: FoundLayout, goodput: Goodput) -> float:
    return float(goodput(np.array([float(found.busy)]))[0])


def _useful(found: FoundLayout, goodput: Goodput) -> float:
    return found.fits * found.tokens_per_second * _goodput_of(found, goodput)


@cached("layouts_kept")
def _fastest_on(request: SearchRequest, count: int, goodput: Goodput) -> FoundLayout | None:
    with turn(count_layouts(request)):
        layout, possible = laid(request, count)
        sequences = layout.data * layout.micro_batches * layout.micro_batch
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = sequences * float(request.timed_length) / request.step(layout).total
        busy = np.asarray(layout.accelerators)
        sizes, at = np.unique(busy, return_inverse=True)
        trains = goodput(sizes.astype(float))[at].reshape(busy.shape)
        score = np.where(possible & (steps > 0), steps * trains, 0.0)
        best = _best(request, layout, score)
    if best is None:
        return None
    place, memory = best
    row = layouts_at(request, layout, score.shape, np.array([place]))
    found = Layout(**{name: int(values[0]) for name, values in columns_of(row).items()})
    taken = int(found.data) * int(found.micro_batches) * int(found.micro_batch)
    rate = float(np.broadcast_to(steps, score.shape).ravel()[place])
    return FoundLayout(found, taken, rate, memory, not memory > request.usable)


def _best(request: SearchRequest, layout: Layout, score: Array) -> tuple[int, float] | None:
    """The place of the layout with the highest score that leaves as much free as is asked for, else of one that fits,
    else of the one that holds least; and its bytes. Their memory is asked from the fastest down."""
    flat = score.ravel()
    some = np.flatnonzero(flat)
    if not len(some):
        return None
    fitting: tuple[int, float] | None = None
    least = (0, math.inf)
    for places in _descending(flat, some):
        memory = np.asarray(request.bytes_of(layouts_at(request, layout, score.shape, places)), dtype=float)
        for enough, most in ((True, request.budget), (False, request.usable)):
            # Not above, rather than below: of an accelerator whose memory is unknown everything is taken to fit.
            inside = np.flatnonzero(~(memory > most)) if not request.constraints.one_layout else np.arange(1)
            if len(inside) and (enough or fitting is None):
                fitting = int(places[inside[0]]), float(memory[inside[0]])
                if enough:
                    return fitting
        at = int(memory.argmin())
        least = min(least, (int(places[at]), float(memory[at])), key=lambda one: one[1])
    return fitting or least


def _descending(score: Array, places: Ints) -> Iterator[Ints]:
    """Blocks of ``places`` from the highest score down; of equal ones the first comes first."""
    size = _FIRST_ASKED
    while len(places):
        if len(places) <= size:
            block, places = places, places[:0]
        else:
            values = score[places]
            least = np.partition(values, len(values) - size)[len(values) - size]
            block, places = places[values >= least], places[values < least]
        yield block[np.lexsort((block, -np.float32(score[block])))]
        size *= 8
