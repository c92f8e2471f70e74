"""The schedule as a chart: runs with ranges, maintenance, and deadlines, and the power of all runs over time."""

from __future__ import annotations

import math
from datetime import datetime, time, timedelta
from typing import Any

from core.dates import format_day
from core.messages import Message, message
from core.planning.decide.schedule import Schedule, ScheduledRun
from core.views.common.chart import (
    Figure,
    as_typed,
    axis,
    figure,
    label,
    lying_bars,
    marks,
    over,
    rows_axis,
    rule,
)  # fmt: skip
from core.views.common.palette import Palette

_ROW, _POWER, _MARGINS = 46, 110, 96
"""Pixels of a row, of the panel of power, and of the axis and what stands over the picture."""

_DAY_MS = 86_400_000
"""Milliseconds of a day, in which plotly counts lengths on an axis of dates."""


def gantt(schedule: Schedule, limit_watts: float, palette: Palette) -> Figure:
    """Return runs as bars over time, and the power of all of them under it.

    Args:
        limit_watts: Power limit of all runs together. NaN without one.
    """
    runs, watts = schedule.runs, schedule.peak_watts
    rows = [f"{i}" for i in range(len(runs))]
    deadlines = sorted({run.deadline for run in runs if run.deadline < 4 * schedule.ends.high})
    reach = 1.1 * max([schedule.ends.high, *deadlines])
    known = math.isfinite(watts)
    share = _POWER / (_POWER + _ROW * len(runs)) if known else 0.0
    named = [f"{as_typed(run.cell.run.name)}<br><span style='font-size:12px'>{_on(run)}</span>" for run in runs]
    range_ = [_moment(schedule, 0.0), _moment(schedule, reach)]
    options: dict[str, Any] = {
        "barmode": "overlay",
        "margin": {"l": 8, "r": 16, "t": 44, "b": 8},
        "xaxis": axis(
            palette, message("decide.axis.days"), type="date", range=range_, nticks=9, anchor="y2" if known else "y"
        ),
        "yaxis": rows_axis(palette, rows, named, autorange="reversed", type="category", domain=[share, 1]),
        "shapes": [_line(palette, "dash", x=_moment(schedule, day)) for day in deadlines],
        "annotations": _labels(schedule, deadlines, palette),
    }
    data = _bars(schedule, rows, palette)
    if known:
        data.append(_steps(schedule, palette))
        top = 1.25 * max(watts, 0.0 if math.isnan(limit_watts) else limit_watts) / 1e6
        title = message("decide.axis.power")
        options["yaxis2"] = axis(palette, title, domain=[0, share - 0.08], range=[0, top], nticks=4)
        if not math.isnan(limit_watts):
            options["shapes"].append({**_line(palette, "dot", y=limit_watts / 1e6), "yref": "y2"})
    return figure(palette, data, height=_MARGINS + _ROW * len(runs) + (_POWER if known else 0), **options)


def gantt_alt(schedule: Schedule) -> Message:
    """Return the alternative text of the chart."""
    return message("decide.chart.alt", runs=[_said(schedule, run) for run in schedule.runs])


def _said(schedule: Schedule, run: ScheduledRun) -> Message:
    first, last = _day(schedule, run.begin.mid), _day(schedule, run.end.mid)
    return message("decide.chart.run", run=run.cell.run.name, first=first, last=last)


def _on(run: ScheduledRun) -> str:
    return as_typed(f"{run.cell.accelerators:,} {run.cell.offer.accelerator}")


def _day(schedule: Schedule, at: float) -> str:
    return format_day(schedule.day(at))


def _moment(schedule: Schedule, at: float) -> str:
    """Return a moment in days from the start, as plotly has dates."""
    return (datetime.combine(schedule.start, time()) + timedelta(days=at)).isoformat(timespec="minutes")


def _line(palette: Palette, dash: str, **place: Any) -> Figure:
    return rule({"color": palette.memory_bound, "width": 2, "dash": dash}, **place)


def _bars(schedule: Schedule, rows: list[str], palette: Palette) -> list[Figure]:
    """Return runs, the hours of their maintenance added up at their ends, and the ranges of these."""
    runs, ends = schedule.runs, [run.end for run in schedule.runs]
    paused = [run.maintenance for run in runs]
    pattern = {"shape": "/", "size": 5, "fgcolor": palette.text, "bgcolor": palette.background}
    hatched = {"color": palette.background, "line": {"color": palette.muted, "width": 0.5}, "pattern": pattern}
    says = [as_typed(_said(schedule, run)) for run in runs]

    def bars(days: list[float], starts: list[float], hover: str | list[str], marker: Figure) -> Figure:
        base = [_moment(schedule, at) for at in starts]
        return lying_bars([_DAY_MS * length for length in days], rows, hover, base=base, width=0.5, marker=marker)

    lengths = [run.end.mid - run.begin.mid for run in runs]
    drawn = [bars(lengths, [run.begin.mid for run in runs], says, {"color": palette.parameters})]
    if any(paused):
        starts = [end.mid - days for end, days in zip(ends, paused, strict=True)]
        drawn.append(bars(paused, starts, message("decide.chart.maintenance"), hatched))
    for row, end in zip(rows, ends, strict=True):  # plotly draws no error bars on an axis of dates
        at = [_moment(schedule, day) for day in (end.low, end.mid, end.high)]
        marker = {"color": palette.text, "size": 9, "symbol": ["line-ns-open", "diamond", "line-ns-open"]}
        drawn.append(
            marks("lines+markers", at, [row] * 3, "", marker=marker, line={"color": palette.text, "width": 1.6})
        )
    return drawn


def _steps(schedule: Schedule, palette: Palette) -> Figure:
    """Return power over time as steps."""
    x = [_moment(schedule, at) for first, last, _ in schedule.power for at in (first, last)]
    y = [watts / 1e6 for *_, watts in schedule.power for _ in (0, 1)]
    line = {"color": palette.activations, "width": 2}
    return marks("lines", x, y, "%{y:.3g} MW", yaxis="y2", line=line, fill="tozeroy")


def _labels(schedule: Schedule, deadlines: list[float], palette: Palette) -> list[Figure]:
    """Return the day of each end, the deadlines, and what bars and whiskers are."""
    beside = {"xanchor": "left", "xshift": 6, "yshift": 13, "bgcolor": palette.background}
    notes = [
        label(palette, _day(schedule, run.end.mid), x=_moment(schedule, run.end.mid), y=f"{i}", **beside)
        for i, run in enumerate(schedule.runs)
    ]
    top = {"yref": "paper", "y": 1, "yanchor": "bottom", "xanchor": "center", "yshift": 4}
    for day in deadlines:
        said = message("decide.chart.deadline", day=_day(schedule, day - 1))
        notes.append(label(palette, f"<b>{said}</b>", x=_moment(schedule, day), **top))
    return [*notes, over(palette, message("decide.chart.key"), 22)]
