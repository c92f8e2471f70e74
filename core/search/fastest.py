"""How fast the best of some hundred layouts trains, on any number of accelerators and with any batch, without a jump.

The full search looks at every layout that divides; this looks at those whose degrees are powers of two, all in one
array, at accelerators and batches that are powers of two, and joins what it finds by straight lines in logarithms. So a
count or batch that divides badly is taken to be planned as its neighbours that divide well, and one accelerator more
never changes much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.search.constraints import Constraints
from core.search.request import SearchRequest
from core.search.space import chunked
from core.training.layout import Layout, allowed, filled

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
    layers, pins = request.spec.layers, request.constraints
    pairs: set[tuple[int, int]] = set()
    for stages in _choices(request, "pipeline", _powers(layers, 6)).tolist():
        tried = np.arange(1, max(1, (layers + 2) // stages) + 1)
        alike = tried[chunked(layers, stages, tried)].tolist()
        cuts = _choices(request, "interleave", alike) if pins.one_layout else pins.choices("interleave", alike)
        pairs |= {(stages, cut) for cut in {int(cuts.min()), int(cuts.max())}} if len(cuts) else {(stages, 1)}
    columns = np.array(sorted(pairs), dtype=float).T
    return columns[0], columns[1]


def _layouts(request: SearchRequest, counts: Array, batch: float, *, whole: bool = False) -> tuple[Layout, Any]:
    """The layouts that are tried along axes of their own, accelerators first, and which of them can be.

    Data-parallel ranks and micro-batches are what accelerators and batch leave, as they divide or in whole numbers.
    """
    spec, per_node, pins = request.spec, request.cluster.per_node, request.constraints
    tensor = _choices(request, "tensor", _powers(min(8, per_node), 4))
    if not pins.one_layout:
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
    layout = Layout(
        tensor=t,
        pipeline=p,
        interleave=v,
        context=c,
        expert=e,
        micro_batch=b,
        micro_batches=pins.micro_batches or 0,
        zero=z,
        recompute=r,
        **_own(request.constraints, t),
    )
    if whole:
        layout, possible = filled(layout, n, int(batch))
        divides = (t * c * layout.data % e == 0) & (request.seq_len % c == 0)
        return layout, possible & divides & pins.allowed("tensor", t)
    data = n / (t * p * c)
    rounds = np.full_like(data, pins.micro_batches) if pins.micro_batches else batch / (data * b)
    possible = (data >= 1) & (rounds >= np.where(v > 1, p, 1.0)) & (t * c * data >= e)
    return replace(layout, data=np.maximum(data, 1.0), micro_batches=np.maximum(rounds, 1.0)), possible


def _own(pins: Constraints, tensor: Any) -> dict[str, Any]:
    """Fields that only a layout of one's own chooses."""
    if not pins.one_layout:
        return {"sequence_parallel": (tensor > 1).astype(float)}
    return {name: getattr(pins, name) for name in ("shard_group", "sequence_parallel", "offload")}


def _rates(request: SearchRequest, layout: Layout, possible: Any, batch: Any) -> tuple[Any, Any]:
    """Tokens per second of layouts that can be and fit, 0 of others; and their bytes. What leaves as much free as is
    asked for comes before what does not. A layout of one's own need not fit."""
    seconds, memory = request.step(layout, 1).total, request.bytes_of(layout)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(possible & (seconds > 0), batch * request.seq_len / seconds, 0.0)
    return rate if request.constraints.one_layout else np.where(memory > request.usable, 0.0, rate), memory


@lru_cache(maxsize=2048)
def _at(request: SearchRequest, batch: float) -> Array:
    """Tokens per second of each of `COUNTS` with ``batch`` sequences a step; 0 where no layout fits."""
    layout, possible = _layouts(request, COUNTS, batch)
    pinned = request.constraints.micro_batches
    sequences = layout.data * layout.micro_batch * pinned if pinned else batch
    fitting, memory = _rates(request, layout, possible, sequences)
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


@lru_cache(maxsize=1024)
def fastest_layout(request: SearchRequest) -> Layout | None:
    """The fastest of these layouts on the request's accelerators, some of which may stay idle; where none fits, the one
    that holds least; None where none can be."""
    layout, possible = _layouts(request, np.array([float(request.cluster.count)]), request.batch, whole=True)
    rate, memory = np.broadcast_arrays(*_rates(request, layout, possible, request.batch))
    fitting = np.where(memory > request.budget, 0.0, rate)
    fitting = fitting if fitting.any() else rate
    if fitting.any():
        at = int(np.argmax(fitting))
    elif possible.any():
        at = int(np.argmin(np.where(possible, memory, np.inf)))
    else:
        return None
    columns = {f.name: np.broadcast_to(getattr(layout, f.name), rate.shape) for f in fields(Layout)}
    return Layout(**{name: int(values.flat[at]) for name, values in columns.items()})


def normalised(request: SearchRequest) -> SearchRequest:
    """The request without what `fastest` does not look at, so that it is worked out once."""
    return replace(request.on(1), batch=1, objective="time", pace=1.0)
