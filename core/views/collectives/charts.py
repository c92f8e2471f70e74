"""The chart of this room: bus bandwidth over message size, beside what a datasheet says of the link."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from core.benchmark.collectives.result import bus_rate
from core.benchmark.collectives.spec import Name, size_text
from core.views.collectives.text import rate_text, spread
from core.views.common.chart import SANS, Figure, apart, axis, label, layout
from core.views.common.palette import Palette

if TYPE_CHECKING:
    from core.benchmark.collectives.result_fields import PointFields, ResultFields

_ROLES: Mapping[Name, str] = {
    "all-reduce": "gradients",
    "all-gather": "parameters",
    "reduce-scatter": "master",
    "all-to-all": "optimizer",
    "ring": "activations",
    "pairs": "buffers",
}
_UNITS = (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3))
_TICKS = 12
_HEIGHT = 420
_PLOT = 330
"""Pixels between the axis and the top of the chart, about: names at the ends of lines are kept apart by it."""
_LINE = 16
_RIGHT = 120
"""Pixels beside the chart for these names."""


def bandwidths(result: ResultFields, palette: Palette, link: float = math.nan) -> Figure:
    """Bus bandwidth of every operation over message size, with its p10–p90 spread; the datasheet's ``link`` dashed.

    link: bytes per second, one way; NaN where unknown.
    """
    lines: dict[Name, list[PointFields]] = {}
    for point in sorted(result.points, key=lambda point: point.bytes):
        lines.setdefault(point.operation, []).append(point)
    known = [link] if math.isfinite(link) else []
    high = max([bus_rate(result, point, point.p10_s) for point in result.points] + known, default=1e9)
    unit, scale = next((pair for pair in _UNITS if high >= pair[1]), _UNITS[-1])
    top = 1.08 * high / scale
    sizes = sorted({point.bytes for point in result.points}) or [1 << 10, 1 << 30]
    ticks = sizes[:: math.ceil(len(sizes) / _TICKS)]
    level = {"color": palette.text, "width": 1.5, "dash": "dash"}
    ends: dict[Name, float] = {name: bus_rate(result, points[-1]) / scale for name, points in lines.items()}
    return {
        "data": [_line(result, points, palette, scale) for points in lines.values()],
        "layout": layout(
            palette,
            height=_HEIGHT,
            margin={"l": 8, "r": _RIGHT, "t": 32, "b": 8},
            xaxis=axis(
                palette,
                "message",
                type="log",
                range=[math.log10(sizes[0]) - 0.1, math.log10(sizes[-1]) + 0.1],
                tickvals=ticks,
                ticktext=[size_text(size) for size in ticks],
                fixedrange=True,
            ),
            yaxis=axis(palette, f"bus bandwidth, {unit}", range=[0, top], fixedrange=True),
            shapes=[
                {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y / scale, "y1": y / scale, "line": level}
                for y in known
            ],
            annotations=[*(_level(palette, y, scale) for y in known), *_names(palette, ends, top)],
        ),
    }


def _line(result: ResultFields, points: Sequence[PointFields], palette: Palette, scale: float) -> Figure:
    """One operation, its points by size."""
    middle, slow, fast = np.array(
        [[bus_rate(result, p, seconds) / scale for seconds in (p.median_s, p.p90_s, p.p10_s)] for p in points]
    ).T
    name = points[0].operation
    colour = palette.role(_ROLES[name])
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": np.array([p.bytes for p in points], dtype=np.float64),
        "y": middle,
        "line": {"color": colour, "width": 2.5},
        "marker": {"color": colour, "size": 6},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": fast - middle,
            "arrayminus": middle - slow,
            "color": colour,
            "thickness": 1,
            "width": 3,
        },
        "hovertext": [
            f"{name} of {size_text(p.bytes)}<br>{rate_text(bus_rate(result, p))}, p10–p90 {spread(result, p)}"
            for p in points
        ],
        "hoverinfo": "text",
    }


def _level(palette: Palette, rate: float, scale: float) -> Figure:
    """What the dashed line is, over its left end."""
    text = f"datasheet link, one way: {rate_text(rate)}"
    return label(palette, text, x=0, xref="paper", xanchor="left", y=rate / scale, yanchor="bottom", xshift=4)


def _names(palette: Palette, ends: Mapping[Name, float], top: float) -> list[Figure]:
    """The operations' names beside the ends of their lines, moved apart where those meet."""
    order = sorted(ends, key=lambda name: ends[name])
    wanted = [ends[name] / top * _PLOT for name in order]
    places = apart(wanted, [_LINE] * len(order))
    # What would slide under the axis pushes all of them up.
    lift = max(_LINE / 2 - places[0], 0.0) if places else 0.0
    return [
        label(palette, f"<b>{name}</b>", x=1, xref="paper", xanchor="left", xshift=8, y=ends[name])
        | {"yshift": place + lift - want, "font": {"family": SANS, "size": 12, "color": palette.role(_ROLES[name])}}
        for name, place, want in zip(order, places, wanted, strict=True)
    ]
