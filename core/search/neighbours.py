"""Nearby layouts of a layout: one step in each field."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from core.messages import message
from core.search.fastest import fastest
from core.search.request import LayoutResult, SearchRequest, only
from core.search.space import chunked, divisors, zero_matters
from core.training.layout import Layout, LayoutError, check

_STEPS = ("zero", "recompute", "sequence_parallel", "offload")
_MOST = {"zero": 3, "recompute": 2, "sequence_parallel": 1, "offload": 1}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Layout with one field changed.

    field, value: of `Layout`; ``found.layout`` may differ in dependent fields. found: None for an invalid layout. rule:
    the violated rule, else empty. fits: whether it fits with the memory headroom.
    """

    field: str
    value: int
    found: LayoutResult | None
    rule: str
    fits: bool = False


def neighbours(result: LayoutResult, request: SearchRequest) -> tuple[Neighbour, ...]:
    """Return the layouts one step down and one up in each field, regardless of the constraints.

    Data-parallel ranks and micro-batches follow from accelerators and batch. Interleaving and the ZeRO group stay the
    same if they can; else the number of chunks stays or becomes one, and the group is a node or all ranks.
    """
    tried: list[tuple[str, int, Layout | None, str]] = []
    for field, value in _steps(result, request):
        try:
            tried.append((field, value, _moved(result.layout, request, field, value), ""))
        except LayoutError as error:
            tried.append((field, value, None, str(error)))
    sound = [layout for _, _, layout, _ in tried if layout is not None]
    columns = {field.name: np.array([getattr(layout, field.name) for layout in sound]) for field in fields(Layout)}
    plans = iter(request.found(Layout(**columns)) if sound else ())
    found = [(field, value, None if layout is None else next(plans), rule) for field, value, layout, rule in tried]
    return tuple(
        Neighbour(field, value, plan, rule, plan is not None and not float(plan.memory.total) > request.budget)
        for field, value, plan, rule in found
    )


def _steps(result: LayoutResult, request: SearchRequest) -> list[tuple[str, int]]:
    """Return each field with the values next to its own."""
    spec, layout = request.spec, result.layout
    ways = np.union1d(divisors(request.cluster.count), 2 ** np.arange(12))
    cut = np.arange(1, spec.layers + 3)
    values: dict[str, Any] = {
        "tensor": ways,
        "pipeline": ways,
        "interleave": cut[chunked(spec.layers, layout.pipeline, cut)],
        "context": ways,
        "expert": divisors(spec.experts.count if spec.experts else 1),
        "expert_tensor": divisors(spec.experts.width, request.cluster.per_node) if spec.experts else cut[:0],
        "micro_batch": np.array([1, 2, 3, 4, 5, 6, 7, 8, *(16 * 2 ** np.arange(6))]),
        **{name: np.arange(_MOST[name] + 1) for name in _STEPS},
    }
    rows: list[tuple[str, int]] = []
    for field, known in values.items():
        own = int(np.ravel(layout.expert_split if field == "expert_tensor" else getattr(layout, field))[0])
        if field == "zero" and not zero_matters(layout):
            continue
        if field == "sequence_parallel" and int(layout.tensor) == 1:
            continue
        rows += [(field, int(known[known < own][-1]))] if (known < own).any() else []
        rows += [(field, int(known[known > own][0]))] if (known > own).any() else []
    return rows


def _moved(layout: Layout, request: SearchRequest, field: str, value: int) -> Layout:
    """Return the layout with one field changed, and what follows from it. Raises `LayoutError` if it is invalid."""
    result = replace(layout, **{field: value})
    t, p, v, per_node = int(result.tensor), int(result.pipeline), int(result.interleave), request.cluster.per_node
    layers, group = request.spec.layers, int(result.shard_group)
    if field != "interleave" and not chunked(layers, p, v):
        same = v * int(layout.pipeline)
        v = same // p if same % p == 0 and chunked(layers, p, same // p) else 1
    if group and group == per_node // int(layout.tensor):
        group = per_node // t
    narrow = int(result.sequence_parallel) if field == "sequence_parallel" else int(t > 1)
    result = replace(result, interleave=v, shard_group=group if result.zero else 0, sequence_parallel=narrow)
    for tried in dict.fromkeys((result, replace(result, shard_group=0))):
        alone = replace(request, constraints=only(replace(tried, micro_batches=0)))
        if found := fastest(alone, request.cluster.count, np.ones_like):
            check(request.spec, found.layout, request.seq_len)
            return found.layout
    check(request.spec, replace(result, data=1, micro_batches=1, expert=1, shard_group=0), request.seq_len)
    rule = message("search.error.too_few", accelerators=float(request.cluster.count))
    raise LayoutError(field, value, rule)
