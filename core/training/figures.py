"""Pictures of the model states: stacked bars per optimizer, per parameter and in total against the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean
from typing import Any

from core.figure import MONO, SANS, Figure, axis, label, layout
from core.palette import Palette
from core.training.memory import StateBytes, TrainingMemory
from core.training.optimizers import row_names
from core.training.words import PARTS, ByteUnit, part, part_names, shared_among, unit_of
from core.units import significant

_ROW, _TALL_ROW = 29, 42  # the lower panel's rows have two lines of text beside the bar
_LEVEL, _ABOVE, _BETWEEN, _BELOW = 16, 12, 96, 52
_RIGHT = 64  # pixels right of the panels, where the sums of the longest bars may end
_NARROWEST = 370  # pixels of plot on the narrowest page: labels that would meet there stand one above the other
_GAP = 4  # pixels at least between two of those labels
_LETTER = 6.8  # pixels of a bold letter of those labels


def state_bars(rows: Sequence[TrainingMemory], palette: Palette, *, chosen: str, device: str) -> Figure:
    """Stacked bars of the model states, one row per optimizer: above in B/parameter, below in total.

    rows: the same model, precision and accelerators under several optimizers; the first is drawn on top.
    chosen: the optimizer whose row is thick and bold.  device: the accelerator's name for the memory line.
    Below, a dashed line marks the memory: that of all accelerators where they share one copy of everything, else that
    of one accelerator, beside what it keeps.
    """
    names = row_names([row.optimizer.name for row in rows])
    chosen = next((name for name, row in zip(names, rows, strict=True) if row.optimizer.name == chosen), chosen)
    widths = [0.86 if name == chosen else 0.5 for name in names]
    per_parameter = [row.per_parameter for row in rows]
    widest = max(states.total for states in per_parameter)
    named = _names(rows[0], widest)
    above = _ABOVE + _LEVEL * (1 + max(name.level for name in named))
    inner = _BETWEEN + (_ROW + _TALL_ROW) * len(rows)
    upper, lower = (row * len(rows) / inner for row in (_ROW, _TALL_ROW))
    share = shared_among(rows[0])
    longest = max(max(row.total for row in rows), _known(rows[0].capacity)) / share
    said = unit_of(rows)
    size, unit = said.size, said.name
    scale = size * share
    ticks = [_bold(name, name == chosen) for name in names]
    totals = [_named_total(row, tick, said) for row, tick in zip(rows, ticks, strict=True)]
    down = {"autorange": "reversed", "tickvals": list(names), "showgrid": False, "ticklen": 0, "fixedrange": True}
    down |= {"tickfont": {"family": SANS, "size": 13, "color": palette.text}, "type": "category"}
    down |= {"ticksuffix": "  "}
    return {
        "data": [
            *_stack(per_parameter, names, widths, palette, 1.0, "B/parameter", "y", written=True),
            *_stack([row.stored for row in rows], names, widths, palette, scale, unit, "y2", written=False),
        ],
        "layout": layout(
            palette,
            height=above + inner + _BELOW,
            margin={"l": 8, "r": _RIGHT, "t": above, "b": _BELOW},
            barmode="stack",
            xaxis=axis(palette, "bytes per parameter, one copy", range=[0, widest], anchor="y", fixedrange=True),
            yaxis=axis(palette, "", domain=[1 - upper, 1], ticktext=ticks, **down),
            xaxis2=axis(
                palette,
                _where(rows[0], unit),
                range=[0, 1.03 * longest / size],
                anchor="y2",
                tickformat=",",
                fixedrange=True,
            ),
            yaxis2=axis(palette, "", domain=[0, lower], ticktext=totals, **down),
            annotations=[
                *_part_labels(named, palette),
                *_sums(per_parameter, names, chosen, palette),
                *_memory_label(rows[0], palette, device, said, lower, 1.03 * longest / size),
            ],
            shapes=_memory_line(rows[0], palette, scale, lower),
        ),
    }


def _known(value: float) -> float:
    """``value``, or 0 where it is unknown (NaN)."""
    return value if value == value else 0.0


def _where(row: TrainingMemory, unit: str) -> str:
    if row.accelerators == 1:
        return f"{unit} on the accelerator"
    if shared_among(row) > 1:
        return f"{unit} on each of the {row.accelerators:,} accelerators"
    return f"{unit} on all {row.accelerators:,} accelerators together"


def _stack(
    states: Sequence[StateBytes],
    names: Sequence[str],
    widths: Sequence[float],
    palette: Palette,
    scale: float,
    unit: str,
    row_axis: str,
    *,
    written: bool,
) -> list[dict[str, Any]]:
    traces: list[dict[str, Any]] = []
    for role, title in PARTS:
        values = [part(state, role) / scale for state in states]
        trace: dict[str, Any] = {
            "type": "bar",
            "orientation": "h",
            "name": title,
            "x": values,
            "y": list(names),
            "width": list(widths),
            "xaxis": row_axis.replace("y", "x"),
            "yaxis": row_axis,
            "marker": {"color": palette.role(role), "line": {"color": palette.background, "width": 1.5}},
            "hovertemplate": f"%{{y}}: {title} %{{x:,.4~g}} {unit}<extra></extra>",
        }
        if written:
            trace |= {
                "text": [significant(value) if value else "" for value in values],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "constraintext": "none",
                "insidetextfont": {"family": MONO, "size": 12, "color": palette.background},
            }
        traces.append(trace)
    return traces


@dataclass(frozen=True, slots=True)
class _Name:
    """Where the name of a part stands over the top row: its middle in bytes per parameter, moved by so many pixels,
    and how many lines up."""

    role: str
    title: str
    at: float
    shift: float = 0.0
    level: int = 0


def _names(row: TrainingMemory, widest: float) -> list[_Name]:
    """The names of the parts, placed so that no two meet, however narrow the page.

    On one line where each can stay over its own segment on the narrowest page: what is apart there is apart on every
    wider one. Else on several. widest: bytes per parameter at the right edge of the panel.
    """
    found: list[_Name] = []
    segments: list[tuple[float, float]] = []
    start = 0.0
    for (role, _), title in zip(PARTS, part_names(row.policy), strict=True):
        value = part(row.per_parameter, role)
        if value:
            found.append(_Name(role, title, start + value / 2))
            segments.append((start / widest * _NARROWEST, (start + value) / widest * _NARROWEST))
        start += value
    wanted = [name.at / widest * _NARROWEST for name in found]
    placed = apart(wanted, [len(name.title) * _LETTER for name in found])
    if all(left <= middle <= right for middle, (left, right) in zip(placed, segments, strict=True)):
        return [replace(n, shift=round(p - w)) for n, p, w in zip(found, placed, wanted, strict=True)]
    ends: list[float] = []
    for i, (name, middle) in enumerate(zip(found, wanted, strict=True)):
        half = len(name.title) * _LETTER / 2
        level = next((line for line, end in enumerate(ends) if end + _GAP <= middle - half), len(ends))
        ends[level : level + 1] = [middle + half]
        found[i] = replace(name, level=level)
    return found


def apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Middles nearest to ``wanted`` (least squares) at which labels of these ``widths`` stand side by side."""
    offsets = [0.0]
    for left, right in pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2 + _GAP)
    # Without the room that labels take, they may touch but not pass each other: runs that would are averaged.
    runs: list[list[float]] = []
    for middle, offset in zip(wanted, offsets, strict=False):
        runs.append([middle - offset])
        while len(runs) > 1 and mean(runs[-2]) > mean(runs[-1]):
            runs[-2:] = [runs[-2] + runs[-1]]
    level = [mean(run) for run in runs for _ in run]
    return [place + offset for place, offset in zip(level, offsets, strict=False)]


