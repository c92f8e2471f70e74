"""Pictures of an outlier in fp4: where the errors are under each scale, and how they shrink over steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.floats.fp4_outlier import SHARINGS, errors_of_means, treat
from core.views.common.chart import Figure, axis, figure, label, marks, part_labels
from core.views.common.palette import Palette
from core.views.floats.text_fp4 import sigmas

_ROW_PX, _TITLES_PX, _TOP_PX = 112, 124, 34
_TICKS = [digit * 10.0**power for power in range(-4, 4) for digit in (1, 2, 5)]
_GAP = 0.27
"""Share of a row that is free below its picture."""


def error_maps(outlier: float, width: int, palette: Palette, ways: Sequence[str] = tuple(SHARINGS)) -> Figure:
    """The size of every error: a row for each way to share a scale, plain at the left and rotated at the right."""
    data: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    notes: list[dict[str, Any]] = []
    rows = len(ways)
    for at, name in enumerate(ways):
        how, top = SHARINGS[name], 1 - at / rows
        notes.append(_note(palette, f"<b>{how.title.replace(', ', '<br>')}</b>", 0, top, xanchor="right", xshift=-10))
        for side, turned in enumerate((0, width)):
            done, number = treat(outlier, name, turned), 2 * at + side + 1
            key = "" if number == 1 else str(number)
            left = 0.51 * side
            bare = {"showticklabels": False, "showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
            axes[f"xaxis{key}"] = {**bare, "domain": [left, left + 0.49], "anchor": f"y{key}"}
            axes[f"yaxis{key}"] = {
                **bare,
                "domain": [top - (1 - _GAP) / rows, top],
                "anchor": f"x{key}",
                "autorange": "reversed",
            }
            data.append(
                {
                    "type": "heatmap",
                    "z": np.abs(done.errors).astype(np.float32),
                    "zmin": 0,
                    "zmax": 1,
                    "xaxis": f"x{key}",
                    "yaxis": f"y{key}",
                    "xgap": 1,
                    "ygap": 1,
                    "colorscale": [[0, palette.surface], [1, palette.gradients]],
                    "showscale": False,
                    "hovertemplate": "row %{y}, column %{x}: %{z:.3f}σ off<extra></extra>",
                }
            )
            caption = f"errors {sigmas(done.rms)}"
            low = top - (1 - _GAP) / rows
            notes.append(_note(palette, caption, left, low, xanchor="left", yshift=-2))
    for side, title in enumerate(("rounded as it is", f"rotated {width} at a time, rounded, turned back")):
        notes.append(_note(palette, title, 0.51 * side, 1, xanchor="left", yanchor="bottom", yshift=6))
    return figure(
        palette,
        data,
        height=_TOP_PX + rows * _ROW_PX,
        margin={"l": _TITLES_PX, "r": 8, "t": _TOP_PX, "b": 8},
        annotations=notes,
        **axes,
    )


def _note(palette: Palette, text: str, x: float, y: float, **options: Any) -> dict[str, Any]:
    place = {"xref": "paper", "yref": "paper", "yanchor": "top", "align": "left", **options}
    return label(palette, text, x=x, y=y, **place)


def means(outlier: float, sharing: str, width: int, steps: int, palette: Palette) -> Figure:
    """Error of the mean of 1, 2, … roundings, both axes logarithmic: to nearest it stays, stochastic it falls."""
    count = np.arange(1, steps + 1)
    lines: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for turned, colour, what in ((0, palette.accent, "as it is"), (width, palette.exponent, "rotated")):
        nearest = np.full(steps, treat(outlier, sharing, turned).rms)
        for values, name, dash in (
            (errors_of_means(outlier, sharing, turned, steps), f"stochastic, {what}", "solid"),
            (nearest, f"to nearest, {what}", "dot"),
        ):
            lines.append(
                marks(
                    "lines",
                    count,
                    values,
                    f"{name}: mean of %{{x}}, %{{y:.3f}}σ off",
                    line={"color": colour, "width": 2, "dash": dash},
                )
            )
            notes.append(
                label(
                    palette,
                    name,
                    x=np.log10(steps),
                    y=np.log10(float(values[-1])),
                    xanchor="left",
                    xshift=8,
                    colour=colour,
                )
            )
    every = np.concatenate([line["y"] for line in lines])
    low, high = np.log10(every.min()) - 0.12, np.log10(every.max()) + 0.12
    part_labels(notes, 220 / (high - low), 11)
    return figure(
        palette,
        lines,
        height=270,
        margin={"l": 8, "r": 160, "t": 8, "b": 8},
        xaxis=axis(palette, "steps averaged", type="log", range=[0, np.log10(steps)], showgrid=False, dtick=1),
        yaxis=axis(palette, "error, σ", type="log", range=[low, high], tickvals=_TICKS, tickformat="~g"),
        annotations=notes,
    )
