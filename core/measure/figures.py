"""The chart of this room: achieved rate per dtype beside the datasheet peak."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.figure import MONO, SANS, Figure, axis, label, layout
from core.measure.report import Bar, rate_text
from core.palette import Palette

_ROW_PX = 68
_TOOLS_PX = 32
"""Above the rows, so that plotly's tool icons lie over no label."""

_LABEL_SHARE = 0.24
"""Share of the axis that a rate's label takes: a longer bar has it inside, a peak closer than that gets it behind."""


def rates(bars: Sequence[Bar], palette: Palette) -> Figure:
    """Horizontal bars of achieved FLOP/s with their p10–p90 spread, and a tick at the dense datasheet peak.

    A dtype without a rate says why in its row. Where the peak of one is known and another's not, that row says so.
    """
    values = [v for bar in bars for v in (bar.rate, bar.high, bar.peak) if not math.isnan(v)]
    top = max(values, default=1e9)
    unit, scale = ("TFLOP/s", 1e12) if top >= 1e12 else ("GFLOP/s", 1e9)
    span = 1.3 * top / scale
    ys = np.arange(len(bars), dtype=np.float64)
    rate, low, high, peak = np.array([(b.rate, b.low, b.high, b.peak) for b in bars]).T / scale
    done, known = ~np.isnan(rate), ~np.isnan(peak)
    data: list[Figure] = [
        {
            "type": "bar",
            "orientation": "h",
            "y": ys[done],
            "x": rate[done],
            "width": 0.44,
            "marker": {"color": palette.compute_bound, "line": {"width": 0}},
            "error_x": {
                "type": "data",
                "symmetric": False,
                "array": (high - rate)[done],
                "arrayminus": (rate - low)[done],
                "color": palette.text,
                "thickness": 1.5,
                "width": 5,
            },
            "hovertext": [_hover(bar) for bar in bars if not math.isnan(bar.rate)],
            "hoverinfo": "text",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "y": ys[known],
            "x": peak[known],
            "marker": {"symbol": "line-ns", "size": 26, "line": {"width": 2.5, "color": palette.text}},
            "hovertext": [f"{bar.dtype}: dense peak {rate_text(bar.peak)}" for bar in bars if not math.isnan(bar.peak)],
            "hoverinfo": "text",
        },
    ]
    texts = [text for y, bar in enumerate(bars) for text in _labels(palette, y, bar, scale, span, some=known.any())]
    ticks = [f"<b>{bar.dtype}</b>" + (f"<br>{bar.size}" if bar.size else "") for bar in bars]
    return {
        "data": data,
        "layout": layout(
            palette,
            height=_ROW_PX * len(bars) + 48 + _TOOLS_PX,
            xaxis=axis(
                palette,
                f"achieved rate, {unit}" if values else "",
                range=[0, span],
                fixedrange=True,
                showticklabels=bool(values),
            ),
            yaxis=axis(
                palette,
                "",
                tickmode="array",
                tickvals=ys,
                ticktext=ticks,
                range=[len(bars) - 0.5, -0.5],
                fixedrange=True,
                showgrid=False,
                tickfont={"family": MONO, "size": 13, "color": palette.text},
            ),
            annotations=texts,
            margin={"l": 8, "r": 8, "t": _TOOLS_PX, "b": 8},
        ),
    }


def _hover(bar: Bar) -> str:
    return f"{bar.dtype}: median {rate_text(bar.rate)}<br>p10–p90 {rate_text(bar.low)} to {rate_text(bar.high)}"


def _labels(palette: Palette, y: int, bar: Bar, scale: float, span: float, *, some: bool) -> list[Figure]:
    """The texts of one row: the rate (or why there is none) at the bar's end, and the peak under its tick.

    some: whether another row's peak is known, so that an unknown one must be said here.
    """
    left = {"y": y, "xanchor": "left", "align": "left"}
    quiet = {"family": SANS, "size": 12, "color": palette.muted}
    peak = bar.peak / scale
    texts: list[Figure] = []
    if math.isnan(bar.rate):
        texts.append(label(palette, bar.note, x=0, xshift=8, **left) | {"font": quiet})
    else:
        end, colour = bar.high / scale, palette.text
        if bar.low / scale > _LABEL_SHARE * span:
            end, colour = 0.0, palette.background  # inside the bar, where neither spread nor peak crosses it
        elif 0 <= peak - end < _LABEL_SHARE * span:
            end = peak
        strong = {"family": MONO, "size": 14, "color": colour}
        said = f"<b>{rate_text(bar.rate)}</b>"
        texts.append(label(palette, said, x=end, xshift=12, **left) | {"font": strong})
        if some and math.isnan(peak):
            texts.append(
                label(palette, "peak unknown", x=0, y=y, yshift=-27, xshift=6, xanchor="left") | {"font": quiet}
            )
    if not math.isnan(peak):
        text = f"peak {rate_text(bar.peak)}"
        texts.append(label(palette, text, x=peak, y=y, yshift=-27, xshift=-3, xanchor="left") | {"font": quiet})
    return texts
