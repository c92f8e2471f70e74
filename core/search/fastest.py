"""How fast the best of some hundred layouts trains, on any number of accelerators and with any batch, without a jump.

The full search looks at every layout that divides; this looks at those whose degrees are powers of two, all in one
array, at accelerators and batches that are powers of two, and joins what it finds by straight lines in logarithms. So a
count or batch that divides badly is taken to be planned as its neighbours that divide well, and one accelerator more
never changes much.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.search.constraints import Constraints
from core.search.gate import turn
from core.search.request import SearchRequest
from core.search.space import chunked, splits
from core.training.layout import Layout, allowed

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

COUNTS: Array = 2.0 ** np.array([*range(18), 19, 21, 23, 24])
"""Accelerators at which layouts are timed; on more, the rest stays idle."""

_LONG = 4096
"""Tokens of a sequence that one context-parallel rank takes at least."""

_STEEPEST = 1.5
"""Power of the accelerators that throughput rises with at most: a model that hardly fits has few that are fast, and is
taken to train as it would by that from where it fits well."""

BLOCK = 65_536
"""Layouts timed at once: enough for numpy's own time not to count, few enough for their arrays to take 100 MB."""

_MICRO_BATCHES = (1, 2, 4)
_ZERO = (1, 3)
_RECOMPUTE = (0, 1, 2)


def _powers(most: float, count: int) -> list[int]:
    return [2**i for i in range(count) if 2**i <= most]


def choices(request: SearchRequest, field: str, values: Any) -> Ints:
    """The values of a field that are tried: those it is pinned to, else those of ``values`` that it may take; where it
    may take none of these, the least that it may."""
    pins = request.constraints
    listed = pins.listed(field)
    if listed is not None:
        return np.array(listed)
    some = pins.choices(field, values)
    return some if len(some) else np.array([getattr(pins, field).low])


