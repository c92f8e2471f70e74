"""Pictures of what moves the answer: the tornado of days or dollars, and the curves of equal days."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.planning.sensitivity import IsoDays
from core.units import format_count, format_duration
from core.views.common.chart import MONO, SANS, Figure, apart, axis, label, layout
from core.views.common.palette import Palette
from core.views.plan.charts import scale_for
from core.views.sensitivity.text import Named

_ROW, _PLOT, _LINE = 46, 340, 14
_ROUND = (1 / 24, 0.25, 1.0, 3.0, 7.0, 14.0, 30.0, 60.0, 90.0, 180.0, 365.25, 730.5, 1826.25, 3652.5, 36525.0)
"""Days that people plan in."""


def tornado(swings: Sequence[Named], here: float, dollars: bool, palette: Palette) -> Figure:
    """One bar per input from the answer at its low end to that at its high end, the widest on top.

    swings: with their names and ranges in words; here: the answer at the middle of everything.
    """
    scale = scale_for("cost" if dollars else "time", here)
    rows = list(swings)[::-1]
    ends = [sorted(s.swing.dollars if dollars else s.swing.days) for s in rows]
    low, high = (np.array([end[i] for end in ends]) / scale.size for i in (0, 1))
    middle = here / scale.size
    room = 0.27 * float(high.max() - low.min() or high.max())
    names = [s.name for s in rows]
    ticks = [f"{s.name}<br><span style='font-family:{MONO};font-size:12px'>{s.span}</span>" for s in rows]
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": high - low,
                "base": low,
                "width": 0.42,
                "marker": {"color": palette.parameters},
                "customdata": [f"{scale.show(a)} to {scale.show(b)}" for a, b in ends],
                "hovertemplate": "%{y}: %{customdata}<extra></extra>",
            }
        ],
        "layout": layout(
            palette,
            height=_ROW * len(rows) + 84,
            margin={"l": 8, "r": 8, "t": 30, "b": 8},
            xaxis=axis(palette, scale.title, range=[max(0.0, float(low.min()) - room), float(high.max()) + room]),
            yaxis=axis(
                palette,
                "",
                tickvals=names,
                ticktext=ticks,
                tickfont={"size": 13, "color": palette.text},
                showgrid=False,
                ticksuffix="  ",
            ),
            shapes=[
                {
                    "type": "line",
                    "x0": middle,
                    "x1": middle,
                    "y0": 0,
                    "y1": 1,
                    "yref": "paper",
                    "line": {"color": palette.accent, "width": 2},
                }
            ],
            annotations=[
                label(
                    palette,
                    f"yours: {scale.show(here)}",
                    x=middle,
                    y=1,
                    yref="paper",
                    yanchor="bottom",
                    font={"family": SANS, "size": 13, "color": palette.accent},
                ),
                *(
                    label(palette, scale.show(value * scale.size), x=float(value), y=name, xanchor=anchor, xshift=shift)
                    for values, anchor, shift in ((low, "right", -5), (high, "left", 5))
                    for value, name in zip(values, names, strict=True)
                ),
            ],
        ),
    }


def days_around(days: float) -> tuple[float, ...]:
    """Five round durations around ``days``, shortest first."""
    near = min(range(len(_ROUND)), key=lambda i: abs(math.log(_ROUND[i] / days)))
    start = min(max(near - 2, 0), len(_ROUND) - 5)
    return _ROUND[start : start + 5]


def iso_days_figure(curves: IsoDays, tokens: float, accelerators: float, palette: Palette) -> Figure:
    """Accelerators against tokens, one line for each number of days, and the plan as a cross."""
    x = curves.tokens
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": x,
            "y": row,
            "line": {"color": palette.parameters, "width": 2},
            "hovertemplate": f"%{{y:,.4s}} accelerators train %{{x:.4s}} tokens in {format_duration(86400 * days, 3)}"
            "<extra></extra>",
        }
        for days, row in zip(curves.days, curves.accelerators, strict=True)
    ]
    plan: Figure = {
        "type": "scatter",
        "mode": "markers",
        "x": np.array([tokens]),
        "y": np.array([accelerators]),
        "marker": {"size": 15, "symbol": "cross", "color": palette.accent},
        "hovertemplate": "your plan<extra></extra>",
    }
    seen = np.append(curves.accelerators[np.isfinite(curves.accelerators)], accelerators)
    low, high = max(float(seen.min()), accelerators / 300), min(float(seen.max()), accelerators * 300)
    return {
        "data": [*lines, plan],
        "layout": layout(
            palette,
            height=400,
            margin={"l": 8, "r": 84, "t": 16, "b": 8},
            xaxis=_log(palette, "tokens", float(x[0]), float(x[-1])),
            yaxis=_log(palette, "accelerators", low, high),
            annotations=[
                *_named_lines(curves, high, low, palette),
                label(
                    palette,
                    "yours",
                    x=math.log10(tokens),
                    y=math.log10(accelerators),
                    xanchor="left",
                    yanchor="top",
                    xshift=10,
                    font={"family": SANS, "size": 13, "color": palette.accent},
                ),
            ],
        ),
    }


def _named_lines(curves: IsoDays, high: float, low: float, palette: Palette) -> list[Figure]:
    """The days of each line where it leaves the picture, those at its right edge apart from each other."""
    drawn = [(days, row) for days, row in zip(curves.days, curves.accelerators, strict=True) if _seen(row, high, low)]
    notes = [label(palette, format_duration(86400 * days, 3), **_end(curves.tokens, row, high)) for days, row in drawn]
    edge = [note for note in reversed(notes) if note["xanchor"] == "left"]
    heights = [_PLOT * math.log(10.0 ** note["y"] / low) / math.log(high / low) for note in edge]
    for note, height, place in zip(edge, heights, apart(heights, [_LINE] * len(edge)), strict=True):
        note["yshift"] = place - height
    return notes


def _seen(row: np.ndarray, high: float, low: float) -> bool:
    return bool(np.any((row > low) & (row <= high)))


def _end(x: np.ndarray, row: np.ndarray, high: float) -> Figure:
    """Where a line leaves the picture: at its right edge, or at its top."""
    last = int(np.flatnonzero(row <= high)[-1])
    at_edge = last == len(row) - 1
    return {
        "x": math.log10(float(x[last])),
        "y": math.log10(float(row[last])),
        "xanchor": "left" if at_edge else "center",
        "yanchor": "middle" if at_edge else "bottom",
        "xshift": 4 if at_edge else 0,
    }


def _log(palette: Palette, title: str, low: float, high: float) -> Figure:
    """A logarithmic axis with counts written as 1K, 10K, 1M."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    marks = [10.0**k * m for k in range(first, last + 1) for m in (1, 3)]
    marks = [mark for mark in marks if low * 0.999 <= mark <= high * 1.001]
    return axis(
        palette,
        title,
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=marks,
        ticktext=[format_count(mark, 2) for mark in marks],
    )
