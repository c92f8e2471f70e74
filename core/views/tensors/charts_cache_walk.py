"""The picture of two walks through memory: which cache line each access touches, and which it must fetch."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.tensors.examples.cache_walk import Walk
from core.views.common.chart import Figure, axis, label, layout
from core.views.common.palette import Palette

SHOWN = 192
"""Accesses drawn of each walk; enough for the column walk to come back to its first line."""


def walk_picture(row: Walk, column: Walk, palette: Palette) -> Figure:
    """Both walks side by side, the first accesses: cache line against access, filled where the line is fetched.

    With a cache of one line, so every change of line is a fetch.
    """
    top = 1 + int(max(walk.lines[:SHOWN].max(initial=0) for walk in (row, column)))
    number = min(SHOWN, max(row.accesses, column.accesses))
    room = 0.5 + number / 100
    along = {"range": [-room, number - 1 + room]}
    return {
        "data": [*_traces(row, "x", palette), *_traces(column, "x2", palette)],
        "layout": layout(
            palette,
            height=260,
            xaxis=axis(palette, "access, row by row", domain=[0, 0.47], **_ticks(number), **along),
            xaxis2=axis(palette, "access, column by column", domain=[0.53, 1], **_ticks(number), **along),
            yaxis=axis(palette, "cache line", range=[top - 0.4, -0.6 - top / 60], **_ticks(top)),
            annotations=[_title(row, 0.0, palette), _title(column, 0.53, palette)],
            margin={"l": 8, "r": 8, "t": 30, "b": 8},
        ),
    }


def _ticks(count: int) -> dict[str, Any]:
    """Whole numbers only: for a few things one tick each, or plotly puts some between them."""
    return {"dtick": 1} if count <= 10 else {}


def _traces(walk: Walk, x: str, palette: Palette) -> list[dict[str, Any]]:
    missed = walk.single.missed[:SHOWN]
    lines = walk.lines[:SHOWN]
    access = np.arange(len(lines))
    common = {"type": "scatter", "mode": "markers", "xaxis": x, "yaxis": "y"}
    return [
        {
            **common,
            "x": access[~missed],
            "y": lines[~missed],
            "marker": {"size": 5, "color": palette.compute_bound, "symbol": "line-ns-open", "line": {"width": 1}},
            "hovertemplate": "access %{x}: line %{y} is there<extra></extra>",
        },
        {
            **common,
            "x": access[missed],
            "y": lines[missed],
            "marker": {"size": 6, "color": palette.memory_bound, "symbol": "square"},
            "hovertemplate": "access %{x}: line %{y} is fetched<extra></extra>",
        },
    ]


def _title(walk: Walk, x: float, palette: Palette) -> dict[str, Any]:
    lines, whose = ("line", "its") if walk.single.fetched == 1 else ("lines", "their")
    used = f", {100 * walk.single.use:.3g} % of {whose} bytes used" if walk.accesses else ""
    text = f"<b>{walk.single.fetched:,}</b> {lines} fetched{used}"
    return label(palette, text, xref="paper", yref="paper", x=x, y=1, xanchor="left", yanchor="bottom", yshift=6)
