"""A plan's search and what it finds; nothing is searched again that was found already."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from core.limits import cached
from core.search.request import SearchRequest
from core.search.result import LayoutResult, SearchResult
from core.search.search import searched
from core.training.device.memory import DeviceMemory
from core.training.device.traffic import Traffic, traffic_per_step
from core.training.layout import Layout, check


@cached("searches_kept")
def search_layouts(request: SearchRequest) -> SearchResult:
    """What the search finds. Raises `SpaceError` for more plans than are searched at once, and `BudgetError` for an
    accelerator of which too little is known."""
    return searched(request)


def evaluate_layout(request: SearchRequest, layout: Layout) -> LayoutResult:
    """One plan by itself, whether it fits or not. Raises `LayoutError` where it cannot be."""
    check(request.spec, layout, request.seq_len, request.cluster.count)
    columns = Layout(*(np.array([getattr(layout, field.name)]) for field in fields(layout)))
    return request.found(columns)[0]


@cached("arrays_kept")
def stages(request: SearchRequest, layout: Layout, most: int) -> tuple[tuple[int, DeviceMemory], ...]:
    """What the accelerators of pipeline stages hold, from 0: of up to ``most`` of them, the ends among them."""
    count = int(layout.pipeline)
    places = sorted({round(float(at)) for at in np.linspace(0, count - 1, min(most, count))})
    return tuple((place, request.memory(layout, place)) for place in places)


@cached("arrays_kept")
def traffic(request: SearchRequest, layout: Layout) -> Traffic:
    """What an accelerator of a middle stage sends in a step."""
    again = request.implementation.regathers
    return traffic_per_step(request.spec, layout, policy=request.policy, seq_len=request.timed_length, regathers=again)
