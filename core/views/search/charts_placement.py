"""Picture of the placement of a layout: accelerators by pipeline stage, their nodes, and the shard on each."""

from __future__ import annotations

import numpy as np

from core.messages import message
from core.search.placement import RankPlace, place_of, rank_at
from core.training.layout import Layout
from core.views.common.chart import MONO, Figure, axis, figure, over
from core.views.common.palette import Palette

_WIDE, _HIGH = 16, 16
"""Accelerators drawn of each stage, and stages."""


def drawn(plan: Layout) -> tuple[int, int]:
    """How many stages and accelerators of each are drawn."""
    each = int(plan.tensor * plan.context * plan.data)
    return min(int(plan.pipeline), _HIGH), min(each, _WIDE)


def device_grid(plan: Layout, node_size: int, palette: Palette) -> Figure:
    """Return a square for each accelerator with its shards, and a frame around each node. Replicas differ by shade."""
    high, wide = drawn(plan)
    stages = np.linspace(0, int(plan.pipeline) - 1, high).round().astype(int).tolist()
    places = [[_at(plan, stage, column, node_size) for column in range(wide)] for stage in stages]
    shade = np.array([[place.data % 2 for place in row] for row in places], dtype=np.float64)
    hover = [[_annotated(plan, place) for place in row] for row in places]
    rows = [message("search.stage", stage=stage + 1.0) for stage in stages]
    each = int(plan.tensor * plan.context * plan.data)
    columns = list(range(wide))
    return figure(
        palette,
        [
            {
                "type": "heatmap",
                "x": columns,
                "y": rows,
                "z": shade,
                "zmin": 0,
                "zmax": 1,
                "showscale": False,
                "xgap": 3,
                "ygap": 3,
                "colorscale": [[0, palette.surface], [1, palette.border]],
                "customdata": hover,
                "text": [[_shards(plan, place).replace(" ", "") for place in row] for row in places],
                "texttemplate": "%{text}",
                "textfont": {"family": MONO, "size": 11, "color": palette.text},
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        ],
        height=34 * max(3, high) + 110,
        margin={"l": 8, "r": 8, "t": 38, "b": 8},
        xaxis=axis(
            palette,
            message("search.chart.placement", drawn=float(wide), accelerators=float(each)),
            tickvals=columns[:: max(1, wide // 8)],
            ticktext=[f"{column + 1}" for column in columns[:: max(1, wide // 8)]],
            showgrid=False,
        ),
        yaxis=axis(palette, "", autorange="reversed", showgrid=False, ticksuffix="  ", type="category"),
        shapes=[frame for i, row in enumerate(places) for frame in _nodes(i, row, palette)],
        annotations=[
            over(palette, message("search.chart.node", accelerators=float(node_size)), 6, colour=palette.muted)
        ],
    )


def _at(plan: Layout, stage: int, column: int, node_size: int) -> RankPlace:
    return place_of(plan, rank_at(plan, pipeline=stage) + column, node_size)


def _shards(plan: Layout, place: RankPlace) -> str:
    named = (("T", plan.tensor, place.tensor), ("C", plan.context, place.context), ("D", plan.data, place.data))
    return " ".join(f"{letter}{shard}" for letter, degree, shard in named if degree > 1)


def _annotated(plan: Layout, place: RankPlace) -> str:
    rank, node, stage = float(place.rank), float(place.node), place.pipeline + 1.0
    return message("search.chart.rank", rank=rank, node=node, stage=stage, shards=_shards(plan, place))


def _nodes(row: int, places: list[RankPlace], palette: Palette) -> list[Figure]:
    """A frame around the accelerators of each node in one row."""
    figures: list[Figure] = []
    start = 0
    for i in range(1, len(places) + 1):
        if i < len(places) and places[i].node == places[start].node:
            continue
        figures.append(
            {
                "type": "rect",
                "x0": start - 0.48,
                "x1": i - 1 + 0.48,
                "y0": row - 0.47,
                "y1": row + 0.47,
                "line": {"color": palette.accent, "width": 1.5},
            }
        )
        start = i
    return figures
