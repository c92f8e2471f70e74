"""Picture of predicted against measured step times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.messages import message
from core.units import significant
from core.views.common.chart import Figure, axis, label, layout
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
    low = float(min(measured.min(), predicted.min())) / 1.3
    high = float(max(measured.max(), predicted.max())) * 1.3
    ends = np.array([low, high])
    marks = [m * 10.0**k for k in range(-3, 5) for m in (1, 3) if low <= m * 10.0**k <= high]
    ticks = {"type": "log", "tickvals": marks, "ticktext": [significant(mark, 3) for mark in marks]}
    reach = {"range": [float(np.log10(low)), float(np.log10(high))]}
    data: list[Figure] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": np.concatenate([ends, ends[::-1]]),
            "y": np.concatenate([ends * (1 + _BAND), ends[::-1] / (1 + _BAND)]),
            "fill": "toself",
            "fillcolor": palette.surface,
            "line": {"width": 0},
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "x": ends,
            "y": ends,
            "line": {"color": palette.muted, "width": 1, "dash": "dot"},
            "hoverinfo": "skip",
        },
    ]
    for kind, at, tint, symbol in (
        (message("search.chart.dense"), ~mixture, palette.fraction, "circle"),
        (message("search.chart.mixture"), mixture, palette.gradients, "diamond"),
    ):
        if at.any():
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": kind,
                    "x": measured[at],
                    "y": predicted[at],
                    "text": [name for name, display in zip(names, at.tolist(), strict=True) if display],
                    "marker": {"size": 7, "symbol": symbol, "color": tint, "opacity": 0.75},
                    "hovertemplate": "%{text}<br>%{x:.3~f} s, %{y:.3~f} s<extra></extra>",
                }
            )
    keys = (
        (f"● {message('search.chart.dense')}", palette.fraction),
        (f"◆ {message('search.chart.mixture')}", palette.gradients),
        (message("search.chart.band", share=_BAND), palette.muted),
    )
    text = " · ".join(f"<span style='color:{tint}'>{word}</span>" for word, tint in keys)
    return {
        "data": data,
        "layout": layout(
            palette,
            height=460,
            margin={"l": 8, "r": 16, "t": 38, "b": 8},
            xaxis=axis(palette, message("search.chart.measured"), **ticks, **reach),
            yaxis=axis(palette, message("search.chart.predicted"), **ticks, **reach),
            annotations=[
                label(palette, text, x=0, xref="paper", xanchor="left", y=1, yref="paper", yanchor="bottom", yshift=6)
            ],
        ),
    }
