"""Pictures of the search space by time and memory, and of the plan as the cluster grows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.messages import message
from core.planning.sensitivity import ClusterResult
from core.search.request import Columns, LayoutResult
from core.step_time.running import PARTS
from core.units import significant
from core.views.common.chart import MONO, SANS, Figure, axis, label, layout
from core.views.common.palette import Palette
from core.views.search.names import key_name, part_color, part_name, short_layout

GIB = 2.0**30

_KEYS = 64
"""Letters of the names of colors on a line."""


def space(
    plans: Columns, front: Sequence[LayoutResult], here: LayoutResult | None, usable: float, palette: Palette
) -> Figure:
    """Return each layout as a point, time against memory, in the color of its largest overhead, and the Pareto front.

    here: the layout of the plan, under a ring.
    """
    pace, memory = plans.pace, np.asarray(plans.memory) / GIB
    data: list[Figure] = []
    bounds = [part for part in np.unique(plans.bound) if len(pace)]
    for part in bounds:
        at = plans.bound == part
        name = PARTS[int(part)]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": part_name(name),
                "x": pace[at],
                "y": memory[at],
                "text": _hover(plans, at),
                "marker": {"size": 5, "opacity": 0.55, "color": part_color(name, palette)},
                "hovertemplate": f"%{{text}}<br>{_POINT}, {part_name(name)}<extra></extra>",
            }
        )
    front = [result for result in front if result.pace <= max(pace)]
    data.append(_front(front, palette))
    if here:
        data.append(_ring(here, palette))
    named = [result.pace for result in (*front, *([here] if here else []))]
    low, high = min([*pace, *named]), max([*pace, *named])
    keys = _keys([PARTS[int(part)] for part in bounds], palette)
    return {
        "data": data,
        "layout": layout(
            palette,
            height=320,
            margin={"l": 8, "r": 16, "t": 34 + 18 * len(keys), "b": 8},
            xaxis=axis(palette, message("search.chart.pace"), type="log", **_ticks(low, high)),
            yaxis=axis(palette, message("search.chart.memory"), rangemode="tozero"),
            annotations=[
                *_over(keys, palette),
                *_ends(front, palette),
                _full(usable, palette),
            ],
            shapes=[
                {
                    "type": "line",
                    "xref": "paper",
                    "x0": 0,
                    "x1": 1,
                    "y0": usable / GIB,
                    "y1": usable / GIB,
                    "line": {"color": palette.text, "width": 2, "dash": "dash"},
                }
            ],
        ),
    }


def _full(usable: float, palette: Palette) -> Figure:
    """The label of the dashed line at the capacity of one accelerator."""
    text = message("search.chart.capacity", capacity=usable)
    return label(palette, text, x=1, xref="paper", xanchor="right", y=usable / GIB, yanchor="bottom")


def _ticks(low: float, high: float) -> Figure:
    """Round ticks of a log axis of times that runs over a part of a decade or over several."""
    low, high = low / 1.04, high * 1.08
    if high / low > 5:
        inside = [m * 10.0**k for k in range(-6, 9) for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    else:
        wide = (high - low) / 6
        base = 10.0 ** math.floor(math.log10(wide))
        step = next(m * base for m in (1, 2, 5, 10) if m * base >= wide)
        inside = [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return {
        "range": [math.log10(low), math.log10(high)],
        "tickvals": inside,
        "ticktext": [significant(mark, 3) for mark in inside],
    }


_POINT = "%{x:.3~f} s, %{y:.3~f} GiB"


def _hover(plans: Columns, at: np.ndarray) -> list[str]:
    layouts = map(plans.at, np.flatnonzero(at).tolist())
    return [f"{short_layout(item)} ZeRO-{item.zero} × {item.micro_batch}" for item in layouts]


def _front(front: Sequence[LayoutResult], palette: Palette) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "front",
        "x": np.array([result.pace for result in front]),
        "y": np.array([float(result.memory.total) / GIB for result in front]),
        "text": [short_layout(result.layout) for result in front],
        "line": {"color": palette.text, "width": 1.5, "shape": "hv"},
        "marker": {"size": 7, "color": palette.background, "line": {"color": palette.text, "width": 1.5}},
        "hovertemplate": f"%{{text}}<br>{_POINT}, {message('search.chart.pareto')}<extra></extra>",
    }


def _ring(here: LayoutResult, palette: Palette) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "plan",
        "x": np.array([here.pace]),
        "y": np.array([float(here.memory.total) / GIB]),
        "text": [short_layout(here.layout)],
        "marker": {"size": 16, "symbol": "circle-open", "color": palette.accent, "line": {"width": 3}},
        "hovertemplate": f"{message('search.chart.plan')}: %{{text}}<br>{_POINT}<extra></extra>",
    }


def _ends(front: Sequence[LayoutResult], palette: Palette) -> list[Figure]:
    """The names of the fastest and of the smallest layout of the front; of the fastest where both have one name."""
    ends = {short_layout(result.layout): result for result in (front[-1], front[0])}
    return [
        label(
            palette,
            name,
            x=float(np.log10(result.pace)),
            y=float(result.memory.total) / GIB,
            # No layout is left of the front and below it. Only the fastest has no room on that side.
            xanchor="left" if result is front[0] else "right",
            yanchor="top",
            xshift=6 if result is front[0] else -6,
            yshift=-4,
            bgcolor=palette.background,
            font={"family": MONO, "size": 11, "color": palette.text},
        )
        for name, result in ends.items()
    ]


def _keys(parts: Sequence[str], palette: Palette) -> list[str]:
    """The names of the colors, each once, in lines."""
    words = {str(key_name(part)): part_color(part, palette) for part in parts}
    lines: list[list[str]] = []
    for word in words:
        if not lines or len(" · ".join((*lines[-1], word))) > _KEYS:
            lines.append([])
        lines[-1].append(word)
    return [" · ".join(f"<span style='color:{words[word]}'><b>{word}</b></span>" for word in line) for line in lines]


def _over(keys: Sequence[str], palette: Palette) -> list[Figure]:
    """The names of the colors, over the picture."""
    text = "<br>".join((message("search.chart.overhead"), *keys))
    place: Figure = {"x": 0, "xref": "paper", "xanchor": "left", "align": "left", "y": 1, "yref": "paper"}
    return [label(palette, text, **place, yanchor="bottom", yshift=8)] if keys else []


def cluster_sizes(sizes: Sequence[ClusterResult], here: int, deadline: float, palette: Palette) -> Figure:
    """Return the end-to-end time against accelerators as a staircase, with perfect scaling and the deadline.

    deadline: Days, NaN without one.
    """
    counts = np.array([float(size.accelerators) for size in sizes])
    days = np.array([size.answer.middle.days for size in sizes])
    perfect = days[0] * counts[0] / counts
    named = [size for size in sizes if math.log2(size.accelerators / here).is_integer()]
    notes: list[Figure] = []
    shapes: list[Figure] = []
    if deadline > 0:
        line = {"color": palette.gradients, "width": 1.5, "dash": "dash"}
        shapes.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": deadline, "y1": deadline, "line": line})
        notes.append(
            label(
                palette,
                message("search.chart.deadline", days=deadline),
                x=1,
                xref="paper",
                xanchor="right",
                y=float(np.log10(deadline)),
                yanchor="bottom",
                font={"family": SANS, "size": 12, "color": palette.gradients},
            )
        )
    ends = [*days, *perfect, *([deadline] if shapes else [])]
    low, high = min(ends) / 1.3, max(ends) * 1.5
    marks = [m * 10.0**k for k in range(-4, 6) for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": "perfect scaling",
                "x": counts,
                "y": perfect,
                "line": {"color": palette.muted, "width": 1.5, "dash": "dot"},
                "hoverinfo": "skip",
            },
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": "plan",
                "x": counts,
                "y": days,
                "text": [short_layout(size.layout) for size in sizes],
                "line": {"color": palette.fraction, "width": 2.5, "shape": "hv"},
                "marker": {
                    "size": [13 if size.accelerators == here else 8 for size in sizes],
                    "color": palette.fraction,
                },
                "hovertemplate": "%{x:,}: %{text}<br>%{y:.3~f} d<extra></extra>",
            },
        ],
        "layout": layout(
            palette,
            height=380,
            xaxis=axis(
                palette,
                message("search.chart.accelerators"),
                type="log",
                tickvals=[size.accelerators for size in named],
                ticktext=[f"{size.accelerators:,}" for size in named],
            ),
            yaxis=axis(
                palette,
                message("search.chart.days"),
                type="log",
                range=[float(np.log10(low)), float(np.log10(high))],
                tickvals=marks,
                ticktext=[significant(mark, 3) for mark in marks],
            ),
            annotations=notes,
            shapes=shapes,
        ),
    }
