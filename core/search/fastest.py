"""The fastest layout on a number of accelerators: every layout of one space, timed on that very number."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from core.limits import cached, limit
from core.search.request import Columns, LayoutResult, SearchRequest, SearchResult
from core.search.space import Bools, Ints, columns_of, count_layouts, laid, layouts_at, too_many_layouts
from core.step_time.running import COMPUTE, PARTS
from core.training.layout import Layout

WAITING: ContextVar[Callable[[], AbstractContextManager[object]]] = ContextVar("WAITING", default=nullcontext)
"""Context manager around the wait for other searches. Pages set it."""

_PLACES = BoundedSemaphore(limit("searches_at_once"))
_INSIDE: ContextVar[bool] = ContextVar("_INSIDE", default=False)
_PATIENCE_S = 0.2
"""Seconds after which a waiting search checks whether its thread should stop."""


@contextmanager
def turn(tried: int) -> Generator[None]:
    """Wait for a free place before a heavy search. A search inside another one shares its place."""
    if _INSIDE.get() or tried <= limit("light_search"):
        yield
        return
    held, inside = False, _INSIDE.set(True)
    try:
        held = _PLACES.acquire(blocking=False)
        if not held:
            with WAITING.get()():
                while not held:
                    held = _PLACES.acquire(timeout=_PATIENCE_S)
        yield
    finally:
        _INSIDE.reset(inside)
        if held:
            _PLACES.release()


Array = npt.NDArray[np.float64]

_FIRST, _MORE = 128, 16
"""Number of the fastest layouts that are weighed first, and the factor by which that number grows."""

_EQUAL = 1 - 1e-6
"""Ratio of two scores from which they count as equal."""

_LACKING, _FITTING, _ROOMY = range(3)
"""A layout does not fit, fits, or fits with the memory headroom."""

_FAILING, _BUSY = 0.95, 0.9
"""Goodput and share of busy accelerators below which half of the accelerators are tried as well."""


@dataclass(frozen=True, slots=True)
class FoundLayout:
    """A layout on a number of accelerators.

    sequences: of one step. tokens_per_second: in steady state. memory_bytes: peak per accelerator. fits: whether that
    is within capacity.
    """

    layout: Layout
    sequences: int
    tokens_per_second: float
    memory_bytes: float
    fits: bool

    @property
    def busy(self) -> int:
        """Accelerators that are not idle."""
        return int(self.layout.accelerators)


_Ranked: TypeAlias = "tuple[tuple[int, float, int], FoundLayout]"
"""A layout after its sort key: how it fits, its score or memory, and its place."""

Goodput: TypeAlias = Callable[[Array], Array]
"""Goodput of a run by its number of accelerators. Two that return the same values are equal and hash alike."""


def fastest(request: SearchRequest, count: int, goodput: Goodput) -> FoundLayout | None:
    """Return the layout on up to ``count`` accelerators that trains most tokens end to end, failures included.

    If none fits, return the one with the least peak memory; None if no layout meets the constraints.
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
    """Return tokens per second at these step times in seconds; 0 for unknown times."""
    tokens = layout.data * layout.micro_batches * layout.micro_batch * float(request.timed_length)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(seconds > 0, tokens / seconds, 0.0)


def _bounds(request: SearchRequest, space: Layout, possible: Bools, goodput: Goodput) -> Array:
    """Return the upper bounds of end-to-end tokens per second, whatever is sharded and recomputed (axes of length
    1)."""
    one = np.zeros((1,) * possible.ndim, dtype=np.int64)
    step = request.step(replace(space, zero=one, recompute=one))
    steady = step.total - step.jitter
    bounds = _rates(request, space, (steady - step.data - step.optimizer) * (step.total / steady))
    bounds = bounds * goodput(np.asarray(space.accelerators, dtype=np.float64))
    shorter = tuple(np.flatnonzero(np.less(bounds.shape, possible.shape)).tolist())
    return bounds * possible.any(axis=shorter, keepdims=True)


def _places_of(cells: Ints, shape: tuple[int, ...], whole: tuple[int, ...]) -> Ints:
    """Return the places in the whole space of cells some of whose axes have length 1."""
    lengths = [1 if few == many else many for few, many in zip(shape, whole, strict=True)]
    along = np.indices(lengths).reshape(len(whole), -1)
    starts = zip(np.unravel_index(cells, shape), along, strict=True)
    return np.ravel_multi_index(tuple(at[:, None] + further for at, further in starts), whole).ravel()


