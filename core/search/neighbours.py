"""What is next to a plan: one step in each direction of each of its degrees and choices."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from core.search.request import SearchRequest
from core.search.result import LayoutResult
from core.search.space import chunked, divisors
from core.training.layout import Layout, LayoutError, check

_STEPS = ("zero", "recompute", "sequence_parallel", "offload", "overlap")
_MOST = {"zero": 3, "recompute": 2, "sequence_parallel": 1, "offload": 1, "overlap": 1}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A plan one step away.

    field: of `Layout`, or "overlap".  value: what it is there; ``found.layout`` may differ in what follows from it.
    found: the plan, None where it breaks a rule.  rule: the rule that it breaks, else empty.  fits: whether an
    accelerator holds it, and leaves what is to stay free.
    """

    field: str
    value: int
    found: LayoutResult | None
    rule: str
    fits: bool = False


def neighbours(result: LayoutResult, request: SearchRequest) -> tuple[Neighbour, ...]:
    """One step down and one up of each degree and choice, whatever the constraints say.

    The data-parallel degree takes what the others leave, and micro-batches follow from it. Interleaving and the ranks
    over which ZeRO shards stay where they can; else chunks stay as many or become one, and the group stays that of a
    node or becomes all ranks.
    """
    tried: list[tuple[str, int, Layout | None, int, str]] = []
    for field, value in _steps(result, request):
        overlap = value if field == "overlap" else int(np.ravel(result.running.overlap)[0])
        try:
            layout = _moved(result.layout, request, field, value)
            tried.append((field, value, layout, overlap, ""))
        except LayoutError as error:
            tried.append((field, value, None, overlap, str(error)))
    sound = [(layout, overlap) for _, _, layout, overlap, _ in tried if layout is not None]
    columns = {field.name: np.array([getattr(layout, field.name) for layout, _ in sound]) for field in fields(Layout)}
    plans = iter(request.found(Layout(**columns), np.array([overlap for _, overlap in sound])) if sound else ())
    found = [(field, value, None if layout is None else next(plans), rule) for field, value, layout, _, rule in tried]
    return tuple(
        Neighbour(field, value, plan, rule, plan is not None and not float(plan.memory.total) > request.budget)
        for field, value, plan, rule in found
    )


def _steps(result: LayoutResult, request: SearchRequest) -> list[tuple[str, int]]:
    """Fields with the values next to their own."""
    spec, layout = request.spec, result.layout
    ways = divisors(request.cluster.count)
    cut = np.arange(1, spec.layers + 3)
    values: dict[str, Any] = {
        "tensor": ways,
        "pipeline": ways,
        "interleave": cut[chunked(spec.layers, layout.pipeline, cut)],
        "context": ways,
        "expert": divisors(spec.experts.count if spec.experts else 1),
        "expert_tensor": divisors(spec.experts.width, request.cluster.per_node) if spec.experts else cut[:0],
        "micro_batch": divisors(request.batch // int(layout.data)),
        **{name: np.arange(_MOST[name] + 1) for name in _STEPS},
    }
    rows: list[tuple[str, int]] = []
    for field, known in values.items():
        here = {"overlap": result.running.overlap, "expert_tensor": layout.expert_split}
        own = int(np.ravel(here.get(field, getattr(layout, field, 0)))[0])
        if field == "zero" and not _shared(layout):
            continue
        if field == "sequence_parallel" and int(layout.tensor) == 1:
            continue
        rows += [(field, int(known[known < own][-1]))] if (known < own).any() else []
        rows += [(field, int(known[known > own][0]))] if (known > own).any() else []
    return rows


def _shared(layout: Layout) -> bool:
    """Whether ZeRO makes a difference: ranks hold the same weights, or gradients may go to the host."""
    return int(layout.data) * int(layout.context) > 1 or bool(layout.tensor > layout.expert_ranks or layout.offload)


def _moved(layout: Layout, request: SearchRequest, field: str, value: int) -> Layout:
    """The layout with one field changed and what follows from it. Raises `LayoutError` where none is."""
    count, batch, per_node = request.cluster.count, request.batch, request.cluster.per_node
    result = layout if field == "overlap" else replace(layout, **{field: value})
    t, p, c, b = (int(getattr(result, name)) for name in ("tensor", "pipeline", "context", "micro_batch"))
    if count % (t * p * c):
        raise LayoutError(field, value, f"tensor · pipeline · context must divide the {count:,} accelerators.")
    data = count // (t * p * c)
    if batch % (data * b):
        raise LayoutError(
            field,
            value,
            f"{data:,} data-parallel ranks with micro-batches of {b:,} must divide the {batch:,} sequences of a step.",
        )
    many = batch // (data * b)
    v, group = int(result.interleave), int(result.shard_group)

    def cut(chunks: int) -> bool:
        return chunks == 1 or (many % p == 0 and bool(chunked(request.spec.layers, p, chunks)))

    if field != "interleave" and not cut(v):
        same = v * int(layout.pipeline)
        v = same // p if same % p == 0 and cut(same // p) else 1
    if field == "interleave" and not cut(v):
        raise LayoutError(field, value, f"the {many:,} micro-batches of a step must be rounds of {p:,} stages.")
    if group and group == per_node // int(layout.tensor):
        group = per_node // t
    ranks = data * c
    group = group if 1 < group < ranks and ranks % group == 0 else 0
    result = replace(result, data=data, micro_batches=many, interleave=v)
    result = replace(
        result, zero=result.zero if _shared(result) else 0, sequence_parallel=result.sequence_parallel * (t > 1)
    )
    result = replace(result, shard_group=group if result.zero else 0)
    check(request.spec, result, request.seq_len)
    return result
