"""Picture of the pools that runs could be on: dollars against days, a line for each over its nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from core.planning.comparison.comparison import front
from core.planning.cost.choose_pools import PoolChoice, PoolLine
from core.planning.plan import PlanLimits
from core.units import format_duration
from core.views.calendar.text_pools import name, pool_name
from core.views.common.chart import SANS, Figure, apart, as_typed, axis, label, layout
from core.views.common.palette import Palette
from core.views.plan.charts import scale_for
from core.views.plan.text_limits import NAMES, not_met
from core.wording import listed, rent

_HEIGHT, _PLOT, _LINE, _ASIDE = 380, 290, 15, 9
"""Pixels: of the figure, of its plot, of a label, and how far that stands beside its point."""

_ROLES = ("parameters", "optimizer", "activations", "sign", "master", "buffers", "exponent", "accent", "fraction")
"""Colours of lines, the own pools' first."""

_FAR, _FARTHEST = 2.0, 6.0
"""Days that are drawn, over those of the deadline: as far as every pool's soonest, and no further than that."""

_WIDTH, _LETTER = 800, 7
"""Pixels of the plot, and of a letter: so much room a name has before its point."""


def pools(lines: Sequence[PoolLine], limits: PlanLimits, due: float, palette: Palette) -> Figure:
    """Every number of every pool by its days and dollars. Those that no other beats in both are filled, the rest are
    hollow; those that draw too much power are crosses. due: days to the deadline."""
    reach, drawn = _drawn(lines, due)
    best = front([(choice.days, choice.dollars.mid) for some in drawn for choice in some])
    on = iter(best)
    top = max((choice.dollars.mid for some in drawn for choice in some), default=1.0)
    top = max(top, 0.0 if math.isnan(limits.dollars) else limits.dollars)
    scale = scale_for("cost", top)
    data = [
        _line(some, [next(on) for _ in some], palette.role(_ROLES[i % len(_ROLES)]), scale.size)
        for i, some in enumerate(drawn)
    ]
    high = 1.12 * top / scale.size
    return {
        "data": data,
        "layout": layout(
            palette,
            height=_HEIGHT,
            margin={"l": 8, "r": 8, "t": 30, "b": 8},
            xaxis=axis(palette, "days from the start to the end", range=[0, reach], tickformat=",~r"),
            yaxis=axis(palette, scale.title, range=[0, high], tickformat=",~r"),
            shapes=_limits(limits, due, scale.size, palette),
            annotations=[
                *_names(lines, drawn, reach, scale.size, high, palette),
                *_limit_names(limits, due, scale.size, palette),
            ],
        ),
    }


def _drawn(lines: Sequence[PoolLine], due: float) -> tuple[float, list[list[PoolChoice]]]:
    """How many days the picture reaches, and the numbers of each pool that are in it."""
    soonest = [min(choice.days for choice in line.choices) for line in lines]
    reach = min(_FARTHEST * due, max([_FAR * due, *(1.12 * days for days in soonest if days < _FARTHEST * due)]))
    return reach, [[c for c in line.choices if c.days <= reach and c.dollars.known] for line in lines]


def left_out(lines: Sequence[PoolLine], due: float) -> str:
    """Which pools are not in the picture, and why; empty where all are."""
    reach, drawn = _drawn(lines, due)
    reasons: dict[str, list[str]] = {}
    for line in (line for line, some in zip(lines, drawn, strict=True) if not some):
        choices = [choice for choice in line.choices if choice.schedule]
        if not choices:
            why = line.choices[0].problem.rstrip(".")
        elif any(choice.dollars.known for choice in choices):
            why = f"more than {format_duration(86400 * reach, 3)}"
        else:
            why = "cost unknown"
        reasons.setdefault(why, []).append(f"**{pool_name(line.pool)}**")
    parts = [f"{listed(names)} ({why})" for why, names in reasons.items()]
    return f"Not in the chart: {'; '.join(parts)}." if parts else ""


