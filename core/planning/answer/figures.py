"""Pictures of a plan beside evidence: the answer at each comparable run's MFU, and every published run as a point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.figure import SANS, Figure, axis, label, layout
from core.palette import Palette
from core.planning.answer.outlook import Find, Outlook, Peer, at_mfu, found_value
from core.planning.budget.interval import Interval
from core.planning.counting.scored import Scored
from core.units import format_count, format_duration, format_money, format_quantity

_NAMED = 18
"""Up to so many runs each has a row with its name; more share one strip."""
_ROW = 21


@dataclass(frozen=True, slots=True)
class Scale:
    """How a quantity is drawn: divided by ``size``, its axis titled, its values written by ``show``."""

    size: float
    title: str
    kind: Find

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


_TIMES = (("years", 365.25, 1000.0), ("days", 1.0, 2.0), ("hours", 1 / 24, 2 / 24), ("minutes", 1 / 1440, 0.0))
_COUNTS = (("trillion ", 1e12), ("billion ", 1e9), ("million ", 1e6), ("", 1.0))


def scale_for(find: Find, middle: float) -> Scale:
    """The unit in which values around ``middle`` read well."""
    if find == "time":
        unit, size, _ = next(row for row in _TIMES if middle >= row[2])
        return Scale(size, f"{unit} of training", find)
    if find == "MFU":
        return Scale(0.01, "MFU, %", find)
    prefix, size = next((row for row in _COUNTS if middle >= row[1]), _COUNTS[-1])
    noun = {"cost": "dollars", "tokens": "tokens", "parameters": "parameters", "accelerators": "accelerators"}[find]
    return Scale(size, f"{prefix}{noun}", find)


def answer_strip(o: Outlook, peers: Sequence[Peer], expected: Interval, palette: Palette) -> Figure:
    """The plan's answer at the utilisation of each comparable published run, the band from P10 to P90, and the plan.

    Up to 18 runs have a row each; more stand on one strip, piled up where they meet.
    """
    here = found_value(o)
    scale = scale_for(o.find, here)
    ordered = sorted(peers, key=lambda peer: -peer.value)
    values = np.array([peer.value for peer in ordered]) / scale.size
    named = len(ordered) <= _NAMED
    rows = np.arange(len(ordered), dtype=np.float64) if named else _piled(values)
    low, high = sorted(at_mfu(o, end) / scale.size for end in (expected.low, expected.high))
    reach = float(max(values.max(), high, here / scale.size)) * 1.06
    top = float(rows.max()) + 1.0
    x = here / scale.size
    middle = at_mfu(o, expected.mid) / scale.size
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "markers",
                "x": values,
                "y": rows,
                "marker": {"size": 9, "color": palette.parameters, "line": {"color": palette.background, "width": 1}},
                "text": [f"{p.run.model}, {p.run.accelerator}" for p in ordered],
                "customdata": [f"{scale.show(p.value)} at {format_quantity(p.mfu, 'ratio')}" for p in ordered],
                "hovertemplate": "%{text}: %{customdata}<extra></extra>",
                "cliponaxis": False,
            }
        ],
        "layout": layout(
            palette,
            height=int(_ROW * (top + 1)) + 84,
            margin={"l": 8, "r": 8, "t": 34, "b": 8},
            xaxis=axis(palette, scale.title, range=[0, reach], ticksuffix="", tickformat=",~r" if reach < 10 else ",d"),
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
                _band(low, high, palette),
                _upright(middle, "dot", palette.muted, 1.5),
                _upright(x, "solid", palette.accent, 2.5),
            ],
            annotations=[
                label(
                    palette, "P10–P90", x=high, y=1, yref="paper", xanchor="right", yanchor="top", font=_muted(palette)
                ),
                label(
                    palette,
                    f"yours: {scale.show(here)}",
                    x=x,
                    y=1,
                    yref="paper",
                    yanchor="bottom",
                    xanchor="left" if x < 0.75 * reach else "right",
                    font={"family": SANS, "size": 13, "color": palette.accent},
                ),
            ],
        ),
    }


def _muted(palette: Palette) -> Figure:
    return {"family": SANS, "size": 12, "color": palette.muted}


def _piled(values: np.ndarray) -> np.ndarray:
    """A height for each dot of a strip, so that dots which would touch stand on one another."""
    step = float(values.max()) / 60
    heights: dict[int, int] = {}
    rows: list[float] = []
    for value in values.tolist():
        bin_ = round(value / step)
        rows.append(float(heights.get(bin_, 0)))
        heights[bin_] = heights.get(bin_, 0) + 1
    return np.array(rows)


def _band(low: float, high: float, palette: Palette) -> Figure:
    return {
        "type": "rect",
        "x0": low,
        "x1": high,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "fillcolor": palette.surface,
        "line": {"width": 0},
        "layer": "below",
    }


def _upright(at: float, dash: str, colour: str, width: float) -> Figure:
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": colour, "width": width, "dash": dash},
    }


@dataclass(frozen=True, slots=True)
class Point:
    """A published run, or the plan, as a point: size against MFU or hours per token. here: it is the plan."""

    name: str
    params: float
    value: float
    hover: str
    alike: bool = False
    here: bool = False


def evidence_scatter(points: Sequence[Point], measure: Literal["MFU", "hours"], palette: Palette) -> Figure:
    """Every published run by size: filled where comparable with the plan, hollow elsewhere; the plan as a cross."""
    unit = 0.01 if measure == "MFU" else 1.0
    title = "utilisation by 6ND, %" if measure == "MFU" else "accelerator-hours per billion tokens"

    def cloud(chosen: list[Point], marker: Figure) -> Figure:
        return {
            "type": "scatter",
            "mode": "markers",
            "x": np.array([point.params for point in chosen]),
            "y": np.array([point.value / unit for point in chosen]),
            "text": [point.hover for point in chosen],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": marker,
            "cliponaxis": False,
        }

    others = [p for p in points if not p.here and not p.alike]
    alike = [p for p in points if not p.here and p.alike]
    yours = [p for p in points if p.here]
    ring = {"color": palette.parameters, "width": 1.5}
    figure = [
        cloud(others, {"size": 9, "color": palette.background, "line": ring}),
        cloud(alike, {"size": 10, "color": palette.parameters}),
        cloud(yours, {"size": 15, "symbol": "cross", "color": palette.accent, "line": {"color": palette.background}}),
    ]
    across: Figure = {"type": "log", "exponentformat": "none", "tickvals": _SIZES, "ticktext": _SIZE_NAMES}
    values = np.array([p.value / unit for p in points])
    up: Figure = (
        {"range": [0, float(values.max()) * 1.08]}
        if measure == "MFU"
        else {"type": "log", "dtick": 1, "tickformat": ",~r"}
    )
    return {
        "data": figure,
        "layout": layout(
            palette,
            height=420,
            hovermode="closest",
            xaxis=axis(palette, "parameters that work on each token", **across),
            yaxis=axis(palette, title, **up),
            annotations=[
                label(
                    palette,
                    "yours",
                    x=math.log10(p.params),
                    y=p.value / unit if measure == "MFU" else math.log10(p.value),
                    xanchor="left",
                    xshift=12,
                    font={"family": SANS, "size": 13, "color": palette.accent},
                )
                for p in yours
            ],
        ),
    }


_SIZES = [1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13]
_SIZE_NAMES = ["10M", "100M", "1B", "10B", "100B", "1T", "10T"]


def score_bars(found: Sequence[Scored], palette: Palette) -> Figure:
    """Utilisation of one run under each convention: MFU in one colour, HFU in another, the peak at 100 %."""
    rows = list(found)[::-1]
    values = np.array([100 * s.utilisation for s in rows])
    names = [s.name for s in rows]
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": values,
                "marker": {"color": [palette.parameters if s.kind == "MFU" else palette.activations for s in rows]},
                "text": [f"{s.kind} {format_quantity(s.utilisation, 'ratio')}" for s in rows],
                "textposition": "outside",
                "textfont": {"size": 12, "color": palette.text},
                "cliponaxis": False,
                "hovertemplate": "%{y}: %{text}<extra></extra>",
            }
        ],
        "layout": layout(
            palette,
            height=34 * len(rows) + 64,
            bargap=0.4,
            xaxis=axis(palette, "% of the dense peak", range=[0, max(float(values.max()) * 1.45, 10.0)]),
            yaxis=axis(palette, "", tickfont={"size": 12, "color": palette.text}, showgrid=False, ticksuffix="  "),
        ),
    }
