"""How a plan's step lies over its accelerators: the data-parallel degree is what the others leave."""

from __future__ import annotations

import math
from dataclasses import replace

from core.training.layout import Layout, LayoutError


def resolve_layout(layout: Layout, accelerators: int) -> Layout:
    """``layout`` with the data-parallel degree that ``accelerators`` leave. Raises `LayoutError` where none is."""
    degrees = {name: int(getattr(layout, name)) for name in ("tensor", "pipeline", "context")}
    taken = math.prod(degrees.values())
    if accelerators % taken == 0:
        return replace(layout, data=accelerators // taken)
    largest = max(degrees, key=degrees.__getitem__)
    product = " · ".join(f"{name} {degree:,}" for name, degree in degrees.items() if degree > 1)
    named = product if product.count("·") == 0 else f"{product} = {taken:,}"
    others = taken // degrees[largest]
    most = min(accelerators // others, degrees[largest], 4096)
    fitting = max((d for d in range(1, most + 1) if accelerators % (others * d) == 0), default=None)
    raise LayoutError(largest, degrees[largest], f"{named} must divide the {accelerators:,} accelerators.", fitting)
