"""A waterfall: what one accelerator holds, falling change by change to the limit of its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from core.training.device.memory import DeviceMemory
from core.units import format_bytes, significant
from core.views.common.chart import MONO, SANS, Figure, axis, label, layout
from core.views.common.palette import Palette
from core.views.training.charts_device import CLASSES, GIB, class_labels, colour, limit_label, limit_line, with_room

_ROW, _BELOW = 52, 74
_GAP = "\u2002"  # plain spaces at the end of a line are dropped


def waterfall(
    before: DeviceMemory, changes: Sequence[tuple[str, str, DeviceMemory]], usable: float, palette: Palette
) -> Figure:
    """What is held as it is, a bar from total to total for each change, and what is held then, against the memory.

    changes: name, cost and what is held after it.  A change has the colour of the class that it changes most.
    """
    memories = [before, *(memory for _, _, memory in changes)]
    totals = [float(memory.total) / GIB for memory in memories]
    last = len(changes) + 1
    beside = [(max(a, b), _signed(b - a)) for a, b in pairwise(totals)]
    widest = max(1.16 * max(usable / GIB, *totals), *(with_room(x, text) for x, text in beside))
    marks = class_labels(before, widest, palette, named=False)
    above = 28 + max((int(mark["yshift"]) for mark in marks), default=0)
    inner = _ROW * (last + 1)
    named = ["as it is", *(f"{name}{_GAP}<br>{_small(cost, palette)}" for name, cost, _ in changes), "then"]
    return {
        "data": [
            *(_stack(field, role, name, (before, memories[-1]), (0, last), palette) for field, role, name in CLASSES),
            {
                "type": "bar",
                "orientation": "h",
                "y": list(range(1, last)),
                "x": [after - at for at, after in pairwise(totals)],
                "base": totals[:-1],
                "width": 0.56,
                "marker": {
                    "color": [_most(a, b, palette) for a, b in pairwise(memories)],
                    "line": {"color": palette.background, "width": 1},
                },
                "customdata": [_parts(a, b) for a, b in pairwise(memories)],
                "hovertemplate": "%{customdata}<extra></extra>",
            },
        ],
        "layout": layout(
            palette,
            height=above + inner + _BELOW,
            margin={"l": 8, "r": 8, "t": above, "b": _BELOW},
            barmode="stack",
            xaxis=axis(palette, "GiB on one accelerator", range=[0, widest], fixedrange=True, tickformat=",~f"),
            yaxis=axis(
                palette,
                "",
                range=[last + 0.5, -0.5],
                tickvals=list(range(last + 1)),
                ticktext=[f"{name}{_GAP}" for name in named],
                showgrid=False,
                ticklen=0,
                fixedrange=True,
                tickfont={"family": SANS, "size": 13, "color": palette.text},
            ),
            annotations=[
                *marks,
                _beside(f"<b>{significant(totals[0], 3)}</b>", totals[0], 0, palette, over=totals[0] > usable / GIB),
                *(_beside(f"<b>{text}</b>", x, k + 1, palette) for k, (x, text) in enumerate(beside)),
                _beside(
                    f"<b>{significant(totals[-1], 3)}</b>", totals[-1], last, palette, over=totals[-1] > usable / GIB
                ),
                *limit_label(usable, palette, widest),
            ],
            shapes=[*limit_line(usable, palette), *_levels(totals, palette)],
        ),
    }


def _small(text: str, palette: Palette) -> str:
    return f"<span style='font-size:11px;color:{palette.muted}'>{text}</span>"


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{significant(abs(value), 3)} GiB"


def _stack(
    field: str, role: str, name: str, memories: Sequence[DeviceMemory], at: Sequence[int], palette: Palette
) -> Figure:
    values = [float(getattr(memory, field)) for memory in memories]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": list(at),
        "x": [value / GIB for value in values],
        "width": 0.56,
        "marker": {"color": colour(role, palette), "line": {"color": palette.background, "width": 1}},
        "customdata": [format_bytes(value, system="decimal") for value in values],
        "hovertemplate": f"{name}: %{{x:,.2f}} GiB (%{{customdata}})<extra></extra>",
    }


def _moved(before: DeviceMemory, after: DeviceMemory) -> list[tuple[str, str, float]]:
    """Role, name and GiB of every class that a change moves, the largest first."""
    rows = [
        (role, name, (float(getattr(after, field)) - float(getattr(before, field))) / GIB)
        for field, role, name in CLASSES
    ]
    return sorted((row for row in rows if not math.isclose(row[2], 0.0, abs_tol=5e-4)), key=lambda row: -abs(row[2]))


def _most(before: DeviceMemory, after: DeviceMemory, palette: Palette) -> str:
    moved = _moved(before, after)
    return colour(moved[0][0] if moved else "", palette)


def _parts(before: DeviceMemory, after: DeviceMemory) -> str:
    return "<br>".join(f"{name}: {_signed(size)}" for _, name, size in _moved(before, after))


def _beside(text: str, x: float, row: int, palette: Palette, *, over: bool = False) -> Figure:
    """A number right of a bar's end, clear of the line that it may cross."""
    shade = palette.gradients if over else palette.text
    font = {"family": MONO, "size": 13, "color": shade}
    return label(palette, text, x=x, y=row, xanchor="left", xshift=5, font=font, bgcolor=palette.background)


def _levels(totals: Sequence[float], palette: Palette) -> list[Figure]:
    """A thin line from each bar's end to the next bar."""
    line = {"color": palette.muted, "width": 1}
    return [
        {"type": "line", "x0": total, "x1": total, "y0": row + 0.28, "y1": row + 0.72, "line": line}
        for row, total in enumerate(totals)
    ]
