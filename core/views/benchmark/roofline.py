"""The chart of a measured roofline, the datasheet's dashed, and what was timed on it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.benchmark.points import Point
from core.benchmark.record import Record
from core.benchmark.roofline import Roof, placed_points
from core.messages import message
from core.views.benchmark.charts import rate_title
from core.views.benchmark.text import rate_of
from core.views.common.chart import Figure, as_typed, axis, figure, label, log_axis, marks, part_labels
from core.views.common.palette import Palette

_HEIGHT = 440
_PLOT = 379.0
"""Pixels of the height that are within the axes."""


def picture(record: Record, roof: Roof, sheet: Roof, palette: Palette) -> Figure:
    """Return a chart of the measured points and roofline. sheet: the datasheet's roofline, dashed."""
    points = placed_points(record, roof)
    at = [p.flop / p.bytes for p in points]
    low, high = min([*at, roof.ridge / 100]) / 2, max([*at, roof.ridge * 10]) * 2
    x = np.geomspace(low, high, 121)
    tops = [roof.top, sheet.top if not math.isnan(sheet.ridge) else 0.0, *(p.rate for p in points)]
    floor = min([*(p.rate for p in points), roof.top, 2 * low * roof.bandwidth])
    y_range = [math.log10(floor) - 0.3, math.log10(max(tops)) + 0.4]
    data = [_line(x, roof.bandwidth, peak, "solid", palette.text) for peak in roof.peaks.values()]
    if not math.isnan(sheet.ridge):
        data.append(_line(x, sheet.bandwidth, sheet.top, "dash", palette.muted))
    for bound, symbol, colour in (
        ("compute", "circle", palette.compute_bound),
        ("memory", "diamond", palette.memory_bound),
    ):
        if some := [p for p in points if roof.place(p).bound == bound]:
            data.append(_dots(some, symbol, colour, palette))
    roofs = [
        label(
            palette,
            message("roofline.chart.peak_measured", rate=peak, name=dtype),
            x=math.log10(peak / roof.bandwidth),
            y=math.log10(peak),
            xanchor="right",
            yanchor="bottom",
            xshift=-28,
        )
        for dtype, peak in roof.peaks.items()
    ]
    return figure(
        palette,
        data,
        height=_HEIGHT,
        hovermode="closest",
        xaxis=log_axis(palette, message("roofline.chart.x"), low, high, fixedrange=True, dtick=1),
        yaxis=axis(palette, rate_title(()), type="log", range=y_range, fixedrange=True, tickformat="~s"),
        annotations=[*roofs, *_names(palette, points, _PLOT / (y_range[1] - y_range[0]))],
    )


def _line(x: npt.NDArray[np.float64], slope: float, peak: float, dash: str, colour: str) -> Figure:
    return marks("lines", x, np.minimum(peak, x * slope), "", line={"color": colour, "width": 1.5, "dash": dash})


def _dots(points: Sequence[Point], symbol: str, colour: str, palette: Palette) -> Figure:
    names = [message("measure.chart.item", item=as_typed(p.item.name), variant=as_typed(p.item.label)) for p in points]
    hover = [message("measure.chart.point", name=name, rate=rate_of(p)) for name, p in zip(names, points, strict=True)]
    marker = {"size": 11, "symbol": symbol, "color": colour, "line": {"color": palette.background, "width": 1}}
    return marks("markers", [p.flop / p.bytes for p in points], [p.rate for p in points], hover, marker=marker)


def _names(palette: Palette, points: Sequence[Point], px_per_decade: float) -> list[Figure]:
    """Return the name of each dtype and back end beside its fastest dot."""
    best = {p.item.name: p for p in sorted(points, key=lambda p: p.rate)}
    notes = [
        label(palette, as_typed(name), x=math.log10(p.flop / p.bytes), y=math.log10(p.rate), xanchor="left", xshift=10)
        for name, p in best.items()
    ]
    part_labels(notes, px_per_decade, 15)
    return notes
