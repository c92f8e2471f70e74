"""Bus bandwidth over message size, beside what a datasheet says of the link."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from core.benchmark.collectives import Collectives, CollectiveTiming, Operation
from core.views.collectives.text import rate_text, size_text
from core.views.common.chart import Figure, apart, axis, figure, label, marks, rule
from core.views.common.palette import Palette

_ROLES: Mapping[Operation, str] = {
    "all-reduce": "gradients",
    "all-gather": "parameters",
    "reduce-scatter": "master",
    "all-to-all": "optimizer",
    "send-recv": "activations",
}
_UNITS = (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3))
_TICKS = 12
_HEIGHT = 420
_PLOT = 330
"""Pixels between the axis and the top of the chart, about: names at the ends of lines are kept apart by it."""
_LINE = 16
_RIGHT = 120
"""Pixels beside the chart for these names."""


def bandwidths(result: Collectives, palette: Palette, link: float = math.nan) -> Figure:
    """Bus bandwidth of every operation over message size, out of place; the datasheet's ``link`` dashed.

    link: bytes per second, one way; NaN where unknown.
    """
    lines: dict[Operation, list[CollectiveTiming]] = {}
    for timing in sorted(result.timings, key=lambda timing: timing.bytes):
        lines.setdefault(timing.operation, []).append(timing)
    known = [link] if math.isfinite(link) else []
    high = max([*map(result.bus_rate, result.timings), *known])
    unit, scale = next((pair for pair in _UNITS if high >= pair[1]), _UNITS[-1])
    top = 1.08 * high / scale
    sizes = sorted({timing.bytes for timing in result.timings})
    ticks = sizes[:: math.ceil(len(sizes) / _TICKS)]
    level = {"color": palette.text, "width": 1.5, "dash": "dash"}
    ends: dict[Operation, float] = {
        operation: result.bus_rate(timing) / scale for operation, timing in result.largest.items()
    }
    return figure(
        palette,
        [_line(result, timings, palette, scale) for timings in lines.values()],
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
        shapes=[rule(y=y / scale, line=level) for y in known],
        annotations=[*(_level(palette, y, scale) for y in known), *_names(palette, ends, top)],
    )


def _line(result: Collectives, timings: Sequence[CollectiveTiming], palette: Palette, scale: float) -> Figure:
    """One operation, its messages by size."""
    operation = timings[0].operation
    colour = palette.role(_ROLES[operation])
    rates = [result.bus_rate(timing) for timing in timings]
    return marks(
        "lines+markers",
        np.array([timing.bytes for timing in timings], dtype=np.float64),
        np.array(rates) / scale,
        [
            f"{operation} of {size_text(timing.bytes)}<br>{rate_text(rate)}"
            for timing, rate in zip(timings, rates, strict=True)
        ],
        name=operation,
        line={"color": colour, "width": 2.5},
        marker={"color": colour, "size": 6},
    )


def _level(palette: Palette, rate: float, scale: float) -> Figure:
    """What the dashed line is, over its left end."""
    text = f"datasheet link, one way: {rate_text(rate)}"
    return label(palette, text, x=0, xref="paper", xanchor="left", y=rate / scale, yanchor="bottom", xshift=4)


def _names(palette: Palette, ends: Mapping[Operation, float], top: float) -> list[Figure]:
    """The operations' names beside the ends of their lines, moved apart where those meet."""
    order = sorted(ends, key=lambda name: ends[name])
    wanted = [ends[name] / top * _PLOT for name in order]
    places = apart(wanted, [_LINE] * len(order))
    # What would slide under the axis pushes all of them up.
    lift = max(_LINE / 2 - places[0], 0.0)
    return [
        label(
            palette,
            f"<b>{name}</b>",
            palette.role(_ROLES[name]),
            x=1,
            xref="paper",
            xanchor="left",
            xshift=8,
            y=ends[name],
            yshift=place + lift - want,
        )
        for name, place, want in zip(order, places, wanted, strict=True)
    ]
