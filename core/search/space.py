"""The search space of layouts, the same for every number of accelerators.

Any number of data-parallel ranks is allowed, and the global batch is a target that a step meets within `WINDOW`. So
more accelerators can do whatever fewer can: some are idle, or each takes fewer sequences.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from core.limits import cached, limit
from core.search.request import Range, SearchRequest, SpaceError
from core.training.layout import Layout, allowed

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

WINDOW = 0.06
"""Share by which the sequences of a step may differ from the requested batch."""

_MICRO_BATCHES = (1, 2, 3, 4, 5, 7)
_LARGE_MICRO_BATCHES = (8, 16, 32, 64)
_LARGE_TOKENS = 32_768
"""Tokens of a micro-batch up to which large micro-batches are tried."""

_FEWEST_TOKENS = 512
"""Minimum tokens of a sequence per context-parallel rank."""

_NODE = -1
"""Placeholder for the data-parallel ranks of one node."""

_MORE_ROUNDS = 64
"""Further rounds of micro-batches that are tried until one meets the batch."""

_ROUNDING = 1e-12


def divisors(number: int, most: int | None = None) -> Ints:
    """Return the divisors of a number up to ``most``, in rising order."""
    small = np.arange(1, int(number**0.5) + 1)
    small = small[number % small == 0]
    every = np.unique(np.concatenate([small, number // small]))
    return every if most is None else every[every <= most]


def splits(request: SearchRequest) -> Ints:
    """Return the expert-tensor degrees, 0 for the default."""
    experts, pins = request.spec.experts, request.constraints
    if not experts or not isinstance(pins.expert_tensor, Range):
        return np.array(pins.listed("expert_tensor") or (0,))
    return pins.choices("expert_tensor", divisors(experts.width, request.cluster.per_node))


def chunked(layers: int, p: Any, v: Any) -> Any:
    """Return whether stages divide into ``v`` equal chunks, where the two ends may count as layers."""
    chunks = p * v
    return (v == 1) | ((p > 1) & (chunks <= layers + 2) & ((layers % chunks == 0) | ((layers + 2) % chunks == 0)))


def choices(request: SearchRequest, field: str, values: Any) -> Ints:
    """Return the values of a field to try: the pinned ones, else those of ``values`` allowed, else the least one."""
    pins = request.constraints
    listed = pins.listed(field)
    if listed is not None:
        return np.array(listed)
    some = pins.choices(field, values)
    return some if len(some) else np.array([getattr(pins, field).low])


def _pipelines(request: SearchRequest) -> tuple[Ints, Ints]:
    """Return pipeline stages and chunks per stage: for each number of layers per stage the two smallest numbers of
    stages, each with one chunk, the most, and half of them."""
    layers, pins = request.spec.layers, request.constraints
    stages = choices(request, "pipeline", np.arange(1, layers + 1))
    each = -(-layers // np.maximum(stages, 1))
    if pins.listed("pipeline") is None:
        stages = np.concatenate([stages[each == size][:2] for size in np.unique(each)])
    pairs: set[tuple[int, int]] = set()
    for stage in np.sort(stages).tolist():
        tried = np.arange(1, max(1, (layers + 2) // stage) + 1)
        alike = tried[chunked(layers, stage, tried)]
        some = choices(request, "interleave", alike) if pins.one_layout else pins.choices("interleave", alike)
        some = some if len(some) else np.array([1])
        pairs |= {(stage, int(chunks)) for chunks in (some[0], some[len(some) // 2], some[-1])}
    columns = np.array(sorted(pairs)).T
    return columns[0], columns[1]


def _micro_batches(request: SearchRequest) -> Ints:
    large = [size for size in _LARGE_MICRO_BATCHES if size * request.timed_length <= _LARGE_TOKENS]
    return choices(request, "micro_batch", [*_MICRO_BATCHES, *large])


def _axes(request: SearchRequest) -> dict[str, Ints]:
    """Return the values of each field, the simpler ones first."""
    spec, pins, per_node = request.spec, request.constraints, request.cluster.per_node
    tensor = choices(request, "tensor", divisors(per_node) if pins.keeps_tensor_in_node else 2 ** np.arange(7))
    if not pins.one_layout:
        tensor = tensor[allowed(spec, Layout(tensor=tensor), request.seq_len)]
    return {
        "offload": np.array([pins.offload]) if isinstance(pins.offload, int) else pins.choices("offload", (0, 1)),
        "zero": choices(request, "zero", (1, 2, 3)),
        "shard_group": np.array(pins.listed("shard_group") or (0, _NODE)),
        "recompute": choices(request, "recompute", (0, 1, 2)),
        "expert": choices(request, "expert", divisors(spec.experts.count if spec.experts else 1)),
        "expert_tensor": choices(request, "expert_tensor", splits(request)),
        "micro_batch": _micro_batches(request),
        "context": choices(request, "context", divisors(request.seq_len, max(1, request.seq_len // _FEWEST_TOKENS))),
        "tensor": tensor if len(tensor) else np.array([1]),
    }


def shapes(request: SearchRequest) -> tuple[Layout, Bools, Ints]:
    """Return the layouts of the space without data-parallel ranks and micro-batches, one field along each axis after
    one for `laid`; which are valid; and of what their data-parallel ranks are a multiple."""
    return _shapes(_normalised(request))


def _normalised(request: SearchRequest) -> SearchRequest:
    """Return the request without what the space does not depend on."""
    return replace(request.on(1), batch=1.0)


@cached("searches_kept")
def _shapes(request: SearchRequest) -> tuple[Layout, Bools, Ints]:
    values, (stages, cuts) = _axes(request), _pipelines(request)
    shape = np.eye(len(values) + 2, dtype=int)[1:] * -2 + 1  # -1 along the axis of its own, else 1
    axes: dict[str, Any] = {name: v.reshape(at) for (name, v), at in zip(values.items(), shape, strict=False)}
    axes |= {"pipeline": stages.reshape(shape[-1]), "interleave": cuts.reshape(shape[-1])}
    pins, tensor, per_node = request.constraints, axes["tensor"], request.cluster.per_node
    narrow = pins.listed("sequence_parallel")
    axes["sequence_parallel"] = (tensor > 1).astype(int) if narrow is None else np.full_like(tensor, narrow[0])
    node = np.where(per_node % tensor == 0, per_node // tensor, 1)
    grouped = axes["shard_group"] == _NODE
    axes["shard_group"] = np.where(grouped, node, axes["shard_group"])
    layout = Layout(**axes)
    context = axes["context"]
    sets = layout.expert_ranks // np.gcd(layout.expert_ranks, tensor * context)
    groups = np.maximum(axes["shard_group"], 1)
    unit = np.lcm(sets, groups // np.gcd(groups, context))
    sound = allowed(request.spec, replace(layout, data=unit), request.seq_len)
    sound = sound & (~grouped | ((node > 1) & (axes["zero"] > 0)))
    for name in ("tensor", "pipeline", "interleave", "context", "expert", "micro_batch", "zero", "recompute"):
        sound = sound & pins.allowed(name, axes[name])
    if not pins.one_layout:
        sound = sound & chunked(request.spec.layers, axes["pipeline"], axes["interleave"])
    return layout, sound, unit


def count_layouts(request: SearchRequest) -> int:
    """Return how many layouts are timed for one number of accelerators."""
    return 2 * math.prod(_sizes(_normalised(request)).values())


@cached("small_results_kept")
def _sizes(request: SearchRequest) -> dict[str, int]:
    """Return the number of values of each field."""
    axes = {name: len(values) for name, values in _axes(request).items()}
    return axes | {"pipeline": len(_pipelines(request)[0])}


def too_many_layouts(request: SearchRequest) -> SpaceError | None:
    """Return why the space is too large for a search; None if it is not."""
    count, most = count_layouts(request), limit("layouts_tried")
    if count <= most:
        return None
    sizes = _sizes(_normalised(request))
    field = max(sizes, key=sizes.__getitem__)
    return SpaceError(count, most, field, count // sizes[field])


def laid(request: SearchRequest, count: int) -> tuple[Layout, Bools]:
    """Return the search space on up to ``count`` accelerators, and which layouts are valid.

    The first axis has two choices: all data-parallel ranks, with the micro-batches that the batch leaves; and the
    fewest more micro-batches that meet the batch, with as few ranks as that takes.
    """
    layout, sound, unit = shapes(request)
    pins, batch = request.constraints, request.batch
    window = 0.0 if request.exact else WINDOW
    most = math.floor(batch * (1 + window) * (1 + _ROUNDING))
    least = batch * (1 - (WINDOW if pins.one_layout else window)) * (1 - _ROUNDING)
    ranks = count // (layout.tensor * layout.pipeline * layout.context) // unit * unit
    stages = np.where(np.greater(layout.interleave, 1), layout.pipeline, 1)
    if pins.micro_batches:
        rounds: Any = np.full((1,) * sound.ndim, pins.micro_batches)
    else:
        turns = most // (np.maximum(ranks, 1) * layout.micro_batch * stages)
        sound = np.concatenate([sound & (turns > 0), sound & np.ones_like(turns, bool)])
        more = _rounds_that_meet(turns + 1, layout.micro_batch * stages, unit, least, most)
        rounds = np.maximum(np.concatenate([turns, more]), 1) * stages
    filled = most // (rounds * layout.micro_batch) // unit * unit
    data = ranks if pins.micro_batches and pins.one_layout else np.minimum(ranks, filled)
    whole = replace(layout, data=np.maximum(data, unit), micro_batches=rounds)
    groups, replicas = np.asarray(layout.shard_group), whole.data * layout.context
    possible = sound & (data >= 1) & pins.allowed("data", whole.data)
    if not pins.micro_batches:
        enough = possible & (data * rounds * layout.micro_batch >= least)
        if enough.any() or not pins.one_layout:
            possible = enough
        elif possible[0].any():  # a layout of one's own, whose steps are smaller then, on all its ranks
            possible = possible & (np.arange(len(possible)) == 0).reshape(-1, *[1] * (possible.ndim - 1))
    if pins.zero is None:  # where it shards nothing, one stage stands for all
        possible = possible & (zero_matters(whole) | np.equal(layout.zero, 1))
    if pins.listed("shard_group") is None:
        possible = possible & ((groups <= 1) | (groups < replicas))
    return whole, possible


def _rounds_that_meet(rounds: Ints, each: Ints, unit: Ints, least: float, most: int) -> Ints:
    """Return the fewest rounds from ``rounds`` on, of ``each`` sequences per rank, in which a multiple of ``unit``
    ranks takes from ``least`` to ``most`` sequences; the last ones tried if none does."""
    result, *columns = (np.array(values).ravel() for values in np.broadcast_arrays(rounds, each, unit))
    short = np.arange(len(result))
    for _ in range(_MORE_ROUNDS):
        taken, of = (values[short] for values in columns)
        held = result[short] * taken
        fewer = most // held // of * of
        short = short[(fewer > 0) & (fewer * held < least)]
        result[short] += 1
    return result.reshape(np.shape(rounds))


def columns_of(layout: Layout) -> dict[str, Any]:
    """Return the fields of a layout by name."""
    return {field.name: getattr(layout, field.name) for field in fields(Layout)}


def layouts_at(request: SearchRequest, space: Layout, shape: tuple[int, ...], places: Ints) -> Layout:
    """Return the layouts at some places of the whole space as columns, without ZeRO where it shards nothing."""
    along = np.unravel_index(places, shape)

    def row(values: Any) -> Any:
        index = tuple(at if size > 1 else 0 for at, size in zip(along, np.shape(values), strict=False))
        return np.broadcast_to(np.asarray(values)[index], places.shape)

    rows = Layout(**{name: row(values) for name, values in columns_of(space).items()})
    return replace(rows, zero=rows.zero * zero_matters(rows)) if request.constraints.zero is None else rows


def zero_matters(layout: Layout) -> Any:
    """Return whether ZeRO makes a difference: ranks share weights, or gradients may go to the host."""
    return (layout.data * layout.context > 1) | (layout.tensor > layout.expert_ranks) | np.greater(layout.offload, 0)
