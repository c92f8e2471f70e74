"""Pictures of what moves the answer: the tornado of days or dollars, and the curves of equal days."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.planning.sensitivity import IsoDays
from core.units import format_count, format_duration
from core.views.common.chart import (
    Figure,
    axis,
    figure,
    label,
    log_axis,
    lying_bars,
    marks,
    named_axis,
    part_labels,
    rule,
)
from core.views.common.palette import Palette
from core.views.plan.charts import scale_for
from core.views.sensitivity.text import NamedSwing

_ROW, _PLOT, _LINE = 46, 340, 14
_ROUND = (1 / 24, 0.25, 1.0, 3.0, 7.0, 14.0, 30.0, 60.0, 90.0, 180.0, 365.25, 730.5, 1826.25, 3652.5, 36525.0)
"""Days that people plan in."""


def tornado(swings: Sequence[NamedSwing], here: float, dollars: bool, palette: Palette) -> Figure:
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
    return figure(
        palette,
        [
            lying_bars(
                high - low,
                names,
                "%{y}: %{customdata}",
                base=low,
                width=0.42,
                marker={"color": palette.parameters},
                customdata=[f"{scale.show(a)} to {scale.show(b)}" for a, b in ends],
            )
        ],
        height=_ROW * len(rows) + 84,
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        xaxis=axis(palette, scale.title, range=[max(0.0, float(low.min()) - room), float(high.max()) + room]),
        yaxis=named_axis(palette, names, [s.span for s in rows]),
        shapes=[rule(x=middle, line={"color": palette.accent, "width": 2})],
        annotations=[
            label(
                palette,
                f"yours: {scale.show(here)}",
                x=middle,
                y=1,
                yref="paper",
                yanchor="bottom",
                colour=palette.accent,
                size=13,
            ),
            *(
                label(palette, scale.show(value * scale.size), x=float(value), y=name, xanchor=anchor, xshift=shift)
                for values, anchor, shift in ((low, "right", -5), (high, "left", 5))
                for value, name in zip(values, names, strict=True)
            ),
        ],
    )


def days_around(days: float) -> tuple[float, ...]:
    """Five round durations around ``days``, shortest first."""
    near = min(range(len(_ROUND)), key=lambda i: abs(math.log(_ROUND[i] / days)))
    start = min(max(near - 2, 0), len(_ROUND) - 5)
    return _ROUND[start : start + 5]


def iso_days_figure(curves: IsoDays, tokens: float, accelerators: float, palette: Palette) -> Figure:
    """Accelerators against tokens, one line for each number of days, and the plan as a cross."""
    x = curves.tokens
    lines = [
        marks(
            "lines",
            x,
            row,
            f"%{{y:,.4s}} accelerators train %{{x:.4s}} tokens in {format_duration(86400 * days, 3)}",
            line={"color": palette.parameters, "width": 2},
        )
        for days, row in zip(curves.days, curves.accelerators, strict=True)
    ]
    plan: Figure = marks(
        "markers",
        np.array([tokens]),
        np.array([accelerators]),
        "your plan",
        marker={"size": 15, "symbol": "cross", "color": palette.accent},
    )
    seen = np.append(curves.accelerators[np.isfinite(curves.accelerators)], accelerators)
    low, high = max(float(seen.min()), accelerators / 300), min(float(seen.max()), accelerators * 300)
    return figure(
        palette,
        [*lines, plan],
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
                colour=palette.accent,
                size=13,
            ),
        ],
    )


def _named_lines(curves: IsoDays, high: float, low: float, palette: Palette) -> list[Figure]:
    """The days of each line where it leaves the picture, those at its right edge apart from each other."""
    drawn = [(days, row) for days, row in zip(curves.days, curves.accelerators, strict=True) if _seen(row, high, low)]
    notes = [label(palette, format_duration(86400 * days, 3), **_end(curves.tokens, row, high)) for days, row in drawn]
    if edge := [note for note in notes if note["xanchor"] == "left"]:
        part_labels(edge, _PLOT / math.log10(high / low), _LINE)
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
    ticks = [10.0**k * m for k in range(first, last + 1) for m in (1, 3)]
    ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    return log_axis(palette, title, low, high, tickvals=ticks, ticktext=[format_count(tick, 2) for tick in ticks])
