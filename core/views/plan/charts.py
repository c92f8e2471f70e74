"""Pictures of a plan beside evidence: the answer at each comparable run's MFU, and every published run as a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.messages import message
from core.planning.estimate import PlanEstimate
from core.planning.nearest_runs import SimilarRun, at_mfu
from core.planning.plan import Find
from core.units import format_count, format_duration, format_money, format_quantity
from core.views.common.chart import SANS, Figure, axis, band, figure, label, marks, rule
from core.views.common.palette import Palette

_NAMED = 18
"""Up to so many runs each has a row with its name; more share one strip."""
_ROW = 21


@dataclass(frozen=True, slots=True)
class AxisScale:
    """How a quantity is drawn: divided by ``size``, its axis titled, its values written by ``show``."""

    size: float
    title: str
    kind: Find | Literal["cost"]

    def show(self, value: float) -> str:
        match self.kind:
            case "time":
                return format_duration(86400 * value, 3)
            case "cost":
                return format_money(value)
            case "MFU":
                return format_quantity(value, "ratio")
            case _:
                return format_count(value, 3)


_TIMES = (("years", 365.25, 1000.0), ("days", 1.0, 2.0), ("hours", 1 / 24, 1 / 24), ("minutes", 1 / 1440, 0.0))
_COUNTS = (("trillion", 1e12), ("billion", 1e9), ("million", 1e6), ("", 1.0))


def scale_for(find: Find | Literal["cost"], middle: float) -> AxisScale:
    """Return the unit in which values around ``middle`` read well."""
    if find == "time":
        unit, size, _ = next(row for row in _TIMES if middle >= row[2])
        return AxisScale(size, message("axis.time", unit=unit), find)
    if find == "MFU":
        return AxisScale(0.01, message("axis.mfu"), find)
    unit, size = next((row for row in _COUNTS if middle >= row[1]), _COUNTS[-1])
    if find == "cost":
        return AxisScale(size, message("axis.cost", unit=f"{unit} ".lstrip()), find)
    title = message(f"axis.{find}")
    return AxisScale(size, message("axis.scaled", quantity=title, unit=unit) if unit else title, find)


def answer_strip(a: PlanEstimate, similar: Sequence[SimilarRun], palette: Palette) -> Figure:
    """Return the plan's answer at the utilization of each of the nearest published runs, the band from P10 to P90, the
    plan.

    Up to 18 runs have a row each; more stand on one strip, piled up where they meet. The nearer a run, the darker.
    """
    here = a.result.mid
    scale = scale_for(a.find, here)
    ordered = sorted(similar, key=lambda run: -run.value)
    values = np.array([run.value for run in ordered]) / scale.size
    named = len(ordered) <= _NAMED
    rows = np.arange(len(ordered), dtype=np.float64) if named else _piled(values)
    # A size or tokens that are found move the expected MFU in turn: the answer's own range has that inside.
    ends = (
        (a.result.low, a.result.high) if a.plan.expects_mfu else (at_mfu(a, a.expected.low), at_mfu(a, a.expected.high))
    )
    low, high = sorted(end / scale.size for end in ends)
    reach = float(max(values.max(), high, here / scale.size)) * 1.06
    top = float(rows.max()) + 1.0
    x = here / scale.size
    middle = at_mfu(a, a.expected.mid) / scale.size
    over_it = {"y": 1, "yref": "paper"}
    return figure(
        palette,
        [
            marks(
                "markers",
                values,
                rows,
                "%{text}: %{customdata}",
                marker={"size": 9, "color": palette.parameters, "line": {"color": palette.background, "width": 1}},
                text=[f"{p.run.model}, {p.run.accelerator}" for p in ordered],
                customdata=[message("plan.picture.point", value=scale.show(p.value), mfu=p.mfu) for p in ordered],
                cliponaxis=False,
            )
        ],
        height=int(_ROW * (top + 1)) + 84,
        margin={"l": 8, "r": 8, "t": 34, "b": 8},
        xaxis=axis(
            palette,
            scale.title,
            range=[0, reach],
            ticksuffix="",
            tickformat=",~r" if reach < 10 else ",d",
        ),
        yaxis=axis(
            palette,
            "",
            range=[-0.8, top],
            tickvals=rows if named else [],
            ticktext=[p.run.model for p in ordered] if named else [],
            tickfont={"family": SANS, "size": 12, "color": palette.muted},
            showgrid=False,
            ticksuffix="  ",
        ),
        shapes=[
            band(low, high, palette.surface),
            rule({"color": palette.muted, "width": 1.5, "dash": "dot"}, x=middle),
            rule({"color": palette.accent, "width": 2.5, "dash": "solid"}, x=x),
        ],
        annotations=[
            label(
                palette,
                message("plan.picture.range" if a.plan.expects_mfu else "plan.picture.published_range"),
                palette.muted,
                x=high,
                **over_it,
                xanchor="right",
                yanchor="top",
            ),
            label(
                palette,
                message("plan.picture.yours", value=scale.show(here)),
                palette.accent,
                13,
                x=x,
                **over_it,
                yanchor="bottom",
                xanchor="left" if x < 0.5 * reach else "right",
            ),
        ],
    )


def _piled(values: np.ndarray) -> np.ndarray:
    """Return a height for each dot of a strip, so that dots which would touch stand on one another."""
    step = float(values.max()) / 60
    heights: dict[int, int] = {}
    rows: list[float] = []
    for value in values.tolist():
        bin_ = round(value / step)
        rows.append(float(heights.get(bin_, 0)))
        heights[bin_] = heights.get(bin_, 0) + 1
    return np.array(rows)
