"""The picture of each experiment: what was measured, and what was expected where that is a curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from core.experiments import initialization, linear_bytes, transfer
from core.experiments.found import Found
from core.messages import message
from core.views.common.chart import MONO, Figure, axis, figure, label, legend_above, lying_bars, marks, rows_axis
from core.views.common.palette import Palette

_HIGH, _ROW, _NAMES = 260, 44, 190


def _bars(
    palette: Palette,
    names: Sequence[str],
    parts: Mapping[str, Sequence[float]],
    colours: Sequence[str],
    title: str,
    texts: Sequence[str],
) -> Figure:
    """Return horizontal bars, one per name, with its parts stacked and a text at the end."""
    rows = np.arange(len(names), dtype=np.float64)
    totals = np.sum(np.array(list(parts.values()), dtype=np.float64), axis=0)
    top = 1.3 * max(float(totals.max()), 1e-12)
    return figure(
        palette,
        [
            lying_bars(
                np.array(values, dtype=np.float64), rows, f"{part}: %{{x:.4g}}", marker={"color": colour}, name=part
            )
            for (part, values), colour in zip(parts.items(), colours, strict=True)
        ],
        height=90 + _ROW * len(names) + 26 * (len(parts) > 1),
        barmode="stack",
        bargap=0.4,
        showlegend=len(parts) > 1,
        legend=legend_above(),
        xaxis=axis(palette, title, range=[0, top], fixedrange=True),
        yaxis=rows_axis(palette, rows, names, ticksuffix="", range=[len(names) - 0.5, -0.5], fixedrange=True),
        annotations=[
            label(palette, text, x=float(total), y=float(row), xanchor="left", xshift=6, font={"family": MONO})
            for row, total, text in zip(rows, totals, texts, strict=True)
        ],
    )


def _initialization(found: Found, palette: Palette) -> Figure:
    looks = (
        (palette.gradients, "circle"),
        (palette.fraction, "square"),
        (palette.optimizer, "diamond"),
        (palette.master, "triangle-up"),
    )
    widths = np.array(initialization.WIDTHS, dtype=np.float64)
    shifts = {"Kaiming": 13, "truncated normal / √width": -12, "Xavier": -2}
    return figure(
        palette,
        [
            marks(
                "lines+markers",
                widths,
                np.array(found.series[way]),
                f"{way}, %{{x:,}} wide: %{{y:.3g}}",
                line={"color": colour, "width": 2},
                marker={"symbol": symbol, "size": 9, "color": colour},
            )
            for way, (colour, symbol) in zip(initialization.DEVIATIONS, looks, strict=True)
        ],
        height=_HIGH,
        margin={"l": 8, "r": _NAMES, "t": 16, "b": 8},
        xaxis=axis(
            palette, message("experiments.init.x"), type="log", tickvals=widths, tickformat=",d", fixedrange=True
        ),
        yaxis=axis(palette, message("experiments.init.y"), type="log", fixedrange=True, dtick=1),
        annotations=[
            label(
                palette,
                way,
                x=1,
                xref="paper",
                xanchor="left",
                xshift=10,
                y=math.log10(found.series[way][-1]),
                yshift=shifts.get(way, 0),
                colour=colour,
            )
            for way, (colour, _) in zip(initialization.DEVIATIONS, looks, strict=True)
        ],
    )


def _deep(found: Found, palette: Palette) -> Figure:
    parts = {
        part: [found.numbers[f"{name}, {part}"] for name in linear_bytes.OPTIMIZERS] for part in linear_bytes.PARTS
    }
    totals = [sum(values[row] for values in parts.values()) for row in range(len(linear_bytes.OPTIMIZERS))]
    colours = (palette.parameters, palette.activations, palette.gradients, palette.optimizer)
    texts = [f"{total:,.0f} B" for total in totals]
    return _bars(palette, tuple(linear_bytes.OPTIMIZERS), parts, colours, message("experiments.deep.x"), texts)


def _send(found: Found, palette: Palette) -> Figure:
    side = transfer.SIDES[-1]
    ways = ("made", "sent")
    milliseconds = [1e3 * found.numbers[f"{side} {way}"] for way in ways]
    if found.numbers["cuda"]:
        names = message("experiments.send.row.made"), message("experiments.send.row.sent")
    else:
        names = message("experiments.send.row.made_cpu"), message("experiments.send.row.sent_cpu")
    return _bars(
        palette,
        names,
        {"ms": milliseconds},
        (palette.memory_bound,),
        message("experiments.send.x", side=float(side)),
        [f"{time:.3g} ms" for time in milliseconds],
    )


_CHARTS: Mapping[str, Callable[[Found, Palette], Figure]] = {
    "init": _initialization,
    "deep": _deep,
    "send": _send,
}


def picture(name: str, found: Found, palette: Palette) -> Figure:
    """Return the figure of the experiment ``name``."""
    return _CHARTS[name](found, palette)
