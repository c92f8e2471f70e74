"""Every plan of a model on a cluster, as rows of degrees times choices that a row leaves open. None is written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.limits import limit
from core.search.constraints import Range, SpaceError
from core.search.request import SearchRequest
from core.training.layout import Layout, allowed

Ints = npt.NDArray[np.int64]

_ROW = (
    "tensor", "pipeline", "interleave", "context", "expert", "expert_tensor", "data", "micro_batch", "micro_batches",
)  # fmt: skip
"""Fields of a layout that a row holds."""

_MOST_SEQUENCES = 65_536
"""Sequences of the largest micro-batch that is tried."""

_NODE = -1
"""Stands for the data-parallel ranks of one node, a number that depends on the row."""


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Rows that leave the same choices open: every choice goes with every row.

    rows: fields of `Layout` by name.  node: data-parallel ranks of each row in one node.  zero: ZeRO stages, each with
    the ranks that it shards over: 0 for all, `_NODE` for one node, or their number.
    """

    rows: Mapping[str, Ints]
    node: Ints
    zero: tuple[tuple[int, int], ...]
    recompute: Ints
    sequence_parallel: Ints
    offload: Ints
    overlap: Ints

    @property
    def choices(self) -> tuple[int, ...]:
        """How many values each choice has, in the order of the axes of `layout`: overlap first, ZeRO last."""
        open_ = (self.overlap, self.offload, self.sequence_parallel, self.recompute)
        return (*(len(values) for values in open_), len(self.zero))

    @property
    def count(self) -> int:
        """Plans of the group."""
        return int(np.prod(self.choices)) * len(self.node)

    def of_rows(self, which: Any) -> Group:
        """The group with some of its rows."""
        rows = {name: values[which] for name, values in self.rows.items()}
        return Group(
            rows,
            self.node[which],
            self.zero,
            self.recompute,
            self.sequence_parallel,
            self.offload,
            self.overlap,
        )

    def layout(self) -> tuple[Layout, Ints]:
        """All plans of the group as one layout, and whether communication overlaps.

        Each choice lies along an axis of its own, the rows along the last one; fields that do not depend on an axis
        are of length 1 there.
        """
        code = np.array([at for _, at in self.zero])[:, None]
        result = Layout(
            **self.rows,
            zero=np.array([stage for stage, _ in self.zero])[:, None],
            shard_group=np.where(code == _NODE, self.node, code),
            recompute=self.recompute.reshape(-1, 1, 1),
            sequence_parallel=self.sequence_parallel.reshape(-1, 1, 1, 1),
            offload=self.offload.reshape(-1, 1, 1, 1, 1),
        )
        return result, self.overlap.reshape(-1, 1, 1, 1, 1, 1)

    def taken(self, which: Ints) -> tuple[Layout, Ints]:
        """Single plans of the group, by their places along all axes of `layout` at once, as arrays of one length."""
        overlap, offload, narrow, again, zero, row = np.unravel_index(which, (*self.choices, len(self.node)))
        stage, code = np.array(self.zero).T
        layout = Layout(
            **{name: values[row] for name, values in self.rows.items()},
            zero=stage[zero],
            shard_group=np.where(code[zero] == _NODE, self.node[row], code[zero]),
            recompute=self.recompute[again],
            sequence_parallel=self.sequence_parallel[narrow],
            offload=self.offload[offload],
        )
        return layout, self.overlap[overlap]


