"""Pictures of what one accelerator holds: stacked bars by class against its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from core.messages import message
from core.training.device.memory import DeviceMemory
from core.training.memory import PARTS, StateBytes
from core.units import format_bytes, significant
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
"""GiB that stand for a class that one bar lacks and another has."""


def colour(role: str, palette: Palette) -> str:
    """The colour of a class; what has no role is quiet."""
    return palette.role(role) if role else palette.muted


def device_bars(rows: Sequence[tuple[str, DeviceMemory]], usable: float, palette: Palette) -> Figure:
    """One stacked bar for each named account, against the memory of one accelerator.

    The classes are named over the bars, as they lie in the longest: what it has none of where it would lie.
    usable: bytes; NaN where unknown, and then without its line.
    """
    names = [name for name, _ in rows]
    known = usable if not math.isnan(usable) else 0.0
    longest = max(known, *(float(memory.total) for _, memory in rows)) / GIB
    widest = max(1.12 * longest, *(with_room(float(memory.total) / GIB, _total(memory)) for _, memory in rows))
    held = [
        (role, name, max(size, _TRACE * any(getattr(memory, field) > 0 for _, memory in rows)))
        for (field, *_), (role, name, size) in zip(CLASSES, class_sizes(_longest(rows)), strict=True)
    ]
    marks = class_labels(held, widest, palette, named=len(rows) == 1)
    above = 10 + _LEVEL * (1 + max((int(mark["yshift"]) // _LEVEL for mark in marks), default=0))
    inner = _ROW * len(rows)
    return figure(
        palette,
        class_bars([memory for _, memory in rows], names, 0.62, palette),
        height=above + inner + _BELOW + (18 if known else 0),
        margin={"l": 8, "r": 8, "t": above, "b": _BELOW + (18 if known else 0)},
        barmode="stack",
        xaxis=axis(palette, message("memory.picture.axis"), range=[0, widest], fixedrange=True, tickformat=",~f"),
        yaxis=rows_axis(palette, names, names, autorange="reversed", ticklen=0, fixedrange=True, type="category"),
        annotations=[
            *marks,
            *(
                at_end(_total(memory), float(memory.total), row, usable, palette)
                for row, (_, memory) in enumerate(rows)
            ),
            *limit_label(usable, palette, widest),
        ],
        shapes=limit_line(usable, palette),
    )


def _longest(rows: Sequence[tuple[str, DeviceMemory]]) -> DeviceMemory:
    return max((memory for _, memory in rows), key=lambda memory: float(memory.total))


def class_bars(memories: Sequence[DeviceMemory], at: Sequence[Any], width: float, palette: Palette) -> list[Figure]:
    """The classes of what is held as the parts of bars, which lie in the rows ``at``."""
    bars: list[Figure] = []
    for field, role, name in CLASSES:
        values = [float(getattr(memory, field)) for memory in memories]
        bars.append(
            lying_bars(
                [value / GIB for value in values],
                at,
                f"{name}: %{{x:,.2f}} GiB (%{{customdata}})",
                name=name,
                width=width,
                marker={"color": colour(role, palette), "line": {"color": palette.background, "width": 1}},
                customdata=[format_bytes(value, system="decimal") for value in values],
            )
        )
    return bars


def state_bars(rows: Sequence[tuple[str, StateBytes]], palette: Palette) -> Figure:
    """One stacked bar of bytes per parameter for each named optimizer."""
    names = [name for name, _ in rows]
    widest = max(with_room(states.total, significant(states.total, 3)) for _, states in rows)
    sizes = [[(part, name, float(getattr(states, part))) for part, name in PARTS.items()] for _, states in rows]
    marks = class_labels(max(sizes, key=lambda parts: sum(size for *_, size in parts)), widest, palette, named=False)
    above = 10 + _LEVEL * (1 + max((int(mark["yshift"]) // _LEVEL for mark in marks), default=0))
    bars = [
        lying_bars(
            [parts[at][2] for parts in sizes],
            names,
            f"{name}: %{{x:,.3~g}} B per parameter",
            name=name,
            width=0.62,
            marker={"color": colour(part, palette), "line": {"color": palette.background, "width": 1}},
        )
        for at, (part, name) in enumerate(PARTS.items())
    ]
    font = {"family": MONO, "size": 13, "color": palette.text}
    ends = [
        label(
            palette,
            f"<b>{significant(states.total, 3)}</b>",
            x=states.total,
            y=row,
            xanchor="left",
            xshift=5,
            font=font,
        )
        for row, (_, states) in enumerate(rows)
    ]
    return figure(
        palette,
        bars,
        height=above + _ROW * len(rows) + _BELOW,
        margin={"l": 8, "r": 8, "t": above, "b": _BELOW},
        barmode="stack",
        xaxis=axis(palette, message("memory.picture.axis_states"), range=[0, widest], fixedrange=True),
        yaxis=rows_axis(palette, names, names, autorange="reversed", ticklen=0, fixedrange=True, type="category"),
        annotations=[*marks, *ends],
    )


def class_sizes(memory: DeviceMemory) -> list[tuple[str, str, float]]:
    """Role, name, and size in GiB of every class of memory."""
    return [(role, name, float(getattr(memory, field)) / GIB) for field, role, name in CLASSES]


def class_labels(
    sizes: Sequence[tuple[str, str, float]], widest: float, palette: Palette, *, named: bool
) -> list[dict[str, Any]]:
    """The names of classes over the first bar, on as many lines as keep them apart; named: with their sizes."""
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


def with_room(x: float, text: str) -> float:
    """How far an axis reaches on which ``text`` stands behind ``x``."""
    return x / (1 - (_ASIDE + _MONO_LETTER * len(text)) / _NARROWEST)


def _total(memory: DeviceMemory) -> str:
    return significant(float(memory.total) / GIB, 3)


def at_end(text: str, held: float, row: int, usable: float, palette: Palette) -> Figure:
    """A number right of a bar's end, in bytes, clear of the line that it may cross; that of too much is red."""
    font = {"family": MONO, "size": 13, "color": palette.gradients if held > usable else palette.text}
    place = {"x": held / GIB, "y": row, "xanchor": "left", "xshift": 5, "bgcolor": palette.background}
    return label(palette, f"<b>{text}</b>", **place, font=font)


def limit_line(usable: float, palette: Palette) -> list[dict[str, Any]]:
    """The line where the memory of one accelerator ends; none where that is unknown."""
    if math.isnan(usable):
        return []
    halo = {"color": palette.background, "width": 5}  # keeps the dashes visible where they cross a bar
    return [rule(line, x=usable / GIB) for line in (halo, {"color": palette.text, "width": 2, "dash": "dash"})]


def limit_label(usable: float, palette: Palette, widest: float) -> list[dict[str, Any]]:
    """How much memory one accelerator has, under its line."""
    if math.isnan(usable):
        return []
    at = usable / GIB
    text = message("memory.picture.capacity", capacity=usable)
    right = at > 0.5 * widest
    return [
        label(palette, text, x=at, y=0, yref="paper", yanchor="top", yshift=-48, xanchor="right" if right else "left")
    ]
