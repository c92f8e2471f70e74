"""Pictures of a whole space: every plan by time and memory, and the best plan as the cluster grows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.planning.sensitivity import ClusterResult
from core.search.request import Columns, LayoutResult
from core.units import format_duration, significant
from core.views.common.chart import MONO, SANS, Figure, axis, label, layout
from core.views.common.palette import Palette
from core.views.plan.text import by_6n
from core.views.search.names import KEYS, NAMES, PARTS, short

GIB = 2.0**30

_NAMED_ON_FRONT = 4
_KEYS = 64
"""Letters of the names of colours on a line."""


def colour(part: str, palette: Palette) -> str:
    """The colour of a part of a step."""
    role = PARTS[part][1]
    return palette.role(role) if role else palette.muted


def space(
    plans: Columns, front: Sequence[LayoutResult], here: LayoutResult | None, usable: float, palette: Palette
) -> Figure:
    """Every plan as a point, time against memory, in the colour of what takes most beside computing; the front.

    here: the plan in force, under a ring.
    """
    pace, memory = plans.pace, np.asarray(plans.memory) / GIB
    data: list[Figure] = []
    bounds = [part for part in np.unique(plans.bound) if len(pace)]
    for part in bounds:
        at = plans.bound == part
        name = NAMES[int(part)]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": PARTS[name][0],
                "x": pace[at],
                "y": memory[at],
                "text": _hover(plans, at),
                "marker": {"size": 5, "opacity": 0.55, "color": colour(name, palette)},
                "hovertemplate": "%{text}<br>%{x:.3~f} s per million tokens, %{y:.3~f} GiB; most beside computing: "
                f"{PARTS[name][0]}<extra></extra>",
            }
        )
    front = [result for result in front if result.pace <= max(pace)]
    data.append(_front(front, palette))
    if here:
        data.append(_ring(here, palette))
    named = [result.pace for result in (*front, *([here] if here else []))]
    low, high = min([*pace, *named]), max([*pace, *named])
    keys = _keys([NAMES[int(part)] for part in bounds], palette)
    return {
        "data": data,
        "layout": layout(
            palette,
            height=320,
            margin={"l": 8, "r": 16, "t": 34 + 18 * len(keys), "b": 8},
            xaxis=axis(palette, "seconds per million tokens", type="log", **_ticks(low, high)),
            yaxis=axis(palette, "GiB on the fullest accelerator", rangemode="tozero"),
            annotations=[
                *_over(keys, palette),
                *_on_front(front, high, palette),
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
    """What the dashed line is: all that one accelerator has."""
    return label(
        palette,
        f"memory capacity: {significant(usable / GIB, 3)} GiB",
        x=1,
        xref="paper",
        xanchor="right",
        y=usable / GIB,
        yanchor="bottom",
    )


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


def _hover(plans: Columns, at: np.ndarray) -> list[str]:
    return [
        f"{short(plans.at(place))}, ZeRO-{plans.at(place).zero}, {plans.at(place).micro_batch} at a time"
        for place in np.flatnonzero(at).tolist()
    ]


def _front(front: Sequence[LayoutResult], palette: Palette) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "front",
        "x": np.array([result.pace for result in front]),
        "y": np.array([float(result.memory.total) / GIB for result in front]),
        "text": [short(result.layout) for result in front],
        "line": {"color": palette.text, "width": 1.5, "shape": "hv"},
        "marker": {"size": 7, "color": palette.background, "line": {"color": palette.text, "width": 1.5}},
        "hovertemplate": "%{text}<br>%{x:.3~f} s per million tokens, %{y:.3~f} GiB; "
        "no plan is both faster and smaller<extra></extra>",
    }


def _ring(here: LayoutResult, palette: Palette) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "in force",
        "x": np.array([here.pace]),
        "y": np.array([float(here.memory.total) / GIB]),
        "text": [short(here.layout)],
        "marker": {"size": 16, "symbol": "circle-open", "color": palette.accent, "line": {"width": 3}},
        "hovertemplate": "in force: %{text}, %{x:.3~f} s per million tokens, %{y:.3~f} GiB<extra></extra>",
    }


_ROOM = 0.2
"""Share of the picture's width that a name takes."""