def _part_labels(names: Sequence[_Name], palette: Palette) -> list[dict[str, Any]]:
    """The names of the parts over the top row's segments."""
    return [
        label(
            palette,
            f"<b>{name.title}</b>",
            x=name.at,
            xref="x",
            xshift=name.shift,
            y=1,
            yref="paper",
            yanchor="bottom",
            yshift=2 + _LEVEL * name.level,
            font={"family": SANS, "size": 12, "color": palette.role(name.role)},
        )
        for name in names
    ]


def _sums(states: Sequence[StateBytes], names: Sequence[str], chosen: str, palette: Palette) -> list[dict[str, Any]]:
    return [
        label(
            palette,
            _bold(f"{significant(state.total)} B", name == chosen),
            x=state.total,
            xref="x",
            y=name,
            yref="y",
            xanchor="left",
            xshift=4,
            font={"family": MONO, "size": 13, "color": palette.text},
        )
        for state, name in zip(states, names, strict=True)
    ]


def _named_total(row: TrainingMemory, name: str, unit: ByteUnit) -> str:
    """The lower panel's name of a row, with what it takes and what that leaves or lacks on a second line."""
    share = shared_among(row)
    spare = unit.say(abs(row.spare) / share)
    words = {
        "room": f"{spare} left",
        "full": "nothing left",
        "over": f"{spare} too much",
        "unknown": "memory unknown",
    }[row.fit]
    return f"{name}<br><span style='font-size:12px'>{unit.say(row.total / share)}, {words}</span>"


def _bold(text: str, lit: bool) -> str:
    return f"<b>{text}</b>" if lit else text


def _memory_line(row: TrainingMemory, palette: Palette, scale: float, lower: float) -> list[dict[str, Any]]:
    if row.fit == "unknown":
        return []
    at = row.capacity / scale
    place = {"type": "line", "xref": "x2", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": lower + 0.012}
    halo = {"color": palette.background, "width": 5}  # keeps the dashes visible where they cross a bar
    return [place | {"line": halo}, place | {"line": {"color": palette.text, "width": 2, "dash": "dash"}}]


def _memory_label(
    row: TrainingMemory, palette: Palette, device: str, unit: ByteUnit, lower: float, end: float
) -> list[dict[str, Any]]:
    if row.fit == "unknown":
        return []
    share = shared_among(row)
    at, count = row.capacity / (unit.size * share), row.accelerators // share
    many = f"{count:,} × {device}" if count > 1 else f"one {device}"
    return [
        label(
            palette,
            f"<b>memory of {many}: {unit.say(row.capacity / share)}</b>",
            x=at,
            xref="x2",
            xanchor="right" if at > 0.5 * end else "left",
            y=lower + 0.012,
            yref="paper",
            yanchor="bottom",
        )
    ]
