"""Days and dollars of compared plans, as bars with their ranges."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from core.budget.equations import Interval
from core.messages import message
from core.planning.comparison.comparison import QUANTITY, ComparedPlan, result
from core.views.common.chart import Figure, as_typed, axis, figure, label, lying_bars, rows_axis, rule, whiskers
from core.views.common.palette import Palette
from core.views.comparison.text import ranged, shown, shown_of
from core.views.plan.charts import AxisScale, scale_for

_ROW = 54
_WIDE = 28
"""Characters of a name on one line beside its bar."""
_SHARE = 0.46
"""Of the width, for each of the two panels of bars."""


def bars(plans: Sequence[ComparedPlan], base: int, palette: Palette) -> Figure:
    """Return the days and dollars of every plan, side by side, from its low end to its high end, the first plan on top.

    A thin line goes down from the end of the baseline's bar.
    """
    rows = list(range(len(plans)))[::-1]
    ticks = [_name(plan, i == base) for i, plan in enumerate(plans)]
    panels = (
        ("days", "time", "x", [0.0, _SHARE], palette.parameters),
        ("dollars", "cost", "x2", [1 - _SHARE, 1.0], palette.optimizer),
    )
    data: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for name, kind, at, domain, colour in panels:
        quantity = QUANTITY[name]
        intervals = [result(plan, quantity) for plan in plans]
        known = [interval.mid for interval in intervals if math.isfinite(interval.high)]
        scale = scale_for(kind, max(known, default=1.0))  # pyright: ignore[reportArgumentType]
        most = max((interval.high for interval in intervals if math.isfinite(interval.high)), default=1.0) / scale.size
        axes[f"xaxis{at[1:]}"] = axis(palette, scale.title, domain=domain, range=[0, 1.24 * most], tickformat=",~r")
        drawn = [i for i, interval in enumerate(intervals) if math.isfinite(interval.high)]
        data.append(_bars(name, at, [(rows[i], intervals[i]) for i in drawn], scale, colour, palette))
        for i, interval in enumerate(intervals):
            here = {"xref": at, "y": rows[i], "yref": "y", "xanchor": "left", "xshift": 6}
            if i in drawn:
                paper = {"bgcolor": palette.background, "borderpad": 1}
                annotations.append(
                    label(palette, shown(name, interval.mid), x=interval.high / scale.size, **paper, **here)
                )
            else:
                text = shown_of(plans[i], name, interval.mid) if plans[i].answer else message("comparison.short.none")
                annotations.append(label(palette, text, palette.muted, x=0, **here))
        if base in drawn and len(plans) > 1:
            line = {"color": palette.muted, "width": 1, "dash": "dot"}
            shapes.append(rule(line, x=intervals[base].mid / scale.size, xref=at))
    return figure(
        palette,
        data,
        height=_ROW * len(plans) + 76,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        **axes,
        yaxis=rows_axis(palette, rows, ticks, 12, range=[-0.6, len(plans) - 0.4]),
        shapes=shapes,
        annotations=annotations,
    )


def _bars(name: str, at: str, rows: Sequence[Any], scale: AxisScale, colour: str, palette: Palette) -> dict[str, Any]:
    middle = [item.mid / scale.size for _, item in rows]
    return lying_bars(
        middle,
        [row for row, _ in rows],
        "%{customdata}",
        xaxis=at,
        width=0.42,
        marker={"color": colour},
        error_x=whiskers(
            [item.low / scale.size for _, item in rows],
            middle,
            [item.high / scale.size for _, item in rows],
            palette.text,
            thickness=1.2,
            width=5,
        ),
        customdata=[_hover(name, item) for _, item in rows],
    )


def _hover(name: str, item: Interval) -> str:
    value, spread = shown(name, item.mid), ranged(name, item)
    return message("comparison.bar", value=value, range=spread) if spread else value


def _name(plan: ComparedPlan, base: bool) -> str:
    lines = textwrap.wrap(plan.short_name, _WIDE, max_lines=2, placeholder="…") or [""]
    text = "<br>".join(as_typed(line) for line in lines)
    return f"<b>{text}</b><br>{message('comparison.bar.base')}" if base else text