def divisors(number: int, most: int | None = None) -> Ints:
    """The divisors of a number up to ``most``, in rising order."""
    if most is not None:
        tried = np.arange(1, min(number, most) + 1)
        return tried[number % tried == 0]
    small = np.arange(1, int(number**0.5) + 1)
    small = small[number % small == 0]
    return np.unique(np.concatenate([small, number // small]))


def splits(request: SearchRequest) -> Ints:
    """Ranks over which one expert can be split, 0 for as many as is usual."""
    experts, pins = request.spec.experts, request.constraints
    if not experts or not isinstance(pins.expert_tensor, Range):
        return np.array(pins.listed("expert_tensor") or (0,))
    return pins.choices("expert_tensor", divisors(experts.width, request.cluster.per_node))


@dataclass(frozen=True, eq=False, slots=True)
class _Lists:
    """Values of each field that can be on their own, and the degrees without them: t, p, c, d of one length. Each of
    ``experts`` goes with the one of ``splits`` at its place."""

    interleave: Ints
    experts: Ints
    splits: Ints
    micro_batch: Ints
    zero: tuple[tuple[int, int], ...]
    recompute: Ints
    offload: Ints
    overlap: Ints
    t: Ints
    p: Ints
    c: Ints
    d: Ints


def degrees_tried(request: SearchRequest, ways: Ints) -> tuple[Ints, Ints, Ints]:
    """Those of ``ways`` that can be tensor-, pipeline- and context-parallel degrees."""
    free = request.constraints
    t = free.choices("tensor", ways[allowed(request.spec, Layout(tensor=ways), request.seq_len)])
    if free.keeps_tensor_in_node:
        t = t[request.cluster.per_node % t == 0]
    p = free.choices("pipeline", ways[ways <= request.spec.layers])
    return t, p, free.choices("context", ways[request.seq_len % ways == 0])


def _lists(request: SearchRequest) -> _Lists:
    spec, cluster, free = request.spec, request.cluster, request.constraints
    t, p, c = degrees_tried(request, divisors(cluster.count))
    t, p, c = (grid.ravel() for grid in np.meshgrid(t, p, c, indexing="ij"))
    fits = cluster.count % (t * p * c) == 0
    t, p, c = t[fits], p[fits], c[fits]
    d = cluster.count // (t * p * c)
    fits = (request.batch % d == 0) & free.allowed("data", d)
    stages = free.choices("zero", np.arange(4))
    groups = free.listed("shard_group") or (0, _NODE)
    zero = [(int(stage), int(at)) for stage in stages for at in (groups if stage else (0,))]
    experts = free.choices("expert", divisors(spec.experts.count if spec.experts else 1))
    held = splits(request)
    return _Lists(
        interleave=free.choices("interleave", np.arange(1, spec.layers + 3)),
        experts=np.repeat(experts, len(held)),
        splits=np.tile(held, len(experts)),
        micro_batch=free.choices("micro_batch", divisors(request.batch, _MOST_SEQUENCES)),
        # The first stands for rows of which ZeRO can shard nothing, where it makes no difference.
        zero=tuple([(int(stage), 0) for stage in stages[:1]] + zero),
        recompute=free.choices("recompute", np.arange(3)),
        offload=free.choices("offload", np.arange(2)),
        overlap=free.choices("overlap", np.arange(2)),
        t=t[fits],
        p=p[fits],
        c=c[fits],
        d=d[fits],
    )


def chunked(layers: int, p: Any, v: Any) -> Any:
    """Whether stages can be cut into ``v`` chunks: alike ones, where the two ends may count as layers."""
    chunks = p * v
    return (v == 1) | ((p > 1) & (chunks <= layers + 2) & ((layers % chunks == 0) | ((layers + 2) % chunks == 0)))


def _shared(request: SearchRequest, lists: _Lists, t: Any, c: Any, d: Any, e: Any) -> tuple[npt.NDArray[np.bool_], Any]:
    """Which of ``lists.zero`` each row may have, along a first axis, and its data-parallel ranks in one node.

    e: ranks that hold all experts once.
    """
    free, replicas, per_node = request.constraints, d * c, request.cluster.per_node
    node = np.where(per_node % t == 0, per_node // t, 0)
    # Offloaded, gradients go to the host from ZeRO-2 on, be they sharded or not.
    several = (replicas > 1) | (t > e) | (1 in lists.offload)
    own = 0 not in (free.listed("shard_group") or (0,))

    def may(stage: int, code: int) -> Any:
        if code == 0:
            return several & (stage == 0 or bool(free.allowed("shard_group", 0)))
        size = np.maximum(1, node if code == _NODE else code)
        inside = (size > 1) & (replicas % size == 0) & ((size < replicas) | (own & (size == replicas)))
        return inside & free.allowed("shard_group", size)

    return np.stack([~several & bool(lists.zero), *(may(*stage_and_code) for stage_and_code in lists.zero[1:])]), node


def _narrow(request: SearchRequest, t: int) -> Ints:
    """Values of sequence parallelism: without tensor-parallel ranks it makes no difference."""
    allowed = request.constraints.choices("sequence_parallel", np.arange(2))
    return allowed if t > 1 else allowed[:1]


def count_plans(request: SearchRequest) -> tuple[int, Mapping[str, int]]:
    """How many plans there are, and how many are left at most when a field is pinned to one value."""
    lists = _lists(request)
    t, p, c, d = lists.t, lists.p, lists.c, lists.d
    per = request.batch // d
    stages, at = np.unique(p, return_inverse=True)
    cut = chunked(request.spec.layers, stages[:, None], lists.interleave)
    whole, apart = ((cut & on).sum(axis=1)[at] for on in (lists.interleave == 1, lists.interleave > 1))
    sizes = lists.micro_batch.tolist()
    by_size = [whole * (per % size == 0) + apart * (per % (size * p) == 0) for size in sizes]
    batches = sum(by_size, start=np.zeros(len(t), dtype=np.int64))
    narrow = np.where(t > 1, len(_narrow(request, 2)), len(_narrow(request, 1)))
    variants = narrow * len(lists.recompute) * len(lists.offload) * len(lists.overlap)
    pairs = zip(lists.experts.tolist(), lists.splits.tolist(), strict=True)
    holding = [Layout(tensor=t, expert=e, expert_tensor=split).expert_ranks for e, split in pairs]
    shared = [(t * c * d % e == 0) * _shared(request, lists, t, c, d, e)[0].sum(axis=0) * variants for e in holding]
    each = sum(shared, start=np.zeros(len(t), dtype=np.int64))
    total = each * batches
    count = int(total.sum())
    left = {
        "expert": int(np.bincount(lists.experts, [(item * batches).sum() for item in shared]).max(initial=0)),
        "micro_batch": max((int((item * each).sum()) for item in by_size), default=0),
        "recompute": count // max(1, len(lists.recompute)),
    }
    for name, values in (("tensor", t), ("pipeline", p), ("context", c), ("data", d)):
        left[name] = int(np.bincount(np.unique(values, return_inverse=True)[1], total).max(initial=0))
    return count, {name: size for name, size in left.items() if size < count}


def groups_of(request: SearchRequest) -> tuple[int, tuple[Group, ...]]:
    """All plans, counted and in groups. Raises `SpaceError` for more than are searched at once."""
    count, left = count_plans(request)
    most = limit("search_plans")
    if count > most:
        field = min(left, key=left.__getitem__) if left else "tensor"
        raise SpaceError(count, most, field, left.get(field, count))
    return count, tuple(_grouped(request))


def _grouped(request: SearchRequest) -> Iterator[Group]:
    lists = _lists(request)
    t, p, c, d = lists.t, lists.p, lists.c, lists.d

    def along(on: Any, *values: Any) -> tuple[Ints, ...]:
        """The rows, each as often as one of the columns holds for it, and where."""
        row, column = np.nonzero(on)
        return (*(value[row] for value in values), column)

    on = chunked(request.spec.layers, p[:, None], lists.interleave)
    t, p, c, d, at = along(on, t, p, c, d)
    v = lists.interleave[at]
    holding = Layout(tensor=t[:, None], expert=lists.experts, expert_tensor=lists.splits).expert_ranks
    t, p, c, d, v, at = along((t * c * d)[:, None] % holding == 0, t, p, c, d, v)
    e, split = lists.experts[at], lists.splits[at]
    per = (request.batch // d)[:, None]
    rounds = np.where(v > 1, p, 1)[:, None]
    t, p, c, d, v, e, split, at = along(per % (lists.micro_batch * rounds) == 0, t, p, c, d, v, e, split)
    b = lists.micro_batch[at]
    rows = dict(zip(_ROW, (t, p, v, c, e, split, d, b, request.batch // (d * b)), strict=True))
    may, node = _shared(request, lists, t, c, d, Layout(tensor=t, expert=e, expert_tensor=split).expert_ranks)
    alike = (1 << np.arange(len(may))) @ may * 2 + (t > 1)
    for kind in np.unique(alike):
        which = np.flatnonzero(alike == kind)
        zero = tuple(lists.zero[i] for i in np.flatnonzero(may[:, which[0]]))
        group = Group(
            {name: values[which] for name, values in rows.items()},
            node[which],
            zero,
            lists.recompute,
            _narrow(request, int(kind) % 2 + 1),
            lists.offload,
            lists.overlap,
        )
        if group.count:
            yield group