def _on_front(front: Sequence[LayoutResult], high: float, palette: Palette) -> list[Figure]:
    """Names of a few plans of the front: its ends, and some between them that lie apart and have room on their left.

    high: pace at the right end of the picture.
    """
    if not front:
        return []
    least = front[0].pace * (high / front[0].pace) ** _ROOM
    picks = [i for i in spread(len(front), _NAMED_ON_FRONT) if not i or front[i].pace >= least]
    # Of those with one name, which differ in what is not in it, the ends first and then the faster.
    by_name = {short(front[i].layout): i for i in sorted(picks, key=lambda i: (0 < i < len(front) - 1, i))[::-1]}
    picks = sorted(by_name.values())
    return [
        label(
            palette,
            short(front[i].layout),
            x=float(np.log10(front[i].pace)),
            y=float(front[i].memory.total) / GIB,
            # No plan lies left of the front and below it; only the first has no room on that side.
            xanchor="right" if i else "left",
            yanchor="top",
            xshift=-6 if i else 6,
            yshift=-4,
            bgcolor=palette.background,
            font={"family": MONO, "size": 11, "color": palette.text},
        )
        for i in picks
    ]


def spread(count: int, number: int) -> list[int]:
    """So many of ``count`` places, the first and the last among them, the others evenly between."""
    return sorted({round(float(at)) for at in np.linspace(0, count - 1, min(number, count))})


def _keys(parts: Sequence[str], palette: Palette) -> list[str]:
    """Lines of the words for the colours, each word once; more than one only where they are too many."""
    words = {KEYS.get(part, PARTS[part][0]): colour(part, palette) for part in parts}
    lines: list[list[str]] = []
    for word in words:
        if not lines or len(" · ".join((*lines[-1], word))) > _KEYS:
            lines.append([])
        lines[-1].append(word)
    return [" · ".join(f"<span style='color:{words[word]}'><b>{word}</b></span>" for word in line) for line in lines]


def _over(keys: Sequence[str], palette: Palette) -> list[Figure]:
    """The words for the colours, over the picture."""
    if not keys:
        return []
    text = "<br>".join(("Most beside computing:", *keys))
    place: Figure = {"x": 0, "xref": "paper", "xanchor": "left", "align": "left", "y": 1, "yref": "paper"}
    return [label(palette, text, **place, yanchor="bottom", yshift=8)]


def cluster_sizes(sizes: Sequence[ClusterResult], here: int, deadline: float, palette: Palette) -> Figure:
    """Days for all tokens against accelerators, as stairs: the best plan at each size, a perfect scaling, and the
    deadline.

    deadline: days; NaN where there is none.
    """
    counts = np.array([float(size.accelerators) for size in sizes])
    days = np.array([size.answer.middle.days for size in sizes])
    perfect = days[0] * counts[0] / counts
    named = [size for size in sizes if math.log2(size.accelerators / here).is_integer()]
    notes = [
        label(
            palette,
            f"{100 * by_6n(size.answer):.0f}% MFU",
            x=float(np.log10(size.accelerators)),
            y=float(np.log10(size.answer.middle.days)),
            yanchor="bottom",
            yshift=8,
            font={
                "family": MONO,
                "size": 11,
                "color": palette.accent if size.accelerators == here else palette.muted,
            },
        )
        for size in named
    ]
    shapes: list[Figure] = []
    if deadline == deadline and deadline > 0:
        line = {"color": palette.gradients, "width": 1.5, "dash": "dash"}
        shapes.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": deadline, "y1": deadline, "line": line})
        notes.append(
            label(
                palette,
                f"within {format_duration(86400 * deadline, 3)}",
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
                "name": "best plan",
                "x": counts,
                "y": days,
                "text": [short(size.layout) for size in sizes],
                "line": {"color": palette.fraction, "width": 2.5, "shape": "hv"},
                "marker": {
                    "size": [13 if size.accelerators == here else 8 for size in sizes],
                    "color": palette.fraction,
                },
                "hovertemplate": "%{x:,} accelerators: %{text}, %{y:.3~f} days<extra></extra>",
            },
        ],
        "layout": layout(
            palette,
            height=380,
            xaxis=axis(
                palette,
                "accelerators (dotted: twice as many, half the time)",
                type="log",
                tickvals=[size.accelerators for size in named],
                ticktext=[f"{size.accelerators:,}" for size in named],
            ),
            yaxis=axis(
                palette,
                "days for all tokens",
                type="log",
                range=[float(np.log10(low)), float(np.log10(high))],
                tickvals=marks,
                ticktext=[significant(mark, 3) for mark in marks],
            ),
            annotations=notes,
            shapes=shapes,
        ),
    }