def _line(some: Sequence[PoolChoice], on: Sequence[bool], colour: str, size: float) -> dict[str, Any]:
    def symbol(choice: PoolChoice, best: bool) -> str:
        return "x-thin" if not choice.keeps("power") else "circle" if best else "circle-open"

    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [choice.days for choice in some],
        "y": [choice.dollars.mid / size for choice in some],
        "line": {"color": colour, "width": 1.5},
        "marker": {
            "symbol": [symbol(choice, best) for choice, best in zip(some, on, strict=True)],
            "size": [10 if best else 7 for best in on],
            "color": colour,
            "line": {"width": 1.5, "color": colour},
        },
        "customdata": [
            f"{as_typed(name(choice))}<br>{format_duration(86400 * choice.days, 3)}, {rent(choice.dollars.mid)}"
            f"<br>{'; '.join(not_met(choice.limits)) or _kept(choice)}"
            for choice in some
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
        "cliponaxis": False,
    }


def _kept(choice: PoolChoice) -> str:
    """What is kept of the limits for which no layout is searched."""
    return f"{listed([NAMES[check.id] for check in choice.limits if check.met])} kept"


def _limits(limits: PlanLimits, due: float, size: float, palette: Palette) -> list[dict[str, Any]]:
    line = {"color": palette.memory_bound, "width": 2, "dash": "dash"}
    shapes = [{"type": "line", "x0": due, "x1": due, "y0": 0, "y1": 1, "yref": "paper", "line": line}]
    if not math.isnan(limits.dollars):
        at = limits.dollars / size
        shapes.append({"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": at, "y1": at, "line": line})
    return shapes


def _limit_names(limits: PlanLimits, due: float, size: float, palette: Palette) -> list[dict[str, Any]]:
    text = f"<b>deadline {format_duration(86400 * due, 3)}</b>"
    rows = [label(palette, text, x=due, y=1, yref="paper", yanchor="bottom")]
    if not math.isnan(limits.dollars):
        text, at = f"<b>{rent(limits.dollars)}</b>", limits.dollars / size
        rows.append(label(palette, text, x=1, xref="paper", xanchor="right", y=at, yanchor="bottom"))
    quiet = {"size": 12, "color": palette.muted}
    words = "filled: no other is sooner and cheaper" + ("" if math.isnan(limits.watts) else " · ×: too much power")
    where = {"xref": "paper", "xanchor": "right", "yref": "paper", "yanchor": "bottom"}
    return [*rows, label(palette, words, x=1, y=1, font=quiet, **where)]


def _names(
    lines: Sequence[PoolLine],
    drawn: Sequence[Sequence[PoolChoice]],
    reach: float,
    size: float,
    high: float,
    palette: Palette,
) -> list[dict[str, Any]]:
    """The name of each pool before the soonest of its points, over one that is late or has no room before it: in bold
    where a number of it meets every limit."""
    ends = [(some[-1], line, _ROLES[i]) for i, (line, some) in enumerate(zip(lines, drawn, strict=True)) if some]
    ends.sort(key=lambda end: -end[0].dollars.mid)
    heights = [-_PLOT * end.dollars.mid / size / high for end, _, _ in ends]
    moved = apart(heights, [_LINE] * len(heights))
    rows: list[dict[str, Any]] = []
    for (end, line, role), height, to in zip(ends, heights, moved, strict=True):
        text, late = as_typed(pool_name(line.pool)), end.days > reach / 2
        over = late or end.days / reach * _WIDTH < _LETTER * len(text)
        rows.append(
            label(
                palette,
                f"<b>{text}</b>" if line.best else text,
                x=end.days,
                y=end.dollars.mid / size,
                xanchor="left" if over and not late else "right",
                xshift=_ASIDE if late else 0 if over else -_ASIDE,
                yshift=height - to + (_LINE if over else 0),
                font={"family": SANS, "size": 12, "color": palette.role(role)},
            )
        )
    return rows
