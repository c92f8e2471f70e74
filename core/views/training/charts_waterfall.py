"""A waterfall: what one accelerator holds, falling change by change to the limit of its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from core.training.device.memory import DeviceMemory
from core.units import significant
from core.views.common.chart import Figure, axis, figure, lying_bars, rows_axis, rule
from core.views.common.palette import Palette
from core.views.training.charts_device import (
    CLASSES,
    GIB,
    at_end,
    class_bars,
    class_labels,
    class_sizes,
    colour,
    limit_label,
    limit_line,
    with_room,
)

_ROW, _BELOW = 52, 74
_GAP = "\u2002"  # plain spaces at the end of a line are dropped


def waterfall(
    before: DeviceMemory, changes: Sequence[tuple[str, str, DeviceMemory]], usable: float, palette: Palette
) -> Figure:
    """What is held as it is, a bar from total to total for each change, and what is held then, against the memory.

    changes: name, cost and what is held after it.  A change has the colour of the class that it changes most.
    """
    memories = [before, *(memory for _, _, memory in changes)]
    totals = [float(memory.total) for memory in memories]
    last = len(changes) + 1
    beside = [(max(a, b), _signed((b - a) / GIB)) for a, b in pairwise(totals)]
    widest = max(1.16 * max(usable, *totals) / GIB, *(with_room(most / GIB, text) for most, text in beside))
    marks = class_labels(class_sizes(before), widest, palette, named=False)
    above = 28 + max((int(mark["yshift"]) for mark in marks), default=0)
    inner = _ROW * (last + 1)
    named = ["as it is", *(f"{name}{_GAP}<br>{_small(cost, palette)}" for name, cost, _ in changes), "then"]
    return figure(
        palette,
        [
            *class_bars((before, memories[-1]), (0, last), 0.56, palette),
            lying_bars(
                [(after - at) / GIB for at, after in pairwise(totals)],
                list(range(1, last)),
                "%{customdata}",
                base=[total / GIB for total in totals[:-1]],
                width=0.56,
                marker={
                    "color": [_most(a, b, palette) for a, b in pairwise(memories)],
                    "line": {"color": palette.background, "width": 1},
                },
                customdata=[_parts(a, b) for a, b in pairwise(memories)],
            ),
        ],
        height=above + inner + _BELOW,
        margin={"l": 8, "r": 8, "t": above, "b": _BELOW},
        barmode="stack",
        xaxis=axis(palette, "GiB on one accelerator", range=[0, widest], fixedrange=True, tickformat=",~f"),
        yaxis=rows_axis(
            palette,
            list(range(last + 1)),
            [f"{name}{_GAP}" for name in named],
            ticksuffix="",
            range=[last + 0.5, -0.5],
            ticklen=0,
            fixedrange=True,
        ),
        annotations=[
            *marks,
            *(
                at_end(significant(totals[at] / GIB, 3), totals[at], row, usable, palette)
                for at, row in ((0, 0), (-1, last))
            ),
            *(at_end(text, most, row, math.inf, palette) for row, (most, text) in enumerate(beside, 1)),
            *limit_label(usable, palette, widest),
        ],
        shapes=[*limit_line(usable, palette), *_levels(totals, palette)],
    )


def _small(text: str, palette: Palette) -> str:
    return f"<span style='font-size:11px;color:{palette.muted}'>{text}</span>"


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{significant(abs(value), 3)} GiB"


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


def _levels(totals: Sequence[float], palette: Palette) -> list[Figure]:
    """A thin line from each bar's end to the next bar."""
    line = {"color": palette.muted, "width": 1}
    ends = ({"yref": "y", "y0": row + 0.28, "y1": row + 0.72} for row in range(len(totals)))
    return [rule(line, x=total / GIB, **end) for total, end in zip(totals, ends, strict=True)]
