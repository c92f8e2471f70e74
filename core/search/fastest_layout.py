"""The fastest layout of so many accelerators, some of which may stay idle, found without a walk through all there are.

Several numbers of accelerators are searched at once, each as it would be alone.

A coarse grid comes first: degrees that are powers of two, every one with every other. The best of it in each of some
splits then move, a few fields at a time, to the best of all values that these can have together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.search.constraints import SpaceError
from core.search.fastest import BLOCK, COUNTS, choices, grid
from core.search.gate import turn
from core.search.request import SearchRequest
from core.search.space import chunk_counts, chunked, divisors, splits
from core.training.layout import Layout, allowed, filled

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Columns = Mapping[str, Ints]
"""Fields of `Layout` by name, without those that accelerators and batch leave; and ``accelerators``."""

_STARTS = 6
"""Layouts of the coarse grid that move, each of another split over tensor- and pipeline-parallel ranks."""

_WORTH = 1e-3
"""Share by which a move has to be faster: of two as fast the plainer one stays."""

_MICRO_BATCHES = (*range(1, 17), 20, 24, 32, 48, 64)
_FEWEST_TOKENS = 512
"""Tokens of a sequence that one context-parallel rank takes at least."""

_NODE = -1
"""Stands for the data-parallel ranks of one node."""

_PINNED = ("tensor", "pipeline", "interleave", "context", "expert", "data", "micro_batch", "zero", "recompute")

_ALONG = ("interleave", "sequence_parallel")
"""Fields that lie along the axis of another: of the stages, and of the tensor-parallel ranks."""

_SPARE = 1e-12
"""What leaves too little free counts this much of its pace, so that it comes after all that leaves enough."""


@lru_cache(maxsize=1024)
def fastest_layouts(request: SearchRequest, accelerators: tuple[int, ...]) -> tuple[Layout | None, ...]:
    """The fastest layout on each of these numbers of accelerators, some of which may stay idle, whatever the request's
    own; where none fits, the one that holds least; None where none can be."""
    with turn(count_layouts(request, len(accelerators))):
        columns, score = _started(request, accelerators)
        if len(score):
            for move in _moves(request, max(accelerators)):
                columns, score = _moved(request, *_distinct(columns, score), move)
    layouts, _ = _laid(request, columns)
    rows = np.stack([np.broadcast_to(getattr(layouts, f.name), score.shape) for f in fields(Layout)], axis=-1)
    best = {count: np.flatnonzero(columns["accelerators"] == count) for count in accelerators}
    best = {count: rows[at[score[at].argmax()]].tolist() for count, at in best.items() if len(at)}
    return tuple(Layout(*best[count]) if count in best else None for count in accelerators)


@lru_cache(maxsize=1024)
def surely_fitting(request: SearchRequest, accelerators: tuple[int, ...]) -> tuple[bool, ...]:
    """Whether the fastest layout on each of these numbers of accelerators fits and leaves enough free, as far as the
    coarse grid says: a layout that does only moves to others that do."""
    columns, score = _started(request, accelerators)
    # What leaves too little free scores less than a token per second.
    return tuple(bool((score[columns["accelerators"] == count] >= 1).any()) for count in accelerators)


@lru_cache(maxsize=256)
def too_many_layouts(request: SearchRequest) -> SpaceError | None:
    """Why the fastest layout is not searched for, on however many accelerators; None where it is."""
    most, sizes = limit("layouts_tried"), _sizes(request)
    count = _count(sizes)
    if count <= most:
        return None
    left = {name: _count(sizes, name) for size in sizes for name in size}
    field = min(left, key=left.__getitem__)
    return SpaceError(count, most, field, left[field])


def count_layouts(request: SearchRequest, accelerators: int) -> int:
    """Layouts among which the fastest is searched for on so many numbers of accelerators, at most, and those by which
    its steps are timed."""
    grid, *moves = _sizes(request)
    return _count([grid]) + accelerators * _count(moves)


def _sizes(request: SearchRequest) -> list[dict[str, int]]:
    """How many values each field has in the grid, on all of `COUNTS`, and in every move, of all layouts that move."""
    moves = [{"starts": _STARTS} | _lengths(move) for move in _moves(request, limit("accelerators"))]
    return [{"counts": len(COUNTS)} | _lengths(grid(request)), *moves]


def _lengths(columns: Columns) -> dict[str, int]:
    """How many values each field has that has an axis of its own."""
    return {name: values.size for name, values in columns.items() if name not in _ALONG}


def _count(sizes: list[dict[str, int]], pinned: str = "") -> int:
    return sum(math.prod(size for name, size in axes.items() if name != pinned) for axes in sizes)


def _laid(request: SearchRequest, columns: Columns) -> tuple[Layout, Any]:
    """Layouts with their data-parallel ranks and micro-batches, and which of them can be."""
    pins, count = request.constraints, columns["accelerators"]
    degrees = {name: values for name, values in columns.items() if name != "accelerators"}
    typed = Layout(**degrees, micro_batches=pins.micro_batches or 0)
    layout, possible = filled(typed, count, request.batch)
    possible = possible & allowed(request.spec, layout, request.seq_len, count)
    possible = possible & chunked(request.spec.layers, layout.pipeline, layout.interleave)
    for name in _PINNED:
        if getattr(pins, name) is not None:
            possible = possible & pins.allowed(name, getattr(layout, name))
    return layout, possible


def _score(request: SearchRequest, columns: Columns, least: Any = -np.inf) -> Floats:
    """Tokens per second of layouts; far less of those that leave too little free, the bytes above nothing of those that
    do not fit, with a minus; minus infinity of those that cannot be, or are no faster than ``least``."""
    shape = np.broadcast_shapes(np.shape(least), *(values.shape for values in columns.values()))
    if math.prod(shape) > BLOCK:  # half of them after the other half, along the longest axis
        axis = int(np.argmax(shape))
        halves = (slice(0, shape[axis] // 2), slice(shape[axis] // 2, None))

        def part(values: Any, half: slice) -> Any:
            whole = np.ndim(values) <= axis or values.shape[axis] == 1
            return values if whole else values[(slice(None),) * axis + (half,)]

        return np.concatenate(
            [_score(request, {n: part(v, half) for n, v in columns.items()}, part(least, half)) for half in halves],
            axis,
        )
    layout, possible = _laid(request, columns)
    seconds, pinned = request.step(layout, 1).total, request.constraints.micro_batches
    batch = layout.data * layout.micro_batch * pinned if pinned else request.batch
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(seconds > 0, batch * request.timed_length / seconds, 0.0)
    asked = possible & (rate > least)
    # Rounded, so that of layouts as fast the first stays first whatever else is asked beside them.
    score = np.full(asked.shape, -np.inf, np.float32)
    places = np.nonzero(asked)
    if not len(places[0]):
        return score
    some = len(places[0]) < asked.size // 2
    memory = request.bytes_of(_at(layout, asked.shape, places) if some else layout)
    if not some:
        memory = np.broadcast_to(memory, asked.shape)[places]
    rate = np.broadcast_to(rate, asked.shape)[places]
    rate = np.where(memory > request.budget, _SPARE * rate, rate)
    score[places] = np.where((rate > 0) & ~(memory > request.usable), rate, -memory)
    return score


def _at(layout: Layout, shape: tuple[int, ...], places: Any) -> Layout:
    """Some of the layouts, as columns."""
    return Layout(*(np.broadcast_to(getattr(layout, f.name), shape)[places] for f in fields(Layout)))


def _started(request: SearchRequest, accelerators: tuple[int, ...]) -> tuple[Columns, Floats]:
    """The best of the grid on each of ``accelerators`` for each of the best splits over tensor and pipeline, a row
    each; none of those where none can be."""
    tried = {name: values for name, values in grid(request).items() if name != "shard_group"}
    tried["accelerators"] = np.array(accelerators).reshape(-1, *[1] * (tried["tensor"].ndim - 1))
    score = _score(request, tried)
    shape = score.shape
    by_split = np.moveaxis(np.arange(score.size).reshape(shape), -1, 2).reshape(shape[0], shape[1] * shape[-1], -1)
    inside = score.ravel()[by_split]
    at = np.take_along_axis(by_split, inside.argmax(axis=2)[..., None], axis=2)[..., 0]
    each = inside.max(axis=2)
    # Of each number of tensor-parallel ranks the best first, then the best of all others.
    of_tensor = each.reshape(shape[0], shape[1], shape[-1])
    first = (of_tensor == of_tensor.max(axis=2, keepdims=True)).reshape(each.shape)
    order = np.lexsort((-each, ~first), axis=1)[:, :_STARTS]
    places = np.take_along_axis(at, order, axis=1).ravel()
    places = places[score.ravel()[places] > -np.inf]
    along = np.unravel_index(places, shape)
    columns = {name: np.broadcast_to(values, shape)[along] for name, values in tried.items()}
    return {"shard_group": np.zeros_like(places), "offload": np.zeros_like(places)} | columns, score.ravel()[places]


def _moves(request: SearchRequest, count: int) -> tuple[Columns, ...]:
    """What is moved at once on up to ``count`` accelerators: fields with all values that are tried of them, each along
    an axis of its own."""
    spec, pins = request.spec, request.constraints
    per_node, most = request.cluster.per_node, min(spec.layers, count)
    every, ends = _cuts(request, choices(request, "pipeline", np.arange(1, most + 1)))
    tensor = choices(request, "tensor", divisors(per_node) if pins.keeps_tensor_in_node else 2 ** np.arange(7))
    context = choices(request, "context", divisors(request.seq_len, min(count, request.seq_len // _FEWEST_TOKENS or 1)))
    experts = choices(request, "expert", divisors(spec.experts.count if spec.experts else 1))
    again, zero = (choices(request, name, values) for name, values in (("recompute", range(3)), ("zero", range(4))))
    batch, offload = choices(request, "micro_batch", _MICRO_BATCHES), pins.choices("offload", (0, 1))
    groups = np.array([0, _NODE])
    split = {"tensor": tensor, "context": context}
    held = choices(request, "expert_tensor", splits(request))
    routed: dict[str | tuple[str, ...], Ints] = {**split, "expert": experts, "expert_tensor": held, "recompute": again}
    experts_moved = (_axes(routed),) if len(experts) * len(held) > 1 else ()
    return (
        _axes({("pipeline", "interleave"): every, "micro_batch": batch[:4], "recompute": again, "zero": zero}),
        _axes({**split, "micro_batch": batch, "recompute": again}),
        _axes({**split, ("pipeline", "interleave"): ends, "recompute": again}),
        *experts_moved,
        _axes({"micro_batch": batch, "recompute": again, "zero": zero, "shard_group": groups, "offload": offload}),
    )


def _cuts(request: SearchRequest, stages: Ints) -> tuple[Ints, Ints]:
    """Numbers of stages with all the chunks that each can be cut into, and with the fewest and the most of them."""
    layers, pins = request.spec.layers, request.constraints
    cuts = chunk_counts(layers)
    if pins.one_layout:
        cuts = np.array(pins.listed("interleave") or cuts)
        on = np.full((len(stages), len(cuts)), True)
    else:
        on = chunked(layers, stages[:, None], cuts) & pins.allowed("interleave", cuts)
        on[~on.any(axis=1), 0] = True  # in one piece
    last = len(cuts) - 1 - on[:, ::-1].argmax(axis=1)
    at_end = np.zeros_like(on)
    at_end[np.arange(len(stages)), on.argmax(axis=1)] = at_end[np.arange(len(stages)), last] = True
    every, ends = (np.nonzero(which) for which in (on, at_end))
    return np.stack([stages[every[0]], cuts[every[1]]]), np.stack([stages[ends[0]], cuts[ends[1]]])


def _axes(values: Mapping[str | tuple[str, ...], Ints]) -> Columns:
    """Each column along an axis of its own, after one for the rows; fields that go together are named together."""
    columns: dict[str, Ints] = {}
    for axis, (names, column) in enumerate(values.items()):
        shape = (1, *(-1 if i == axis else 1 for i in range(len(values))))
        rows = [row.reshape(shape) for row in np.atleast_2d(column)]
        columns |= dict(zip((names,) if isinstance(names, str) else names, rows, strict=True))
    return columns


def _distinct(columns: Columns, score: Floats) -> tuple[Columns, Floats]:
    """The rows, those that have moved to the same layout once."""
    _, kept = np.unique(np.stack([*columns.values()]), axis=1, return_index=True)
    kept.sort()
    return {name: values[kept] for name, values in columns.items()}, score[kept]


def _moved(request: SearchRequest, columns: Columns, score: Floats, move: Columns) -> tuple[Columns, Floats]:
    """Every row moved to the best of the values, where that is better by enough."""
    ahead = (-1, *(1 for _ in range(next(iter(move.values())).ndim - 1)))
    tried = {name: values.reshape(ahead) for name, values in columns.items()} | dict(move)
    if "tensor" in move:
        tried["sequence_parallel"] = (move["tensor"] > 1).astype(int)
    if "shard_group" in move:
        node = request.cluster.per_node // tried["tensor"]
        tried["shard_group"] = np.where(move["shard_group"] == _NODE, node, 0)
    least = score + _WORTH * np.abs(score)
    found = _score(request, tried, np.maximum(least, 0).reshape(ahead))
    shape, rows = found.shape, np.arange(len(score))
    flat = found.reshape(len(rows), -1)
    at = flat.argmax(axis=1)
    best = flat[rows, at]
    better = best > least
    places: Any = (rows, *np.unravel_index(at, shape[1:]))
    kept = {
        name: np.where(better, np.broadcast_to(tried[name], shape)[places], values) for name, values in columns.items()
    }
    return kept, np.where(better, best, score)
