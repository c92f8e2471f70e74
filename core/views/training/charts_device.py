"""Pictures of what one accelerator holds: stacked bars by class against its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from core.messages import message
from core.training.device.memory import DeviceMemory
from core.training.memory import PARTS, StateBytes
from core.units import significant
from core.views.common.chart import MONO, Figure, axis, figure, label, lying_bars, rows_axis, rule
from core.views.common.palette import Palette

GIB = 2.0**30

CLASSES: tuple[tuple[str, str, str], ...] = (
    ("parameters", "parameters", message("memory.class.parameters")),
    ("gradients", "gradients", message("memory.class.gradients")),
    ("master_weights", "master", message("memory.class.master")),
    ("optimizer_state", "optimizer", message("memory.class.optimizer")),
    ("activations", "activations", message("memory.class.activations")),
    ("buffers", "buffers", message("memory.class.buffers")),
    ("runtime", "", message("memory.class.runtime")),
)
"""Classes of memory in stacking order: field of `DeviceMemory`, role in the palette (none: quiet), and name."""

_ROW, _LEVEL, _BELOW = 46, 17, 56
_NARROWEST, _LETTER, _MONO_LETTER, _GAP = 340, 7.0, 8.0, 10
_ASIDE = 7
_TRACE = 1e-9
"""Size that stands for a class that one bar lacks and another has."""


def colour(role: str, palette: Palette) -> str:
    """Return the color of a class; muted without a role."""
    return palette.role(role) if role else palette.muted


def device_bars(rows: Sequence[tuple[str, DeviceMemory]], usable: float, palette: Palette) -> Figure:
    """Return one stacked bar for each named account, against the memory capacity.

    usable: bytes; NaN if unknown, and then without its line.
    """
    sizes = [[float(getattr(memory, field)) / GIB for field, *_ in CLASSES] for _, memory in rows]
    classes = [(role, name) for _, role, name in CLASSES]
    title = message("memory.picture.axis")
    return _stacked_bars([name for name, _ in rows], sizes, classes, palette, title=title, unit="GiB", usable=usable)


def state_bars(rows: Sequence[tuple[str, StateBytes]], palette: Palette) -> Figure:
    """Return one stacked bar of bytes per parameter for each named optimizer."""
    sizes = [[float(getattr(states, part)) for part in PARTS] for _, states in rows]
    title = message("memory.picture.axis_states")
    names = [name for name, _ in rows]
    return _stacked_bars(
        names, sizes, [(role, name) for _, role, name in CLASSES[:4]], palette, title=title, unit="B per parameter"
    )


def _stacked_bars(
    names: Sequence[str],
    sizes: Sequence[Sequence[float]],
    classes: Sequence[tuple[str, str]],
    palette: Palette,
    *,
    title: str,
    unit: str,
    usable: float = math.nan,
) -> Figure:
    """Return a bar for each name. The classes, each a role and a name, are named over the bars, as they lie in the
    longest: one that it lacks where it would lie.

    sizes: of each class of each bar, in ``unit``. usable: bytes where a line marks the capacity, NaN for none.
    """
    totals = [sum(parts) for parts in sizes]
    capacity = 0.0 if math.isnan(usable) else usable / GIB
    ends = [significant(total, 3) for total in totals]
    widest = max(1.12 * max(capacity, *totals), *(_with_room(*end) for end in zip(totals, ends, strict=True)))
    longest = max(sizes, key=sum)
    above_bars = [
        (role, name, max(longest[at], _TRACE * any(parts[at] > 0 for parts in sizes)))
        for at, (role, name) in enumerate(classes)
    ]
    marks = class_labels(above_bars, widest, palette, named=len(names) == 1)
    above = 10 + _LEVEL * (1 + max((int(mark["yshift"]) // _LEVEL for mark in marks), default=0))
    below = _BELOW + (18 if capacity else 0)
    bars = [
        lying_bars(
            [parts[at] for parts in sizes],
            names,
            f"{name}: %{{x:,.3~g}} {unit}",
            name=name,
            width=0.62,
            marker={"color": colour(role, palette), "line": {"color": palette.background, "width": 1}},
        )
        for at, (role, name) in enumerate(classes)
    ]
    return figure(
        palette,
        bars,
        height=above + _ROW * len(names) + below,
        margin={"l": 8, "r": 8, "t": above, "b": below},
        barmode="stack",
        xaxis=axis(palette, title, range=[0, widest], fixedrange=True, tickformat=",~f"),
        yaxis=rows_axis(palette, names, names, autorange="reversed", ticklen=0, fixedrange=True, type="category"),
        annotations=[
            *marks,
            *(_end_label(end, totals[row], row, capacity, palette) for row, end in enumerate(ends)),
            *(_capacity_label(usable, palette, widest) if capacity else []),
        ],
        shapes=_capacity_line(capacity, palette) if capacity else [],
    )


def class_labels(
    sizes: Sequence[tuple[str, str, float]], widest: float, palette: Palette, *, named: bool
) -> list[dict[str, Any]]:
    """Return the names of classes over the first bar, on as many lines as keep them apart; named: with their sizes."""
    ends: list[float] = []
    rows: list[dict[str, Any]] = []
    start = 0.0
    for role, name, size in sizes:
        middle, start = start + size / 2, start + size
        if size <= 0:
            continue
        text = f"{name} {significant(size, 3)}" if named else name
        half = len(text) * _LETTER / 2
        at = middle / widest * _NARROWEST
        # Near the left edge a label begins at its segment, so that it is not cut.
        left = at - half if at > half else 0.0
        level = next((line for line, end in enumerate(ends) if end + _GAP <= left), len(ends))
        ends[level : level + 1] = [left + 2 * half]
        rows.append(
            label(
                palette,
                f"<b>{text}</b>",
                x=middle if at > half else 0.0,
                xanchor="center" if at > half else "left",
                y=1,
                yref="paper",
                yanchor="bottom",
                yshift=2 + _LEVEL * level,
                colour=colour(role, palette),
            )
        )
    return rows


def _with_room(x: float, text: str) -> float:
    """Return how far an axis reaches on which ``text`` stands behind ``x``."""
    return x / (1 - (_ASIDE + _MONO_LETTER * len(text)) / _NARROWEST)


def _end_label(text: str, total: float, row: int, capacity: float, palette: Palette) -> Figure:
    """Return a number right of a bar's end, clear of the line that it may cross; red above the capacity."""
    over = 0 < capacity < total
    font = {"family": MONO, "size": 13, "color": palette.gradients if over else palette.text}
    place = {"x": total, "y": row, "xanchor": "left", "xshift": 5, "bgcolor": palette.background}
    return label(palette, f"<b>{text}</b>", **place, font=font)


def _capacity_line(capacity: float, palette: Palette) -> list[dict[str, Any]]:
    halo = {"color": palette.background, "width": 5}  # keeps the dashes visible where they cross a bar
    return [rule(line, x=capacity) for line in (halo, {"color": palette.text, "width": 2, "dash": "dash"})]


def _capacity_label(usable: float, palette: Palette, widest: float) -> list[dict[str, Any]]:
    at, text = usable / GIB, message("memory.picture.capacity", capacity=usable)
    side = "right" if at > 0.5 * widest else "left"
    return [label(palette, text, x=at, y=0, yref="paper", yanchor="top", yshift=-48, xanchor=side)]
