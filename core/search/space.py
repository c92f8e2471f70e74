"""Every plan of a model on a cluster, as rows of degrees times choices that a row leaves open. None is written out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
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

_CHECKS = 1 << 20
"""Checks of one degree against another that are made at once, 8 MB each time."""

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
    small = np.arange(1, int(number**0.5) + 1)
    small = small[number % small == 0]
    every = np.unique(np.concatenate([small, number // small]))
    return every if most is None else every[every <= most]


def chunk_counts(layers: int) -> Ints:
    """Numbers of chunks that any stage can be cut into."""
    return np.union1d(divisors(layers), divisors(layers + 2))


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
    of_t, of_p = np.nonzero(cluster.count % (t[:, None] * p) == 0)
    t, p = t[of_t], p[of_p]
    of_both, of_c = np.nonzero(cluster.count // (t * p)[:, None] % c == 0)
    t, p, c = t[of_both], p[of_both], c[of_c]
    d = cluster.count // (t * p * c)
    fits = (request.batch % d == 0) & free.allowed("data", d)
    stages = free.choices("zero", np.arange(4))
    groups = free.listed("shard_group") or (0, _NODE)
    zero = [(int(stage), int(at)) for stage in stages for at in (groups if stage else (0,))]
    experts = free.choices("expert", divisors(spec.experts.count if spec.experts else 1))
    held = splits(request)
    return _Lists(
        interleave=free.choices("interleave", chunk_counts(spec.layers)),
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


@dataclass(frozen=True, eq=False, slots=True)
class _Counts:
    """Of each split of the accelerators: its plans, and the rows that they take while they are listed. by_expert,
    by_size: plans of each of ``experts`` and of each micro-batch."""

    plans: Ints
    rows: Ints
    by_expert: Ints
    by_size: Ints


def _counted(request: SearchRequest, lists: _Lists, some: slice) -> _Counts:
    """Some of the splits, counted."""
    t, p, c, d = (values[some] for values in (lists.t, lists.p, lists.c, lists.d))
    cut = chunked(request.spec.layers, p[:, None], lists.interleave)
    whole, apart = ((cut & on).sum(axis=1) for on in (lists.interleave == 1, lists.interleave > 1))
    per, sizes = (request.batch // d)[:, None], lists.micro_batch
    by_size = whole[:, None] * (per % sizes == 0) + apart[:, None] * (per % (sizes * p[:, None]) == 0)
    batches = by_size.sum(axis=1)
    narrow = np.where(t > 1, len(_narrow(request, 2)), len(_narrow(request, 1)))
    variants = narrow * len(lists.recompute) * len(lists.offload) * len(lists.overlap)
    pairs = zip(lists.experts.tolist(), lists.splits.tolist(), strict=True)
    holding = [Layout(tensor=t, expert=e, expert_tensor=split).expert_ranks for e, split in pairs]
    inside = np.stack([t * c * d % e == 0 for e in holding] or [np.zeros(len(t), bool)])
    shared = np.stack(
        [_shared(request, lists, t, c, d, e)[0].sum(axis=0) * variants for e in holding] or [variants * 0]
    )
    shared *= inside
    each = shared.sum(axis=0)
    rows = inside.sum(axis=0) * np.maximum(batches, whole + apart)
    return _Counts(each * batches, rows, (shared * batches).sum(axis=1), (by_size * each[:, None]).sum(axis=0))


def count_plans(request: SearchRequest) -> tuple[int, Mapping[str, int]]:
    """How many plans there are, and how many are left at most when a field is pinned to one value.

    Raises `SpaceError` where even to count them takes too long.
    """
    return _count(request, _lists(request))[:2]


def _count(request: SearchRequest, lists: _Lists) -> tuple[int, Mapping[str, int], _Counts]:
    values = {"expert": len(lists.experts), "micro_batch": len(lists.micro_batch), "interleave": len(lists.interleave)}
    checks, most = len(lists.t) * sum(values.values()), limit("search_checks")
    if checks > most:
        field = max(values, key=values.__getitem__)
        raise SpaceError(checks, most, field, len(lists.t) * (sum(values.values()) - values[field] + 1))
    each = max(1, _CHECKS // sum(values.values()))
    blocks = [_counted(request, lists, slice(at, at + each)) for at in range(0, max(1, len(lists.t)), each)]
    total, rows = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("plans", "rows"))
    by_expert, by_size = (
        np.sum([getattr(block, name) for block in blocks], axis=0) for name in ("by_expert", "by_size")
    )
    count = int(total.sum())
    left = {
        "expert": int(np.bincount(lists.experts, by_expert[: len(lists.experts)]).max(initial=0)),
        "micro_batch": int(by_size.max(initial=0)),
        "recompute": count // max(1, len(lists.recompute)),
    }
    for name, of in (("tensor", lists.t), ("pipeline", lists.p), ("context", lists.c), ("data", lists.d)):
        left[name] = int(np.bincount(np.unique(of, return_inverse=True)[1], total).max(initial=0))
    counts = _Counts(total, rows * (total > 0), by_expert, by_size)
    return count, {name: size for name, size in left.items() if size < count}, counts


def groups_of(request: SearchRequest) -> tuple[int, tuple[Group, ...]]:
    """All plans, counted and in groups. Raises `SpaceError` for more than are searched at once."""
    lists = _lists(request)
    count, left, counts = _count(request, lists)
    rows = int(counts.rows.sum())
    for number, most in ((count, limit("search_plans")), (rows, limit("search_rows"))):
        if number > most:
            field = min(left, key=left.__getitem__) if left else "tensor"
            raise SpaceError(number, most, field, left.get(field, number))
    some = counts.plans > 0
    of_some = {name: getattr(lists, name)[some] for name in ("t", "p", "c", "d")}
    return count, tuple(_grouped(request, replace(lists, **of_some)))


def _grouped(request: SearchRequest, lists: _Lists) -> Iterator[Group]:
    t, p, c, d, cuts = lists.t, lists.p, lists.c, lists.d, lists.interleave

    def along(columns: int, on: Callable[..., Any], *values: Ints) -> tuple[Ints, ...]:
        """The rows, each as often as one of the columns holds for it, and where; a block of rows after another."""
        each = max(1, _CHECKS // max(1, columns))
        starts = range(0, max(1, len(values[0])), each)
        found = [np.nonzero(on(*(value[at : at + each, None] for value in values))) for at in starts]
        row = np.concatenate([rows + at for at, (rows, _) in zip(starts, found, strict=True)])
        return (*(value[row] for value in values), np.concatenate([column for _, column in found]))

    def divides_layers(t: Any, p: Any, *_: Any) -> Any:
        return chunked(request.spec.layers, p, cuts)

    def holds(t: Any, p: Any, c: Any, d: Any, v: Any) -> Any:
        return t * c * d % Layout(tensor=t, expert=lists.experts, expert_tensor=lists.splits).expert_ranks == 0

    def divides(t: Any, p: Any, c: Any, d: Any, v: Any, *_: Any) -> Any:
        return request.batch // d % (lists.micro_batch * np.where(v > 1, p, 1)) == 0

    t, p, c, d, at = along(len(cuts), divides_layers, t, p, c, d)
    t, p, c, d, v, at = along(len(lists.experts), holds, t, p, c, d, cuts[at])
    e, split = lists.experts[at], lists.splits[at]
    t, p, c, d, v, e, split, at = along(len(lists.micro_batch), divides, t, p, c, d, v, e, split)
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
