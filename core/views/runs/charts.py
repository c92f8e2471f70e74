"""Published runs as a picture: every one as a point among its kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.messages import message
from core.views.common.chart import Figure, axis, figure, label, marks
from core.views.common.palette import Palette


@dataclass(frozen=True, slots=True)
class RunPoint:
    """A published run, or the plan, as a point: size against MFU. here: it is the plan."""

    name: str
    params: float
    value: float
    hover: str
    alike: bool = False
    here: bool = False


def evidence_scatter(points: Sequence[RunPoint], palette: Palette) -> Figure:
    """Return every published run by size: filled where comparable with the plan, hollow elsewhere; the plan as a
    cross."""

    def cloud(chosen: list[RunPoint], marker: Figure) -> Figure:
        return marks(
            "markers",
            np.array([point.params for point in chosen]),
            np.array([100 * point.value for point in chosen]),
            [point.hover for point in chosen],
            marker=marker,
            cliponaxis=False,
        )

    others = [p for p in points if not p.here and not p.alike]
    alike = [p for p in points if not p.here and p.alike]
    yours = [p for p in points if p.here]
    ring = {"color": palette.parameters, "width": 1.5}
    clouds = [
        cloud(others, {"size": 9, "color": palette.background, "line": ring}),
        cloud(alike, {"size": 10, "color": palette.parameters}),
        cloud(yours, {"size": 15, "symbol": "cross", "color": palette.accent, "line": {"color": palette.background}}),
    ]
    across: Figure = {"type": "log", "exponentformat": "none", "tickvals": _SIZES, "ticktext": _SIZE_NAMES}
    return figure(
        palette,
        clouds,
        height=420,
        hovermode="closest",
        xaxis=axis(palette, message("runs.scatter.x"), **across),
        yaxis=axis(palette, message("runs.scatter.y"), range=[0, 108 * max(p.value for p in points)]),
        annotations=[
            label(
                palette,
                message("runs.scatter.yours"),
                x=math.log10(p.params),
                y=100 * p.value,
                xanchor="left",
                xshift=12,
                colour=palette.accent,
                size=13,
            )
            for p in yours
        ],
    )


_SIZES = [1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13]
_SIZE_NAMES = ["10M", "100M", "1B", "10B", "100B", "1T", "10T"]
