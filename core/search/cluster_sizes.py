"""The best plan over numbers of accelerators, and the numbers that have plans at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from core.search.request import SearchRequest
from core.search.result import SearchResult
from core.search.search import searched
from core.search.space import Ints, degrees_tried, divisors


@dataclass(frozen=True, eq=False, slots=True)
class ClusterBest:
    """What a search finds on so many accelerators."""

    accelerators: int
    searched: SearchResult


def best_by_size(
    request: SearchRequest, sizes: Iterable[int], *, price: float | None = None
) -> tuple[ClusterBest, ...]:
    """The same step on clusters of other sizes: strong scaling. Raises `SpaceError` for a size of too many plans."""
    return tuple(ClusterBest(size, searched(request.on(size), price=price, top=1)) for size in sizes)


def sizes_with_plans(request: SearchRequest, most: int) -> Ints:
    """Numbers of accelerators up to ``most`` over which the step can be laid without rest, in rising order."""
    ways = np.unique(np.concatenate([np.arange(1, request.spec.layers + 1), divisors(request.seq_len, most)]))
    t, p, c = degrees_tried(request, ways)
    d = divisors(request.batch, most)
    d = d[request.constraints.allowed("data", d)]
    sizes = np.array([1])
    for values in (t, p, c, d):
        sizes = np.unique(sizes[:, None] * values)
        sizes = sizes[sizes <= most]
    return sizes
