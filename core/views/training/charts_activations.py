"""Pictures of activations: the tensors of one layer, and what fits over micro-batch and sequence length."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.units import significant
from core.views.common.chart import MONO, Figure, axis, figure, marks, over
from core.views.common.palette import Palette
from core.views.training.charts_device import GIB

_CELL = 40


def fit_map(
    totals: npt.NDArray[np.float64],
    batches: Sequence[int],
    lengths: Sequence[int],
    usable: float,
    here: tuple[float, float],
    palette: Palette,
) -> Figure:
    """GiB on one accelerator over micro-batch (rows) and sequence length (columns), and where it is full.

    totals: bytes, a row for each micro-batch.  usable: bytes, NaN where unknown.  here: the plan's length and batch.
    """
    known = usable if not math.isnan(usable) else float(totals.max())
    columns, rows = len(lengths), len(batches)
    at_x, at_y = (math.log2(here[0] / lengths[0]), math.log2(here[1] / batches[0]))
    frontier = _frontier(totals, usable)
    inside = -0.5 <= at_x <= columns - 0.5 and -0.5 <= at_y <= rows - 0.5
    corners = {"x0": at_x - 0.5, "x1": at_x + 0.5, "y0": at_y - 0.5, "y1": at_y + 0.5}
    yours = {"type": "rect", **corners, "line": {"color": palette.accent, "width": 3}}
    notes = ["GiB on one accelerator"]
    notes += ["beyond the dashed line it does not fit"] * (not math.isnan(usable)) + ["outlined: yours"] * inside
    return figure(
        palette,
        [
            {
                "type": "heatmap",
                "z": totals / known,
                "x": np.arange(columns),
                "y": np.arange(rows),
                "zmin": 0.0,
                "zmax": 2.0,
                "colorscale": [
                    [0, palette.background],
                    [0.5, palette.activations],
                    [0.5, palette.gradients],
                    [1, palette.gradients],
                ],
                "opacity": 0.5,
                "showscale": False,
                "xgap": 1,
                "ygap": 1,
                "text": [[significant(float(value) / GIB, 3) for value in row] for row in totals],
                "texttemplate": "%{text}",
                "textfont": {"family": MONO, "size": 12, "color": palette.text},
                "hovertemplate": "%{text} GiB<extra></extra>",
            },
            marks(
                "lines",
                [x for i in range(columns) for x in (i - 0.5, i + 0.5)],
                [y for i in range(columns) for y in (frontier[i], frontier[i])],
                "",
                line={"color": palette.text, "width": 2, "dash": "dash"},
            ),
        ],
        height=_CELL * rows + 84,
        margin={"l": 8, "r": 8, "t": 26, "b": 8},
        xaxis=_cells(palette, "sequence length, tokens", lengths),
        yaxis=_cells(palette, "micro-batch, sequences", batches),
        annotations=[over(palette, f"<b>{'; '.join(notes)}</b>", 4)],
        shapes=[yours] if inside else [],
    )


def _cells(palette: Palette, title: str, sizes: Sequence[int]) -> Figure:
    """The axis of a map: a size for each row or column."""
    last, texts = len(sizes) - 0.5, [f"{size:,}" for size in sizes]
    ticks = {"tickvals": list(range(len(sizes))), "ticktext": texts, "range": [-0.5, last]}
    return axis(palette, title, **ticks, showgrid=False, fixedrange=True)


def _frontier(totals: npt.NDArray[np.float64], usable: float) -> list[float]:
    """For each column the height up to which rows fit, in rows from the first one's middle."""
    if math.isnan(usable):
        return [totals.shape[0] - 0.5] * totals.shape[1]
    return [
        float(next((i for i, total in enumerate(column) if total > usable), len(column))) - 0.5 for column in totals.T
    ]