def cuts_of(request: SearchRequest, stages: int) -> Ints:
    """Into how many chunks each of so many stages can be cut, of those that are tried."""
    tried = np.arange(1, max(1, (request.spec.layers + 2) // stages) + 1)
    alike = tried[chunked(request.spec.layers, stages, tried)]
    if request.constraints.one_layout:
        return choices(request, "interleave", alike)
    some = request.constraints.choices("interleave", alike)
    return some if len(some) else np.array([1])


def _stages(request: SearchRequest) -> tuple[Ints, Ints]:
    """Pipeline stages, and the chunks that each is cut into: none, and as many as there can be."""
    pairs: set[tuple[int, int]] = set()
    for stages in choices(request, "pipeline", _powers(request.spec.layers, 6)).tolist():
        cuts = cuts_of(request, stages)
        pairs |= {(stages, int(cuts.min())), (stages, int(cuts.max()))}
    columns = np.array(sorted(pairs)).T
    return columns[0], columns[1]


def grid(request: SearchRequest) -> dict[str, Ints]:
    """The layouts that are tried: fields, each along an axis of its own after one for accelerators, the stages of a
    pipeline and their chunks along the last."""
    spec, per_node, pins = request.spec, request.cluster.per_node, request.constraints
    tensor = choices(request, "tensor", _powers(min(8, per_node), 4))
    if not pins.one_layout:
        tensor = tensor[allowed(spec, Layout(tensor=tensor), request.seq_len)]
    stages, cuts = _stages(request)
    experts = [e for e in _powers(256, 9) if spec.experts.count % e == 0] if spec.experts else [1]
    values = {
        "tensor": tensor if len(tensor) else np.array([1]),
        "context": choices(request, "context", _powers(max(1, request.seq_len // _LONG), 10)),
        "expert": choices(request, "expert", experts),
        "expert_tensor": choices(request, "expert_tensor", splits(request)),
        "micro_batch": choices(request, "micro_batch", _MICRO_BATCHES),
        "zero": choices(request, "zero", _ZERO),
        "recompute": choices(request, "recompute", _RECOMPUTE),
        "shard_group": np.array([0] if pins.one_layout else [0, 1]),
        "pipeline": stages,
    }
    axes = np.eye(len(values) + 1, dtype=int)[1:] * -2 + 1  # -1 along the axis of its own, else 1
    fields = {name: v.reshape(shape) for (name, v), shape in zip(values.items(), axes, strict=True)}
    fields["interleave"] = cuts.reshape(fields["pipeline"].shape)
    return fields | _own(pins, fields["tensor"])


def grid_size(request: SearchRequest) -> int:
    """Layouts of `grid`, for each number of accelerators."""
    return math.prod(np.broadcast_shapes(*(values.shape for values in grid(request).values())))


def _layouts(request: SearchRequest, batch: float, counts: Array) -> tuple[Layout, Any]:
    """The grid at each of ``counts``, and which of it can be. Data-parallel ranks and micro-batches are what
    accelerators and batch leave, as they divide."""
    axes: dict[str, Any] = {name: values.astype(float) for name, values in grid(request).items()}
    t, p, c, b = (axes[name] for name in ("tensor", "pipeline", "context", "micro_batch"))
    pinned = request.constraints.micro_batches
    data = counts.reshape(-1, *[1] * (t.ndim - 1)) / (t * p * c)
    if not request.constraints.one_layout:  # over all ranks, or over those of a node, where there are more of them
        inside = 2.0 ** np.floor(np.log2(request.cluster.per_node)) / t
        axes["shard_group"] = np.where((inside > 1) & (data * c > inside), inside, 0.0) * axes["shard_group"]
    rounds = np.full_like(data, pinned) if pinned else batch / (data * b)
    layout = Layout(**axes, data=np.maximum(data, 1.0), micro_batches=np.maximum(rounds, 1.0))
    possible = (data >= 1) & (rounds >= np.where(axes["interleave"] > 1, p, 1.0))
    return layout, possible & (t * c * data >= layout.expert_ranks)


def _own(pins: Constraints, tensor: Any) -> dict[str, Any]:
    """Fields that only a layout of one's own chooses."""
    if not pins.one_layout:
        return {"sequence_parallel": (tensor > 1).astype(int)}
    return {name: np.array(getattr(pins, name)) for name in ("shard_group", "sequence_parallel", "offload")}


def _rates(request: SearchRequest, layout: Layout, possible: Any, batch: Any) -> tuple[Any, Any]:
    """Tokens per second of layouts that can be and fit, 0 of others; and their bytes. What leaves as much free as is
    asked for comes before what does not. A layout of one's own need not fit."""
    seconds, memory = request.step(layout, 1).total, request.bytes_of(layout)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(possible & (seconds > 0), batch * request.timed_length / seconds, 0.0)
    return rate if request.constraints.one_layout else np.where(memory > request.usable, 0.0, rate), memory


@lru_cache(maxsize=2048)
def _at(request: SearchRequest, batch: float) -> Array:
    """Tokens per second of each of `COUNTS` with ``batch`` sequences a step; 0 where no layout fits."""
    size = grid_size(request)
    each = max(1, BLOCK // size)
    with turn(size * len(COUNTS)):
        best = np.concatenate([_best_of(request, batch, COUNTS[at : at + each]) for at in range(0, len(COUNTS), each)])
    best.flags.writeable = False
    return best


def _best_of(request: SearchRequest, batch: float, counts: Array) -> Array:
    layout, possible = _layouts(request, batch, counts)
    pinned = request.constraints.micro_batches
    sequences = layout.data * layout.micro_batch * pinned if pinned else batch
    fitting, memory = _rates(request, layout, possible, sequences)
    layouts = tuple(range(1, fitting.ndim))
    best: Array = np.where(memory > request.budget, 0.0, fitting).max(axis=layouts)
    return np.where(best > 0, best, fitting.max(axis=layouts))


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


def normalised(request: SearchRequest) -> SearchRequest:
    """The request without what `fastest` does not look at, so that it is worked out once."""
    return replace(request.on(1), batch=1, objective="time", time_factor=1.0)
