"""The schedule as a chart: runs by offer with ranges, maintenance, deadlines, and the power of all runs over time."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import Any

from core.dates import format_day
from core.messages import Message, message
from core.planning.decide.schedule import Schedule, ScheduledRun
from core.views.common.chart import Figure, as_typed, axis, figure, label, lying_bars, marks, rows_axis, rule, whiskers
from core.views.common.palette import Palette
from core.wording import Amount, format_value

_ROW, _POWER, _MARGINS = 46, 110, 96
"""Pixels of a row, of the panel of power, and of the axis and what stands over the picture."""

_TICKS = 10
_STEPS = (1, 2, 7, 14, 31, 92, 183, 366, 1830)


def gantt(schedule: Schedule, limit_watts: float, palette: Palette) -> Figure:
    """Return runs as bars on the days of the schedule, and the power of all of them under it.

    Args:
        limit_watts: Power limit of all runs together. NaN without one.
    """
    runs = schedule.runs
    rows = [f"{i}" for i in range(len(runs))]
    ends = [run.end for run in runs]
    deadlines = {run.deadline for run in runs if math.isfinite(run.deadline)}
    reach = 1.1 * max([end.high for end in ends] + [day for day in deadlines if day < 4 * schedule.ends.high])
    power, watts = schedule.power, schedule.peak_watts
    known = math.isfinite(watts)
    share = _POWER / (_POWER + _ROW * len(runs)) if known else 0.0
    data: list[dict[str, Any]] = [
        lying_bars(
            [run.end.mid - run.begin.mid for run in runs],
            rows,
            [_hover(schedule, run) for run in runs],
            base=[run.begin.mid for run in runs],
            width=0.5,
            marker={"color": palette.parameters},
        ),
        marks(
            "markers",
            [end.mid for end in ends],
            rows,
            "",
            marker={"color": palette.text, "size": 7, "symbol": "diamond"},
            error_x=whiskers(
                [end.low for end in ends],
                [end.mid for end in ends],
                [end.high for end in ends],
                palette.text,
                thickness=1.6,
                width=7,
            ),
        ),
    ]
    paused = [(row, run) for row, run in zip(rows, runs, strict=True) if run.maintenance]
    if paused:
        pattern = {"shape": "/", "size": 5, "fgcolor": palette.text, "bgcolor": palette.background}
        hover = message("decide.chart.maintenance")
        data.insert(
            1,
            lying_bars(
                [run.maintenance for _, run in paused],
                [row for row, _ in paused],
                hover,
                base=[run.end.mid - run.maintenance for _, run in paused],
                width=0.5,
                marker={
                    "color": palette.background,
                    "line": {"color": palette.muted, "width": 0.5},
                    "pattern": pattern,
                },
            ),
        )
    shapes = [
        rule({"color": palette.memory_bound, "width": 2, "dash": "dash"}, x=day)
        for day in sorted(deadlines)
        if day < reach
    ]
    named = [f"{as_typed(run.cell.run.name)}<br><span style='font-size:12px'>{_on(run)}</span>" for run in runs]
    ticks = _ticks(schedule.start, reach)
    quiet = axis(
        palette,
        message("decide.axis.days"),
        range=[0, reach],
        tickvals=[at for at, _ in ticks],
        ticktext=[text for _, text in ticks],
        anchor="y2" if known else "y",
    )
    options: dict[str, Any] = {
        "barmode": "overlay",
        "margin": {"l": 8, "r": 16, "t": 44, "b": 8},
        "xaxis": quiet,
        "yaxis": rows_axis(palette, rows, named, autorange="reversed", type="category", domain=[share, 1]),
        "shapes": shapes,
        "annotations": _labels(schedule, sorted(deadlines), reach, palette),
    }
    if known:
        data += [_steps(power, palette)]
        top = 1.25 * max(watts, 0.0 if math.isnan(limit_watts) else limit_watts)
        options["yaxis2"] = axis(
            palette, message("decide.axis.power"), domain=[0, share - 0.08], range=[0, top / 1e6], anchor="x", nticks=4
        )
        if not math.isnan(limit_watts):
            line = {"color": palette.memory_bound, "width": 1.5, "dash": "dot"}
            at = limit_watts / 1e6
            shapes.append({"type": "line", "x0": 0, "x1": reach, "y0": at, "y1": at, "yref": "y2", "line": line})
    return figure(palette, data, height=_MARGINS + _ROW * len(runs) + (_POWER if known else 0), **options)


def gantt_alt(schedule: Schedule) -> Message:
    """Return what the chart shows, for who does not see it."""
    runs = [
        message(
            "decide.chart.run",
            run=run.cell.run.name,
            first=_day(schedule, run.begin.mid),
            last=_day(schedule, run.end.mid),
        )
        for run in schedule.runs
    ]
    return message("decide.chart.alt", runs=runs)


def _on(run: ScheduledRun) -> str:
    return as_typed(f"{run.cell.accelerators:,} {run.cell.offer.accelerator}")


def _day(schedule: Schedule, at: float) -> str:
    return format_day(schedule.day(at))


def _hover(schedule: Schedule, run: ScheduledRun) -> str:
    days = format_value(*Amount((run.end.low - run.begin.low, run.end.high - run.begin.high), "days"))
    first, last = _day(schedule, run.begin.mid), _day(schedule, run.end.mid)
    said = message("decide.chart.hover", run=run.cell.run.name, first=first, last=last, days=days)
    return as_typed(said)


def _steps(power: tuple[tuple[float, float, float], ...], palette: Palette) -> Figure:
    """Power over time as steps."""
    x = [at for first, last, _ in power for at in (first, last)]
    y = [watts / 1e6 for *_, watts in power for _ in (0, 1)]
    line = {"color": palette.activations, "width": 2}
    return marks("lines", x, y, "%{y:.3g} MW", yaxis="y2", line=line, fill="tozeroy")


def _labels(schedule: Schedule, deadlines: list[float], reach: float, palette: Palette) -> list[Figure]:
    """The day of each end, the deadlines, and what bars and whiskers are."""
    mono = {"size": 12, "color": palette.text}
    notes = [
        label(
            palette,
            _day(schedule, run.end.mid),
            x=run.end.mid,
            y=f"{i}",
            xanchor="left",
            xshift=6,
            yshift=13,
            bgcolor=palette.background,
            font=mono,
        )
        for i, run in enumerate(schedule.runs)
    ]
    top = {"yref": "paper", "y": 1, "yanchor": "bottom"}
    said = message("decide.chart.key")
    quiet = {"size": 12, "color": palette.muted}
    notes.append(label(palette, said, x=0, xref="paper", xanchor="left", yshift=22, font=quiet, **top))
    for day in deadlines:
        if day < reach:
            said = message("decide.chart.deadline", day=_day(schedule, day - 1)).replace("**", "")
            notes.append(label(palette, f"<b>{said}</b>", x=day, xanchor="center", yshift=4, **top))
    return notes


def _ticks(start: date, reach: float) -> list[tuple[float, str]]:
    """Days of the axis with their labels: the first of a month where months are apart."""
    step = next((step for step in _STEPS if reach / step <= _TICKS), _STEPS[-1])
    if step < 31:
        days = [start + timedelta(days=at) for at in range(0, int(reach) + 1, step)]
    else:
        months, stride = (start.year * 12 + start.month, max(1, round(step / 30.5)))
        firsts = range(months + (-months + 1) % stride, months + int(reach / 28) + 2, stride)
        days = [date((n - 1) // 12, (n - 1) % 12 + 1, 1) for n in firsts if n > 0]
    shown = [((day - start).days, day) for day in days]
    years = step >= 31
    return [(float(at), format_day(day, years) if not years else _month(day)) for at, day in shown if 0 <= at <= reach]


def _month(day: date) -> str:
    return format_day(day).partition(" ")[2]
