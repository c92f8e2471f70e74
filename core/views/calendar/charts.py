"""Picture of a calendar: runs as bars by their pools, the range of their ends, maintenance, the deadline."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np

from core.dates import format_day
from core.planning.calendar.dates import months_from, quarter
from core.planning.calendar.schedule import Schedule, ScheduledRun
from core.units import format_count
from core.views.calendar.text import about
from core.views.common.chart import MONO, Figure, as_typed, axis, label, layout
from core.views.common.palette import Palette

_ROW, _LOW_ROW = 48, 27
"""Pixels of a run’s row, and of one of many."""

_FEW = 3
"""Runs whose names stand over their accelerators; those of more stand beside them, so that all are seen at once."""

_TICKS = 11
_STEPS = (1, 3, 6, 12, 24, 60, 120, 240)
_LETTERS = 22
"""Characters of a run's name that stand beside its bar."""


def calendar(s: Schedule, palette: Palette) -> Figure:
    """Rows of runs, pool by pool, on one axis of days with its quarters."""
    runs, rows = _by_pool(s)
    reach = max(s.ends.high, (s.due - s.start).days + 1 if s.due else 0) * 1.12 + 0.02
    few = len(rows) <= _FEW
    tickvals, ticktext = _ticks(s.start, reach)
    named = [
        f"{_short(run.run.name)}{'<br>' if few else ' '}<span style='font-family:{MONO};font-size:12px'>"
        f"{format_count(run.accelerators, 15)}{_held(run) if few else ''}</span>"
        for run in runs
    ]
    days = [run.middle.end - run.middle.begin for run in runs]
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "y": rows,
            "x": np.array(days),
            "base": np.array([run.middle.begin for run in runs]),
            "width": 0.5,
            "marker": {"color": palette.parameters},
            "customdata": [
                f"{about(run)}<br>{format_day(s.day(run.middle.begin))} to {format_day(s.day(run.middle.end))}"
                for run in runs
            ],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
    ]
    pauses = [(row, a, b) for row, run in zip(rows, runs, strict=True) for a, b in run.pauses]
    if pauses:
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": [row for row, _, _ in pauses],
                "x": np.array([b - a for _, a, b in pauses]),
                "base": np.array([a for _, a, _ in pauses]),
                "width": 0.5,
                "marker": {
                    "color": palette.background,
                    "line": {"color": palette.muted, "width": 0.5},
                    "pattern": {"shape": "/", "size": 5, "fgcolor": palette.text, "bgcolor": palette.background},
                },
                "customdata": [f"{format_day(s.day(a))}, {24 * (b - a):.3g} h" for _, a, b in pauses],
                "hovertemplate": "maintenance: %{customdata}<extra></extra>",
            }
        )
    ends = [run.ends for run in runs]
    if any(end.low < end.high for end in ends):
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "y": rows,
                "x": np.array([end.mid for end in ends]),
                "marker": {"color": palette.text, "size": 7, "symbol": "diamond"},
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [end.high - end.mid for end in ends],
                    "arrayminus": [end.mid - end.low for end in ends],
                    "color": palette.text,
                    "thickness": 1.6,
                    "width": 7,
                },
                "customdata": [f"{format_day(s.day(end.low))} to {format_day(s.day(end.high))}" for end in ends],
                "hovertemplate": "ends, early to late: %{customdata}<extra></extra>",
            }
        )
    return {
        "data": data,
        "layout": layout(
            palette,
            height=(_ROW if few else _LOW_ROW) * len(rows) + 124,
            margin={"l": 8, "r": 16, "t": 44, "b": 8},
            barmode="overlay",
            xaxis=axis(palette, "days in UTC", range=[0, reach], tickvals=tickvals, ticktext=ticktext),
            yaxis=axis(
                palette,
                "",
                tickvals=rows,
                ticktext=named,
                tickfont={"size": 13, "color": palette.text},
                autorange="reversed",
                showgrid=False,
                ticksuffix="  ",
                type="category",
            ),
            shapes=_deadline(s, palette),
            annotations=[*_words(s, bool(pauses), palette), *_ends(s, palette)],
        ),
    }


def _held(run: ScheduledRun) -> str:
    return f" {_short(run.run.pool.name)}" if run.run.pool else " acc."


def _short(name: str) -> str:
    return as_typed(name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…")


def _by_pool(s: Schedule) -> tuple[list[ScheduledRun], list[str]]:
    """Runs with the category of their rows, those of one pool beside each other."""
    order = sorted(range(len(s.runs)), key=lambda i: s.pools.index(s.pool_of(s.runs[i])))
    return [s.runs[i] for i in order], [f"run {i + 1}" for i in order]


def _deadline(s: Schedule, palette: Palette) -> list[dict[str, Any]]:
    if s.due is None:
        return []
    at = (s.due - s.start).days + 1
    line = {"color": palette.memory_bound, "width": 2, "dash": "dash"}
    return [{"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line}]


def _ends(s: Schedule, palette: Palette) -> list[dict[str, Any]]:
    """The day of each end over its mark: at the late end of the range it would be read as that."""
    return [
        label(
            palette,
            format_day(s.day(run.middle.end)),
            x=run.ends.mid,
            y=f"run {i + 1}",
            xanchor="left",
            xshift=6,
            yshift=12,
            bgcolor=palette.background,
            font={"family": MONO, "size": 12, "color": palette.text},
        )
        for i, run in enumerate(s.runs)
    ]


def _words(s: Schedule, paused: bool, palette: Palette) -> list[dict[str, Any]]:
    sentences = ["bars: the middle, whiskers: the range"]
    sentences += ["hatched: maintenance"] if paused else []
    top = {"yref": "paper", "y": 1, "yanchor": "bottom"}
    quiet = {"size": 12, "color": palette.muted}
    rows = [label(palette, " · ".join(sentences), x=0, xref="paper", xanchor="left", yshift=22, font=quiet, **top)]
    if s.due:
        at = (s.due - s.start).days + 1
        rows.append(label(palette, f"<b>deadline {format_day(s.due)}</b>", x=at, xanchor="center", yshift=4, **top))
    return rows


def _ticks(start: date, reach: float) -> tuple[list[float], list[str]]:
    """Places and words of at most so many ticks: days, months, quarters or years."""
    if reach < 70:
        step = next(step for step in (1, 7, 14) if reach / step <= _TICKS or step == 14)
        days = range(0, int(reach) + 1, step)
        return [float(at) for at in days], [format_day(date.fromordinal(start.toordinal() + at), False) for at in days]
    firsts = [item for item in (start.replace(day=1), *months_from(start, reach)) if item >= start]
    months = [(first, 12 * first.year + first.month - 1) for first in firsts]
    step = next(step for step in _STEPS if sum(n % step == 0 for _, n in months) <= _TICKS or step == _STEPS[-1])
    results = [item for item, n in months if n % step == 0]
    return [float((result - start).days) for result in results], [_tick(result, step) for result in results]


def _tick(first: date, step: int) -> str:
    if step >= 12:
        return str(first.year)
    month = format_day(first, False).partition(" ")[2]
    return quarter(first) if step >= 3 else f"{month}<br>{quarter(first)}" if first.month % 3 == 1 else month
