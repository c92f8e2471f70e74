"""Numbers of accelerators that have plans at all."""

from __future__ import annotations

import numpy as np

from core.search.request import SearchRequest
from core.search.space import Ints, degrees_tried, divisors


def sizes_with_plans(request: SearchRequest, most: int) -> Ints:
    """Numbers of accelerators up to ``most`` over which the step can be laid without rest, in rising order."""
    ways = np.unique(np.concatenate([np.arange(1, request.spec.layers + 1), divisors(request.seq_len, most)]))
    t, p, c = degrees_tried(request, ways)
    d = divisors(request.batch, most)
    d = d[request.constraints.allowed("data", d)]
    sizes = np.array([1])
    for values in (t, p, c, d):
        reached = np.zeros(most + 1, bool)
        for value in values[values <= most].tolist():
            reached[sizes[sizes <= most // value] * value] = True
        sizes = np.flatnonzero(reached)
    return sizes
