"""How fast the best of some hundred layouts trains, on any number of accelerators and with any batch, without a jump.

The full search looks at every layout that divides; this looks at those whose degrees are powers of two, all in one
array, at accelerators and batches that are powers of two, and joins what it finds by straight lines in logarithms. So a
count or batch that divides badly is taken to be planned as its neighbours that divide well, and one accelerator more
never changes much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.search.request import SearchRequest
from core.search.space import chunked
from core.training.layout import Layout, allowed

Array = npt.NDArray[np.float64]

COUNTS: Array = 2.0 ** np.array([*range(18), 19, 21, 23, 24])
"""Accelerators at which layouts are timed; on more, the rest stays idle."""

_LONG = 4096
"""Tokens of a sequence that one context-parallel rank takes at least."""

_STEEPEST = 1.5
"""Power of the accelerators that throughput rises with at most: a model that hardly fits has few that are fast, and is
taken to train as it would by that from where it fits well."""

_MICRO_BATCHES = (1, 2, 4)
_ZERO = (1, 3)
_RECOMPUTE = (0, 1, 2)


def _powers(most: float, count: int) -> list[int]:
    return [2**i for i in range(count) if 2**i <= most]


def _choices(request: SearchRequest, field: str, values: Sequence[int]) -> npt.NDArray[np.int64]:
    """The values of a field that are tried: those it is pinned to, else those of ``values`` that it may take; where it
    may take none of these, the least that it may."""
    pins = request.constraints
    listed = pins.listed(field)
    if listed is not None:
        return np.array(listed)
    some = pins.choices(field, values)
    return some if len(some) else np.array([getattr(pins, field).low])


def _stages(request: SearchRequest) -> tuple[Array, Array]:
    """Pipeline stages, and the chunks that each is cut into: none, and as many as there can be."""
    layers = request.spec.layers
    pairs: set[tuple[int, int]] = set()
    for stages in _choices(request, "pipeline", _powers(layers, 6)).tolist():
        tried = np.arange(1, max(1, (layers + 2) // stages) + 1)
        cuts = request.constraints.choices("interleave", tried[chunked(layers, stages, tried)]).tolist()
        pairs |= {(stages, cut) for cut in {min(cuts), max(cuts)}} if cuts else {(stages, 1)}
    columns = np.array(sorted(pairs), dtype=float).T
    return columns[0], columns[1]


def _layouts(request: SearchRequest, counts: Array, batch: float) -> tuple[Layout, Any]:
    """The layouts that are tried along axes of their own, accelerators first, and which of them can be.

    Data-parallel ranks and micro-batches are what accelerators and batch leave, whole or not.
    """
    spec, per_node = request.spec, request.cluster.per_node
    tensor = _choices(request, "tensor", _powers(min(8, per_node), 4))
    tensor = tensor[allowed(spec, Layout(tensor=tensor), request.seq_len)]
    context = _choices(request, "context", _powers(max(1, request.seq_len // _LONG), 10))
    experts = [e for e in _powers(256, 9) if spec.experts.count % e == 0] if spec.experts else [1]
    stages, cuts = _stages(request)
    values = (
        counts,
        tensor if len(tensor) else np.array([1]),
        context,
        _choices(request, "expert", experts),
        _choices(request, "micro_batch", _MICRO_BATCHES),
        _choices(request, "zero", _ZERO),
        _choices(request, "recompute", _RECOMPUTE),
        stages,
    )
    shapes = np.eye(len(values), dtype=int) * -2 + 1  # -1 along the axis of its own, else 1
    axes: list[Any] = [np.asarray(v, float).reshape(shape) for v, shape in zip(values, shapes, strict=True)]
    n, t, c, e, b, z, r, p = axes
    v: Any = cuts.reshape(p.shape)
    data = n / (t * p * c)
    rounds = batch / (data * b)
    possible = (data >= 1) & (rounds >= np.where(v > 1, p, 1.0)) & (t * c * data >= e)
    layout = Layout(
        tensor=t,
        pipeline=p,
        interleave=v,
        context=c,
        expert=e,
        data=np.maximum(data, 1.0),
        micro_batch=b,
        micro_batches=np.maximum(rounds, 1.0),
        zero=z,
        sequence_parallel=(t > 1).astype(float),
        recompute=r,
    )
    return layout, possible


@lru_cache(maxsize=2048)
def _at(request: SearchRequest, batch: float) -> Array:
    """Tokens per second of each of `COUNTS` with ``batch`` sequences a step; 0 where no layout fits."""
    layout, possible = _layouts(request, COUNTS, batch)
    seconds = request.step(layout, 1).total
    memory = request.bytes_of(layout)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(possible & (seconds > 0), batch * request.seq_len / seconds, 0.0)
    fitting: Array = np.where(memory > request.usable, 0.0, rate)
    layouts = tuple(range(1, fitting.ndim))
    best: Array = np.where(memory > request.budget, 0.0, fitting).max(axis=layouts)
    best = np.where(best > 0, best, fitting.max(axis=layouts))
    best.flags.writeable = False
    return best


def fastest(request: SearchRequest, batch: float) -> Array | None:
    """Logarithms of the tokens per second of `COUNTS`, never less on more of them; None where no layout fits anywhere.

    Fewer than the least that hold the model are taken to train at the rate of one of those each. batch: sequences.
    """
    rates = _at(request.on(1), 2.0 ** math.floor(math.log2(batch)))
    above = math.log2(batch) % 1
    if above:
        more = _at(request.on(1), 2.0 ** math.ceil(math.log2(batch)))
        both = (rates > 0) & (more > 0)
        rates = np.where(both, rates ** (1 - above) * more**above, rates + more)
    holding = np.flatnonzero(rates)
    if not len(holding):
        return None
    first = holding[0]
    each = np.where(np.arange(len(COUNTS)) < first, COUNTS * rates[first] / COUNTS[first], rates)
    some_idle = np.log(np.maximum.accumulate(each))
    steepest = _STEEPEST * np.log(COUNTS)
    return np.maximum.accumulate((some_idle - steepest)[::-1])[::-1] + steepest


def least_holding(request: SearchRequest, batch: float) -> float:
    """The fewest of `COUNTS` that hold the model under one of the layouts; infinite where none do."""
    holding = np.flatnonzero(_at(request.on(1), 2.0 ** math.floor(math.log2(batch))))
    return float(COUNTS[holding[0]]) if len(holding) else math.inf


def normalised(request: SearchRequest) -> SearchRequest:
    """The request without what `fastest` does not look at, so that it is worked out once."""
    return replace(request.on(1), batch=1, objective="time")