def _best(
    request: SearchRequest, space: Layout, shape: tuple[int, ...], places: Ints, goodput: Goodput, enough: float
) -> _Ranked | None:
    """Return the fastest of the layouts at ``places`` with the memory headroom, else the fastest that fits, else the
    one with the least peak memory; of those with a score above ``enough``. Memory is computed from the fastest down."""
    rows = layouts_at(request, space, shape, places)
    rates = _rates(request, rows, request.step(rows).total)
    scores = rates * goodput(np.asarray(rows.accelerators, dtype=np.float64))
    best: _Ranked | None = None
    left, number = np.flatnonzero(scores > enough), _FIRST
    while len(left) and not (best and best[0][0] == _ROOMY):
        (some, left), number = _highest(scores, left, number), number * _MORE
        block = layouts_at(request, space, shape, places[some])
        memory = np.asarray(request.bytes_of(block), dtype=np.float64)
        # “Not above” instead of “below”: if the capacity is unknown, every layout fits.
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
    """Return the ``places`` with the highest scores in falling order, and the rest. Equal ones keep their order."""
    values, rest = score[places], places[:0]
    if len(places) > number:
        least = np.partition(values, -number)[-number]
        places, rest = places[values >= least], places[values < least]
    return places[np.lexsort((places, -np.float32(score[places])))], rest


TOP = 2_000
"""Layouts that a search returns as columns."""


@cached("searches_kept")
def searched(request: SearchRequest, *, top: int = TOP) -> SearchResult:
    """Return every layout of a request that fits, and the best of them; at most ``top`` of them as columns.

    If no layout leaves enough memory free, or enough host memory, those that fit otherwise count. Raises `SpaceError`
    for a space too large, and `BudgetError` for a peak or a bandwidth that is unknown.
    """
    if problem := too_many_layouts(request):
        raise problem
    with turn(count_layouts(request)):
        space, possible = laid(request, request.cluster.count)
        places = np.flatnonzero(possible)
        plans = layouts_at(request, space, possible.shape, places)
        seconds = _over(possible, places, request.step(space).total)
        memory = _over(possible, places, request.bytes_of(space))
    kept_free, fits = request.keep_free, memory <= request.budget
    if not fits.any():
        kept_free, fits = 0.0, memory <= request.usable
    if not (fits.any() or math.isnan(request.host_bytes)):
        return searched(replace(request, host_bytes=math.nan), top=top)
    _check_known(request, plans, seconds, fits)
    order = _fastest_first(plans, seconds, memory, fits)
    front = order[_beats_all_before(memory[order])]

    def results(some: Ints) -> tuple[LayoutResult, ...]:
        return request.found(_rows(plans, some)) if len(some) else ()

    pareto = results(front)
    return SearchResult(
        best=pareto[0] if pareto else None,
        pareto=pareto,
        plans=_columns(request, _rows(plans, order[:top]), memory[order[:top]]),
        count=len(places),
        fitting=int(fits.sum()),
        nearest=next(iter(results(np.array([memory.argmin()]))), None) if len(places) and not fits.any() else None,
        kept_free=kept_free,
    )


def _over(possible: npt.NDArray[np.bool_], places: Ints, values: Any) -> npt.NDArray[np.float64]:
    """Return the values of the whole space at some of its places."""
    return np.asarray(np.broadcast_to(values, possible.shape).reshape(-1)[places], dtype=np.float64)


def _rows(plans: Layout, some: Ints) -> Layout:
    return Layout(**{name: values[some] for name, values in columns_of(plans).items()})


def _sequences(plans: Layout) -> Any:
    return plans.data * plans.micro_batch * plans.micro_batches


def _check_known(request: SearchRequest, plans: Layout, seconds: Any, fits: Any) -> None:
    """Raise `BudgetError` if a layout needs an unknown peak or bandwidth."""
    unknown = np.flatnonzero(fits & np.isnan(seconds))
    for place in (*unknown[:1], *np.flatnonzero(fits)[:1]):
        request.known(_rows(plans, np.array([place])))


def _fastest_first(plans: Layout, seconds: Any, memory: Any, fits: Any) -> Ints:
    """Return the layouts that fit by tokens per second, equally fast ones by memory."""
    some = np.flatnonzero(fits)
    each = np.float32(seconds[some] / _sequences(plans)[some])
    return some[np.lexsort((some, memory[some], each))]


def _beats_all_before(memory: Any) -> npt.NDArray[np.bool_]:
    """Return which layouts, the fastest first, need less memory than every faster one."""
    least = np.minimum.accumulate(memory)
    return np.concatenate([[True], memory[1:] < least[:-1]]) if len(memory) else np.zeros(0, bool)


def _columns(request: SearchRequest, plans: Layout, memory: Any) -> Columns:
    shape, step = memory.shape, request.step(plans)
    parts = np.stack([np.broadcast_to(0.0 if n in COMPUTE else getattr(step, n), shape) for n in PARTS])
    return Columns(
        layout=plans,
        tokens=np.broadcast_to(_sequences(plans) * request.timed_length, shape),
        seconds=np.broadcast_to(step.total, shape),
        memory=memory,
        bound=np.argmax(parts, axis=0) if len(memory) else np.zeros(0, int),
    )
