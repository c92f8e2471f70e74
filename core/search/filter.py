"""Some of the plans of a space: those within ranges of their degrees and not much slower than the fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from core.search.constraints import Range
from core.search.result import Columns, LayoutResult
from core.training.layout import Layout


def narrowed(plans: Columns, most: float, ranges: Mapping[str, Range]) -> Columns:
    """The plans of at most this pace whose fields lie in ``ranges``."""
    inside = plans.pace <= most
    for field, allowed in ranges.items():
        inside = inside & allowed.includes(np.asarray(getattr(plans.layout, field)))
    return chosen(plans, np.flatnonzero(np.broadcast_to(inside, plans.seconds.shape)))


def chosen(plans: Columns, places: npt.NDArray[np.intp]) -> Columns:
    """The plans at these places."""
    size = plans.seconds.shape
    all_layouts = plans.layout
    layout = Layout(*(np.broadcast_to(np.asarray(getattr(all_layouts, f.name)), size)[places] for f in fields(Layout)))
    return Columns(
        layout=layout,
        overlap=np.broadcast_to(plans.overlap, size)[places],
        tokens=plans.tokens[places],
        seconds=plans.seconds[places],
        memory=plans.memory[places],
        bound=plans.bound[places],
    )


def thinned(plans: Columns, most: int) -> Columns:
    """At most so many of ``plans``, evenly from the fastest to the slowest."""
    count = len(plans.seconds)
    return plans if count <= most else chosen(plans, np.linspace(0, count - 1, most).astype(np.intp))


def layout_at(plans: Columns, place: int) -> Layout:
    """One plan's layout, of whole numbers."""
    size = plans.seconds.shape
    layout = plans.layout
    return Layout(*(int(np.broadcast_to(np.asarray(getattr(layout, f.name)), size)[place]) for f in fields(Layout)))


def within(front: Sequence[LayoutResult], most: float) -> tuple[LayoutResult, ...]:
    """The plans of a front of at most this pace."""
    return tuple(result for result in front if result.pace <= most)
