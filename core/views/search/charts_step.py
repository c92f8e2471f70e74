"""Pictures of one step: its parts as a waterfall, and its pipeline in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.messages import message
from core.search.placement import Timeline
from core.step_time.running import PARTS, StepTime
from core.views.common.chart import MONO, Figure, axis, band, colored, figure, label, lying_bars, over
from core.views.common.palette import Palette
from core.views.search.names import part_color, part_name
from core.wording import percent

_ROW, _PIPE_ROW = 27, 22
_SLIVER = 1e-4
_MARGIN = {"l": 8, "r": 16, "t": 34, "b": 8}


def shown_parts(step: StepTime) -> list[tuple[str, float]]:
    """Return the parts of a step that take any time worth a row, in the order in which they stand in it."""
    whole = float(step.total)
    named = ((name, float(getattr(step, name))) for name in PARTS)
    return [(name, seconds) for name, seconds in named if seconds > _SLIVER * whole]


def waterfall(step: StepTime, palette: Palette, *, low: float, high: float) -> Figure:
    """Return a staircase over the seconds of a step: each part begins where the one before it ends; the range at its
    end."""
    parts = shown_parts(step)
    whole = float(step.total)
    seconds = np.array([value for _, value in parts])
    starts = np.concatenate([[0.0], np.cumsum(seconds)[:-1]])
    names = [part_name(name) for name, _ in parts]
    shares = [percent(value / whole) for _, value in parts]
    ticks = [
        f"{name} <span style='font-family:{MONO};font-size:12px'> {share}</span>"
        for name, share in zip(names, shares, strict=True)
    ]
    above = {"xanchor": "right", "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 4}
    look = {"tickfont": {"size": 13, "color": palette.text}, "showgrid": False, "ticksuffix": "  "}
    return figure(
        palette,
        [
            lying_bars(
                seconds[::-1],
                names[::-1],
                "%{y}: %{x:.3~f} s, %{customdata}",
                base=starts[::-1],
                marker={"color": [part_color(name, palette) for name, _ in parts][::-1]},
                customdata=shares[::-1],
            )
        ],
        height=_ROW * len(parts) + 92,
        margin=_MARGIN,
        bargap=0.4,
        xaxis=axis(palette, message("search.chart.seconds"), range=[0, max(high, whole) * 1.03]),
        yaxis=axis(palette, "", tickvals=names, ticktext=ticks, **look),
        shapes=[band(low, high, palette.muted, opacity=0.14)],
        annotations=[label(palette, message("search.chart.range"), x=high, **above)],
    )


def pipeline(line: Timeline, palette: Palette) -> Figure:
    """Return the forward and backward passes of each stage over a step. Later chunks of a stage are paler."""
    rows = [message("search.stage", stage=stage + 1.0) for stage in range(line.stages)]
    few = line.stages * line.micro_batches <= 160 and not line.chunk.any()
    data = [
        _passes(line, rows, back, chunk, few, palette)
        for back in (False, True)
        for chunk in range(int(line.chunk.max()) + 1)
    ]
    tail = message("search.chart.tail")
    words = [
        (message("search.chart.forward"), palette.fraction),
        (message("search.chart.backward"), palette.gradients),
        (message("search.chart.gaps"), palette.muted),
    ]
    if line.tail > 0:
        words.append((tail, palette.optimizer))
        data.append(
            lying_bars(
                np.full(line.stages, line.tail),
                rows,
                f"{tail}: %{{x:.3~f}} s",
                name=tail,
                base=np.full(line.stages, line.length),
                width=0.8,
                marker={"color": palette.optimizer},
            )
        )
    parts = rows[:: max(1, line.stages // 16)]
    return figure(
        palette,
        data,
        height=_PIPE_ROW * max(4, line.stages) + 96,
        margin=_MARGIN,
        barmode="overlay",
        xaxis=axis(palette, message("search.chart.seconds"), range=[0, (line.length + line.tail) * 1.01]),
        yaxis=axis(palette, "", tickvals=parts, autorange="reversed", showgrid=False, ticksuffix="  "),
        annotations=[over(palette, colored(words), 6)],
    )


def _passes(line: Timeline, rows: Sequence[str], back: bool, chunk: int, few: bool, palette: Palette) -> Figure:
    at = (line.backward == back) & (line.chunk == chunk)
    numbers = [str(micro + 1) for micro in line.micro_batch[at].tolist()]
    chunks = int(line.chunk.max()) + 1
    kind = message("search.chart.backward" if back else "search.chart.forward")
    return lying_bars(
        line.end[at] - line.start[at],
        [rows[stage] for stage in line.stage[at].tolist()],
        f"%{{y}}, {kind} %{{customdata}}: %{{x:.3~f}} s",
        name=kind,
        base=line.start[at],
        width=0.8,
        text=numbers if few else None,
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"family": MONO, "size": 10, "color": palette.background},
        customdata=numbers,
        opacity=1 - 0.6 * chunk / max(1, chunks),
        marker={
            "color": palette.gradients if back else palette.fraction,
            "line": {"color": palette.background, "width": 0.6 if few else 0.2},
        },
    )
