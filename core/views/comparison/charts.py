"""Pictures of a comparison: days and dollars as bars with their ranges, and both against each other."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any, TypeAlias

from core.planning.comparison.comparison import QUANTITY, ComparedPlan, front, middles, result
from core.views.common.chart import (
    Figure,
    as_typed,
    axis,
    figure,
    label,
    lying_bars,
    marks,
    rows_axis,
    rule,
    whiskers,
)
from core.views.common.palette import Palette
from core.views.comparison.text import problem_text, shown
from core.views.plan.charts import AxisScale, scale_for

_ROW = 54
_WIDE = 28
"""Characters of a name on one line beside its bar."""
_SHARE = 0.46
"""Of the width, for each of the two panels of bars."""
_AREA = 900.0
"""Of the largest marker, in square pixels."""
_ACROSS, _PLOT, _LINE, _LETTER, _ASIDE = 640, 300, 14, 6.6, 7
"""Pixels: width of a narrow plot, its height, that of a label, a letter’s width, and how far a label stands beside its
marker."""
_SIDES = ((0, 1), (0, -1), (1, 0), (-1, 0))
"""Where a label may stand: above, below, right, left; the line that joins the best leaves markers sideways."""


def bars(plans: Sequence[ComparedPlan], base: int, palette: Palette) -> Figure:
    """Days and dollars of every plan, side by side, from its low end to its high end, the first plan on top.

    A thin line goes down from the end of the baseline's bar.
    """
    rows = list(range(len(plans)))[::-1]
    ticks = [_name(plan, i == base) for i, plan in enumerate(plans)]
    panels = (
        ("days", "time", "x", [0.0, _SHARE], palette.parameters),
        ("dollars", "cost", "x2", [1 - _SHARE, 1.0], palette.optimizer),
    )
    data: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for name, kind, at, domain, colour in panels:
        quantity = QUANTITY[name]
        intervals = [result(plan, quantity) for plan in plans]
        known = [interval.mid for interval in intervals if math.isfinite(interval.high)]
        scale = scale_for(kind, max(known, default=1.0))  # pyright: ignore[reportArgumentType]
        most = max((interval.high for interval in intervals if math.isfinite(interval.high)), default=1.0) / scale.size
        axes[f"xaxis{at[1:]}"] = axis(palette, scale.title, domain=domain, range=[0, 1.24 * most], tickformat=",~r")
        drawn = [i for i, interval in enumerate(intervals) if math.isfinite(interval.high)]
        data.append(_bars(name, at, [(rows[i], intervals[i]) for i in drawn], scale, colour, palette))
        for i, interval in enumerate(intervals):
            here = {"xref": at, "y": rows[i], "yref": "y", "xanchor": "left", "xshift": 6}
            if i in drawn:
                paper = {"bgcolor": palette.background, "borderpad": 1}
                annotations.append(
                    label(palette, shown(name, interval.mid), x=interval.high / scale.size, **paper, **here)
                )
            else:
                text = "no answer" if plans[i].answer is None else problem_text(plans[i], name, interval.mid)
                annotations.append(label(palette, text, palette.muted, x=0, **here))
        if base in drawn and len(plans) > 1:
            line = {"color": palette.muted, "width": 1, "dash": "dot"}
            shapes.append(rule(line, x=intervals[base].mid / scale.size, xref=at))
    return figure(
        palette,
        data,
        height=_ROW * len(plans) + 76,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        **axes,
        yaxis=rows_axis(palette, rows, ticks, 12, range=[-0.6, len(plans) - 0.4]),
        shapes=shapes,
        annotations=annotations,
    )


def _bars(name: str, at: str, rows: Sequence[Any], scale: AxisScale, colour: str, palette: Palette) -> dict[str, Any]:
    middle = [item.mid / scale.size for _, item in rows]
    return lying_bars(
        middle,
        [row for row, _ in rows],
        "%{customdata}",
        xaxis=at,
        width=0.42,
        marker={"color": colour},
        error_x=whiskers(
            [item.low / scale.size for _, item in rows],
            middle,
            [item.high / scale.size for _, item in rows],
            palette.text,
            thickness=1.2,
            width=5,
        ),
        customdata=[
            f"{shown(name, item.mid)} ({shown(name, item.low)} to {shown(name, item.high)})" for _, item in rows
        ],
    )


def _name(plan: ComparedPlan, base: bool) -> str:
    lines = textwrap.wrap(plan.short_name, _WIDE, max_lines=2, placeholder="…") or [""]
    text = "<br>".join(as_typed(line) for line in lines)
    return f"<b>{text}</b><br>baseline" if base else text


def days_against_dollars(plans: Sequence[ComparedPlan], base: int, palette: Palette) -> Figure:
    """Every plan by its days and dollars, its marker's area by its accelerators.

    Those that no other beats in both are filled and joined by a line; the rest are hollow.
    """
    points = list(zip(*(middles(plans, QUANTITY[name]) for name in ("days", "dollars")), strict=True))
    counts = middles(plans, QUANTITY["accelerators"])
    on = front(points)
    placed = [i for i, point in enumerate(points) if math.isfinite(sum(point))]
    days, rent = (
        scale_for(kind, max((points[i][at] for i in placed), default=1.0))
        for at, kind in enumerate(("time", "cost"))  # pyright: ignore[reportArgumentType]
    )
    most = max((counts[i] for i in placed), default=1.0)
    x, y = [points[i][0] / days.size for i in placed], [points[i][1] / rent.size for i in placed]
    joined = sorted((a, b) for i, a, b in zip(placed, x, y, strict=True) if on[i])
    wide, high = 1.15 * max(x, default=1.0), 1.2 * (max(y, default=1.0) or 1.0)
    radii = [math.sqrt(_AREA * max(counts[i] / most, 1 / 25)) / 2 for i in placed]
    names = [("<b>{}</b>, baseline" if i == base else "{}").format(_short(plans[i].short_name)) for i in placed]
    letters = [len(_short(plans[i].short_name)) + 10 * (i == base) for i in placed]
    sides = _sides([a / wide * _ACROSS for a in x], [b / high * _PLOT for b in y], radii, letters)
    notes = [
        label(
            palette,
            name,
            x=a,
            y=b,
            xanchor={1: "left", -1: "right", 0: "center"}[side],
            xshift=side * (radius + _ASIDE),
            yshift=up * (radius + _LINE),
            colour=palette.text if on[i] else palette.muted,
        )
        for i, a, b, radius, name, (side, up) in zip(placed, x, y, radii, names, sides, strict=True)
    ]
    return figure(
        palette,
        [
            marks(
                "lines",
                [a for a, _ in joined],
                [b for _, b in joined],
                "",
                line={"color": palette.accent, "width": 1, "dash": "dot"},
            ),
            marks(
                "markers",
                x,
                y,
                "%{customdata}",
                marker={
                    "size": [max(counts[i], most / 25) for i in placed],
                    "sizemode": "area",
                    "sizeref": most / _AREA * 2,
                    "symbol": ["circle" if on[i] else "circle-open" for i in placed],
                    "color": [palette.accent if on[i] else palette.muted for i in placed],
                    "line": {"width": 2},
                },
                customdata=[
                    f"{as_typed(plans[i].short_name)}: {shown('days', points[i][0])}, "
                    f"{shown('dollars', points[i][1])}, {shown('accelerators', counts[i])} accelerators"
                    for i in placed
                ],
                cliponaxis=False,
            ),
        ],
        height=380,
        margin={"l": 8, "r": 8, "t": 24, "b": 8},
        xaxis=axis(palette, days.title, range=[0, wide], tickformat=",~r"),
        yaxis=axis(palette, rent.title, range=[0, high], tickformat=",~r"),
        annotations=notes,
    )


Box: TypeAlias = "tuple[float, float, float, float]"
"""Left, right, bottom and top, in pixels."""


def _sides(
    x: Sequence[float], y: Sequence[float], radii: Sequence[float], letters: Sequence[int]
) -> list[tuple[int, int]]:
    """On which side of its marker each label stands: the first that is clear of all other markers and labels, and of
    the edges."""

    def beside(at: int, side: int, up: int) -> Box:
        wide, far = _LETTER * letters[at], radii[at] + _ASIDE
        middle = x[at] + side * (far + wide / 2)
        height = y[at] + up * (radii[at] + _LINE)
        return middle - wide / 2, middle + wide / 2, height - _LINE / 2, height + _LINE / 2

    def clear(box: Box, others: Sequence[Box]) -> bool:
        left, right, low, high = box
        inside = left >= 0 and right <= _ACROSS and low >= 0 and high <= _PLOT
        return inside and not any(left < b and a < right and low < d and c < high for a, b, c, d in others)

    markers = [(a - r, a + r, b - r, b + r) for a, b, r in zip(x, y, radii, strict=True)]
    chosen: list[tuple[int, int]] = []
    written: list[Box] = []
    for at in range(len(x)):
        others = [*markers[:at], *markers[at + 1 :], *written]
        side = next((s for s in _SIDES if clear(beside(at, *s), others)), _SIDES[0])
        written.append(beside(at, *side))
        chosen.append(side)
    return chosen


def _short(name: str) -> str:
    """A name on one line, as safe HTML."""
    most = 2 * _WIDE
    text = textwrap.shorten(name, most, placeholder="…")
    return as_typed(text if text.strip("…") else f"{name[: most - 1]}…")
