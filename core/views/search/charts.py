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
from core.views.common.chart import MONO, Figure, axis, colored, figure, label, marks, over, round_ticks, rule
from core.views.common.palette import Palette
from core.views.search.names import key_name, part_color, part_name, short_layout

GIB = 2.0**30

_KEYS = 64
"""Letters of the names of colors on a line."""

_AT_RIGHT = {"x": 1, "xref": "paper", "xanchor": "right", "yanchor": "bottom"}


def space(
    plans: Columns, front: Sequence[LayoutResult], here: LayoutResult | None, usable: float, palette: Palette
) -> Figure:
    """Return each layout as a point, time against memory, in the color of its largest overhead, and the Pareto front.

    here: the layout of the plan, under a ring.
    """
    pace, memory = plans.pace, np.asarray(plans.memory) / GIB
    bounds = {PARTS[int(part)]: plans.bound == part for part in np.unique(plans.bound)}
    data = [
        marks(
            "markers",
            pace[at],
            memory[at],
            f"%{{text}}<br>{_POINT}, {part_name(name)}",
            name=part_name(name),
            text=_hover(plans, at),
            marker={"size": 5, "opacity": 0.55, "color": part_color(name, palette)},
        )
        for name, at in bounds.items()
    ]
    front = [result for result in front if result.pace <= max(pace)]
    line = {"color": palette.text, "width": 1.5}
    hollow = {"size": 7, "color": palette.background, "line": line}
    said = f"%{{text}}<br>{_POINT}, {message('search.chart.pareto')}"
    data.append(_results("lines+markers", front, said, name="front", line={**line, "shape": "hv"}, marker=hollow))
    if here:
        ring = {"size": 16, "symbol": "circle-open", "color": palette.accent, "line": {"width": 3}}
        said = f"{message('search.chart.plan')}: %{{text}}<br>{_POINT}"
        data.append(_results("markers", [here], said, name="plan", marker=ring))
    named = [result.pace for result in (*front, *([here] if here else []))]
    keys = _keys(list(bounds), palette)
    full = message("search.chart.capacity", capacity=usable)
    return figure(
        palette,
        data,
        height=320,
        margin={"l": 8, "r": 16, "t": 34 + 18 * len(keys), "b": 8},
        xaxis=axis(palette, message("search.chart.pace"), **_ticks(min([*pace, *named]), max([*pace, *named]))),
        yaxis=axis(palette, message("search.chart.memory"), rangemode="tozero"),
        annotations=[
            *([over(palette, "<br>".join((message("search.chart.overhead"), *keys)), 8, align="left")] if keys else []),
            *_ends(front, palette),
            label(palette, full, y=usable / GIB, **_AT_RIGHT),
        ],
        shapes=[rule({"color": palette.text, "width": 2, "dash": "dash"}, y=usable / GIB)],
    )


def _ticks(low: float, high: float) -> Figure:
    """Round ticks of a log axis of times that runs over a part of a decade or over several."""
    low, high = low / 1.04, high * 1.08
    ticks = round_ticks(low, high)
    if high / low > 5:
        return ticks
    wide = (high - low) / 6
    base = 10.0 ** math.floor(math.log10(wide))
    step = next(m * base for m in (1, 2, 5, 10) if m * base >= wide)
    inside = [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return {**ticks, "tickvals": inside, "ticktext": [significant(mark, 3) for mark in inside]}


_POINT = "%{x:.3~f} s, %{y:.3~f} GiB"


def _hover(plans: Columns, at: np.ndarray) -> list[str]:
    layouts = map(plans.at, np.flatnonzero(at).tolist())
    return [f"{short_layout(item)} ZeRO-{item.zero} × {item.micro_batch}" for item in layouts]


def _results(mode: str, results: Sequence[LayoutResult], hover: str, **options: object) -> Figure:
    x, y = ([result.pace for result in results], [float(result.memory.total) / GIB for result in results])
    text = [short_layout(result.layout) for result in results]
    return marks(mode, np.array(x), np.array(y), hover, text=text, **options)


def _ends(front: Sequence[LayoutResult], palette: Palette) -> list[Figure]:
    """Return the names of the fastest and of the smallest layout of the front; of the fastest where both have one
    name."""
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
    """Return the names of the colors, each once, in lines."""
    words = {str(key_name(part)): part_color(part, palette) for part in parts}
    lines: list[list[str]] = []
    for word in words:
        if not lines or len(" · ".join((*lines[-1], word))) > _KEYS:
            lines.append([])
        lines[-1].append(word)
    return [colored([(word, words[word]) for word in line]) for line in lines]


def cluster_sizes(sizes: Sequence[ClusterResult], here: int, deadline: float, palette: Palette) -> Figure:
    """Return the end-to-end time against accelerators as a staircase, with perfect scaling and the deadline.

    deadline: Days, NaN without one.
    """
    counts = np.array([float(size.accelerators) for size in sizes])
    days = np.array([size.answer.middle.days for size in sizes])
    perfect = days[0] * counts[0] / counts
    named = [size.accelerators for size in sizes if math.log2(size.accelerators / here).is_integer()]
    due, red = deadline > 0, palette.gradients
    ends = [*days, *perfect, *([deadline] if due else [])]
    said = message("search.chart.deadline", days=deadline)
    return figure(
        palette,
        [
            marks(
                "lines",
                counts,
                perfect,
                "",
                name="perfect scaling",
                line={"color": palette.muted, "width": 1.5, "dash": "dot"},
            ),
            marks(
                "lines+markers",
                counts,
                days,
                "%{x:,}: %{text}<br>%{y:.3~f} d",
                name="plan",
                text=[short_layout(size.layout) for size in sizes],
                line={"color": palette.fraction, "width": 2.5, "shape": "hv"},
                marker={
                    "size": [13 if size.accelerators == here else 8 for size in sizes],
                    "color": palette.fraction,
                },
            ),
        ],
        height=380,
        xaxis=axis(
            palette,
            message("search.chart.accelerators"),
            type="log",
            tickvals=named,
            ticktext=[f"{size:,}" for size in named],
        ),
        yaxis=axis(palette, message("search.chart.days"), **round_ticks(min(ends) / 1.3, max(ends) * 1.5)),
        annotations=[label(palette, said, red, y=math.log10(deadline), **_AT_RIGHT)] if due else [],
        shapes=[rule({"color": red, "width": 1.5, "dash": "dash"}, y=deadline)] if due else [],
    )
