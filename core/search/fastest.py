"""The fastest layout on a number of accelerators: every layout of one space, timed on that very number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from core.limits import cached
from core.search.gate import turn
from core.search.request import SearchRequest
from core.search.space import Bools, Ints, columns_of, count_layouts, laid, layouts_at
from core.training.layout import Layout

Array = npt.NDArray[np.float64]

_FIRST, _MORE = 128, 16
"""Layouts that are looked at first, the fastest; and how many times as many are next."""

_EQUAL = 1 - 1e-6
"""Share of a score that counts as the same."""

_LACKING, _FITTING, _ROOMY = range(3)
"""Of a layout whether it does not fit, fits, or leaves free what is asked for as well."""

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


_Ranked: TypeAlias = "tuple[tuple[int, float, int], FoundLayout]"
"""A layout after what it is chosen by: whether it fits, what it trains or lacks, and its place."""

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
    best: _Ranked | None = None
    with turn(count_layouts(request)):
        space, possible = laid(request, count)
        bounds = _bounds(request, space, possible, goodput)
        flat, left, number, enough = bounds.ravel(), np.flatnonzero(bounds), _FIRST, 0.0
        while len(left):
            cells, left = _highest(flat, left, number)
            places = _places_of(cells, bounds.shape, possible.shape)
            places = places[possible.ravel()[places]]
            found = _best(request, space, possible.shape, places, goodput, enough)
            best = max((one for one in (best, found) if one), key=lambda one: one[0], default=None)
            if best and best[0][0] == _ROOMY:
                enough = best[0][1] * _EQUAL
            left, number = left[flat[left] >= enough], number * _MORE
    return best and best[1]


def _rates(request: SearchRequest, layout: Layout, seconds: Any) -> Any:
    """Tokens per second where a step takes so long; 0 where that is unknown."""
    tokens = layout.data * layout.micro_batches * layout.micro_batch * float(request.timed_length)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(seconds > 0, tokens / seconds, 0.0)


def _bounds(request: SearchRequest, space: Layout, possible: Bools, goodput: Goodput) -> Array:
    """What layouts train of all hours at most, whatever they shard and compute again: these two axes are one long."""
    one = np.zeros((1,) * possible.ndim, dtype=np.int64)
    step = request.step(replace(space, zero=one, recompute=one))
    steady = step.total - step.jitter
    bounds = _rates(request, space, (steady - step.data - step.optimizer) * (step.total / steady))
    bounds = bounds * goodput(np.asarray(space.accelerators, dtype=np.float64))
    shorter = tuple(np.flatnonzero(np.less(bounds.shape, possible.shape)).tolist())
    return bounds * possible.any(axis=shorter, keepdims=True)


def _places_of(cells: Ints, shape: tuple[int, ...], whole: tuple[int, ...]) -> Ints:
    """The places in a whole space of cells whose axes are partly one long."""
    lengths = [1 if few == many else many for few, many in zip(shape, whole, strict=True)]
    along = np.indices(lengths).reshape(len(whole), -1)
    starts = zip(np.unravel_index(cells, shape), along, strict=True)
    return np.ravel_multi_index(tuple(at[:, None] + further for at, further in starts), whole).ravel()


def _best(
    request: SearchRequest, space: Layout, shape: tuple[int, ...], places: Ints, goodput: Goodput, enough: float
) -> _Ranked | None:
    """The fastest of the layouts at ``places`` that leaves as much free as is asked for, else the fastest that fits,
    else the one that holds least; of those that train ``enough``. Their memory is asked from the fastest down."""
    rows = layouts_at(request, space, shape, places)
    rates = _rates(request, rows, request.step(rows).total)
    scores = rates * goodput(np.asarray(rows.accelerators, dtype=np.float64))
    best: _Ranked | None = None
    left, number = np.flatnonzero(scores > enough), _FIRST
    while len(left) and not (best and best[0][0] == _ROOMY):
        (some, left), number = _highest(scores, left, number), number * _MORE
        block = layouts_at(request, space, shape, places[some])
        memory = np.asarray(request.bytes_of(block), dtype=np.float64)
        # Not above, rather than below: of an accelerator whose memory is unknown everything is taken to fit.
        inside = [np.flatnonzero(~(memory > most)) for most in (request.budget, request.usable)]
        roomy, fitting = [np.arange(1)] * 2 if request.constraints.one_layout else inside
        rank = _ROOMY if len(roomy) else _FITTING if len(fitting) else _LACKING
        at = int((*roomy[:1], *fitting[:1], memory.argmin())[0])
        layout = Layout(**{name: int(values[at]) for name, values in columns_of(block).items()})
        sequences = int(layout.data) * int(layout.micro_batches) * int(layout.micro_batch)
        held, place = float(memory[at]), int(places[some[at]])
        found = FoundLayout(layout, sequences, float(rates[some[at]]), held, not held > request.usable)
        order = (rank, float(np.float32(scores[some[at]])) if rank else -held, -place)
        best = max(best or (order, found), (order, found), key=lambda one: one[0])
    return best


def _highest(score: Array, places: Ints, number: int) -> tuple[Ints, Ints]:
    """Those of ``places`` with the highest scores, in falling order, of equal ones the first first; and the rest."""
    values, rest = score[places], places[:0]
    if len(places) > number:
        least = np.partition(values, -number)[-number]
        places, rest = places[values >= least], places[values < least]
    return places[np.lexsort((places, -np.float32(score[places])))], rest
