"""Pictures of one step: its parts as a waterfall, and its pipeline in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.messages import message
from core.search.placement import Timeline
from core.step_time.running import PARTS, StepTime
from core.views.common.chart import MONO, Figure, axis, label, layout
from core.views.common.palette import Palette
from core.views.search.names import part_color, part_name
from core.wording import percent

_ROW = 27
_SLIVER = 1e-4


def shown_parts(step: StepTime) -> list[tuple[str, float]]:
    """The parts of a step that take any time worth a row, in the order in which they stand in it."""
    whole = float(step.total)
    named = ((name, float(getattr(step, name))) for name in PARTS)
    return [(name, seconds) for name, seconds in named if seconds > _SLIVER * whole]


def waterfall(step: StepTime, palette: Palette, *, low: float, high: float) -> Figure:
    """A staircase over the seconds of a step: each part begins where the one before it ends; the range at its end."""
    parts = shown_parts(step)
    whole = float(step.total)
    seconds = np.array([value for _, value in parts])
    starts = np.concatenate([[0.0], np.cumsum(seconds)[:-1]])
    names = [part_name(name) for name, _ in parts]
    ticks = [
        f"{part_name(name)} <span style='font-family:{MONO};font-size:12px'> {percent(value / whole)}</span>"
        for name, value in parts
    ]
    reach = max(high, whole) * 1.03
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "y": names[::-1],
                "x": seconds[::-1],
                "base": starts[::-1],
                "marker": {"color": [part_color(name, palette) for name, _ in parts][::-1]},
                "customdata": [percent(value / whole) for _, value in parts][::-1],
                "hovertemplate": "%{y}: %{x:.3~f} s, %{customdata}<extra></extra>",
            }
        ],
        "layout": layout(
            palette,
            height=_ROW * len(parts) + 92,
            margin={"l": 8, "r": 16, "t": 34, "b": 8},
            bargap=0.4,
            xaxis=axis(palette, message("search.chart.seconds"), range=[0, reach]),
            yaxis=axis(
                palette,
                "",
                tickvals=names,
                ticktext=ticks,
                tickfont={"size": 13, "color": palette.text},
                showgrid=False,
                ticksuffix="  ",
            ),
            shapes=[_band(low, high, palette)],
            annotations=[
                label(
                    palette,
                    message("search.chart.range"),
                    x=high,
                    xanchor="right",
                    y=1,
                    yref="paper",
                    yanchor="bottom",
                    yshift=4,
                )
            ],
        ),
    }


def _band(low: float, high: float, palette: Palette) -> Figure:
    """The range of the step time, behind the bars."""
    return {
        "type": "rect",
        "x0": low,
        "x1": high,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "fillcolor": palette.muted,
        "opacity": 0.14,
        "line": {"width": 0},
        "layer": "below",
    }


_PIPE_ROW = 22


def pipeline(line: Timeline, palette: Palette) -> Figure:
    """Return the forward and backward passes of each stage over a step. Later chunks of a stage are paler."""
    rows = [message("search.stage", stage=stage + 1.0) for stage in range(line.stages)]
    few = line.stages * line.micro_batches <= 160 and not line.chunk.any()
    data = [
        _passes(line, rows, back, chunk, few, palette)
        for back in (False, True)
        for chunk in range(int(line.chunk.max()) + 1)
    ]
    if line.tail > 0:
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": message("search.chart.tail"),
                "y": rows,
                "x": np.full(line.stages, line.tail),
                "base": np.full(line.stages, line.length),
                "width": 0.8,
                "marker": {"color": palette.optimizer},
                "hovertemplate": f"{message('search.chart.tail')}: %{{x:.3~f}} s<extra></extra>",
            }
        )
    every = max(1, line.stages // 16)
    parts = rows[::every]
    words = [
        (message("search.chart.forward"), palette.fraction),
        (message("search.chart.backward"), palette.gradients),
        (message("search.chart.gaps"), palette.muted),
        (message("search.chart.tail"), palette.optimizer),
    ]
    return {
        "data": data,
        "layout": layout(
            palette,
            height=_PIPE_ROW * max(4, line.stages) + 96,
            margin={"l": 8, "r": 16, "t": 34, "b": 8},
            barmode="overlay",
            xaxis=axis(palette, message("search.chart.seconds"), range=[0, (line.length + line.tail) * 1.01]),
            yaxis=axis(palette, "", tickvals=parts, autorange="reversed", showgrid=False, ticksuffix="  "),
            annotations=[_colored(words if line.tail > 0 else words[:3], palette)],
        ),
    }


def _colored(words: Sequence[tuple[str, str]], palette: Palette) -> Figure:
    text = " · ".join(f"<span style='color:{tint}'><b>{word}</b></span>" for word, tint in words)
    return label(palette, text, x=0, xref="paper", xanchor="left", y=1, yref="paper", yanchor="bottom", yshift=6)


def _passes(line: Timeline, rows: Sequence[str], back: bool, chunk: int, few: bool, palette: Palette) -> Figure:
    at = (line.backward == back) & (line.chunk == chunk)
    numbers = [str(micro + 1) for micro in line.micro_batch[at].tolist()]
    chunks = int(line.chunk.max()) + 1
    kind = message("search.chart.backward" if back else "search.chart.forward")
    return {
        "type": "bar",
        "orientation": "h",
        "name": kind,
        "y": [rows[stage] for stage in line.stage[at].tolist()],
        "x": line.end[at] - line.start[at],
        "base": line.start[at],
        "width": 0.8,
        "text": numbers if few else None,
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "textfont": {"family": MONO, "size": 10, "color": palette.background},
        "customdata": numbers,
        "opacity": 1 - 0.6 * chunk / max(1, chunks),
        "marker": {
            "color": palette.gradients if back else palette.fraction,
            "line": {"color": palette.background, "width": 0.6 if few else 0.2},
        },
        "hovertemplate": f"%{{y}}, {kind} %{{customdata}}: %{{x:.3~f}} s<extra></extra>",
    }
