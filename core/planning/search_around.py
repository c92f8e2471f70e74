"""Around a search: other cluster sizes, what would make a plan fit, and a layout as texts of the plan’s fields."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from core.budget.errors import BudgetError
from core.limits import limit
from core.planning.plan_search import SPANS, Query, asked, searched
from core.planning.search_request import ANY
from core.search.cluster_sizes import sizes_with_plans
from core.search.constraints import SpaceError
from core.search.derivation import seconds_of_steps
from core.search.result import Found
from core.training.layout import RECOMPUTES, Layout

_SIZES = 3
"""Clusters tried on each side, each twice as large as the one before."""


@dataclass(frozen=True, slots=True)
class Size:
    """The best plan on so many accelerators; days and dollars for all tokens, dollars NaN where unknown."""

    accelerators: int
    best: Found
    days: float
    dollars: float


def days_for(tokens: float, query: Query, seconds: float) -> float:
    """Days of steps alone that all tokens take."""
    return seconds_of_steps(tokens, query.batch, query.seq_len, seconds) / 86400


@lru_cache(maxsize=16)
def sizes(query: Query, tokens: float, price: float) -> tuple[Size, ...]:
    """The best plan on clusters from an eighth to eight times as large, with the same batch; those that have one.

    price: dollars per accelerator-hour, NaN where unknown.
    """
    found: list[Size] = []
    for count in _counts(query):
        best = _best(replace(query, accelerators=count))
        if best:
            days = days_for(tokens, query, best.seconds)
            found.append(Size(count, best, days, days * 24 * count * price))
    return tuple(found)


def _counts(query: Query) -> list[int]:
    """Its own accelerators and doublings on both sides; where a plan divides over none so many, over the next fewer."""
    targets = [query.accelerators * 2.0**power for power in range(-_SIZES, _SIZES + 1)]
    most = limit("accelerators")
    possible = sizes_with_plans(asked(query), int(min(most, targets[-1])))
    places = [int(np.searchsorted(possible, min(target, most), side="right")) - 1 for target in targets]
    return sorted({int(possible[place]) for place in places if place >= 0})


def _best(query: Query) -> Found | None:
    try:
        return searched(query).best
    except (BudgetError, SpaceError):
        return None


@dataclass(frozen=True, slots=True)
class Rescue:
    """A change of the question under which a plan fits: the fields' texts by id, and the best plan then."""

    texts: tuple[tuple[str, str], ...]
    best: Found


@lru_cache(maxsize=32)
def rescues(query: Query) -> tuple[Rescue, ...]:
    """What would make a plan fit, the cheapest first: fewer constraints, offload, a shorter sequence, another cluster.

    No more than one of each kind.
    """
    w = query.wishes
    kept = [name for name in SPANS if not getattr(w, name).free]
    free = replace(w, zero=-1, recompute=None, in_node=True, offload=w.offload, **dict.fromkeys(SPANS, ANY))
    tried: list[list[tuple[tuple[tuple[str, str], ...], Query]]] = []
    if kept or w.zero >= 0 or w.recompute is not None:
        texts = tuple((FIELD_OF[name], "") for name in kept)
        texts += (("kzero", "any"),) * (w.zero >= 0) + (("krc", "any"),) * (w.recompute is not None)
        tried.append([(texts, replace(query, wishes=free))])
    if not w.offload:
        tried.append([((("koff", "true"),), replace(query, wishes=replace(w, offload=True)))])
    if w.in_node:
        tried.append([((("knode", "false"),), replace(query, wishes=replace(w, in_node=False)))])
    count = query.accelerators
    fewer = [int(size) for size in sizes_with_plans(asked(query), count)[::-1] if size < count][:3]
    more = [count * 2**power for power in range(1, 8)]
    tried += [
        [((("count", f"{size:,}"),), replace(query, accelerators=size)) for size in counts] for counts in (fewer, more)
    ]
    rounder = 2 ** max(0, query.batch.bit_length() - 1)
    if rounder != query.batch:
        tried.append([((("gb", f"{rounder:,}"),), replace(query, batch=rounder))])
    found: list[Rescue] = []
    for kind in tried:
        for texts, other in kind:
            best = _best(other)
            if best:
                found.append(Rescue(texts, best))
                break
    return tuple(found)


FIELD_OF = {
    "tensor": "ktp",
    "pipeline": "kpp",
    "interleave": "kvpp",
    "context": "kcp",
    "expert": "kep",
    "micro_batch": "kmbs",
    "zero": "kzero",
    "recompute": "krc",
}
"""Field of a layout → the id of the plan's field that keeps it to something."""


def as_texts(layout: Layout) -> dict[str, str]:
    """A layout as texts of the plan's fields by id, as a form takes them."""
    named = {"tp": "tensor", "pp": "pipeline", "vpp": "interleave", "cp": "context", "ep": "expert"}
    named |= {"mbs": "micro_batch", "acc": "micro_batches", "zero": "zero"}
    texts = {name: f"{int(getattr(layout, field))}" for name, field in named.items()}
    texts["hsdp"] = f"{int(layout.shard_group)}" if layout.shard_group else ""
    texts["rc"] = next(name for name, way in RECOMPUTES.items() if way == layout.recompute)
    return texts | {"sp": str(bool(layout.sequence_parallel)).lower(), "off": str(bool(layout.offload)).lower()}
