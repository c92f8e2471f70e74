"""Picture of predicted against measured step times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.messages import message
from core.views.common.chart import Figure, axis, colored, figure, marks, over, round_ticks
from core.views.common.palette import Palette

_BAND = 0.2


def predicted_against_measured(
    measured: npt.NDArray[np.float64],
    predicted: npt.NDArray[np.float64],
    names: Sequence[str],
    mixture: npt.NDArray[np.bool_],
    palette: Palette,
) -> Figure:
    """Return each published step as a point about the diagonal, with a band of 20% around it."""
    low, high = float(min(measured.min(), predicted.min())) / 1.3, float(max(measured.max(), predicted.max())) * 1.3
    ends: npt.NDArray[np.float64] = np.array([low, high])
    ticks = round_ticks(low, high, (1, 3))
    back = ends[::-1]
    there: npt.NDArray[np.float64] = np.concatenate([ends, back])
    around = np.concatenate([ends * (1 + _BAND), back / (1 + _BAND)])
    kinds = (
        (message("search.chart.dense"), ~mixture, palette.fraction, "circle", "●"),
        (message("search.chart.mixture"), mixture, palette.gradients, "diamond", "◆"),
    )
    keys = [(f"{sign} {kind}", color) for kind, _, color, _, sign in kinds]
    band = message("search.chart.band", share=_BAND), palette.muted
    filled = {"fill": "toself", "fillcolor": palette.surface, "line": {"width": 0}}
    return figure(
        palette,
        [
            marks("lines", there, around, "", **filled),
            marks("lines", ends, ends, "", line={"color": palette.muted, "width": 1, "dash": "dot"}),
            *(
                marks(
                    "markers",
                    measured[at],
                    predicted[at],
                    "%{text}<br>%{x:.3~f} s, %{y:.3~f} s",
                    name=kind,
                    text=[name for name, display in zip(names, at.tolist(), strict=True) if display],
                    marker={"size": 7, "symbol": symbol, "color": color, "opacity": 0.75},
                )
                for kind, at, color, symbol, _ in kinds
                if at.any()
            ),
        ],
        height=460,
        margin={"l": 8, "r": 16, "t": 38, "b": 8},
        xaxis=axis(palette, message("search.chart.measured"), **ticks),
        yaxis=axis(palette, message("search.chart.predicted"), **ticks),
        annotations=[over(palette, colored([*keys, band]), 6)],
    )
