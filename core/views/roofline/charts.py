"""Pictures of a layer on the roofline, and of the loss that one budget can reach."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from core.messages import message
from core.step_time.layer_roofline import LayerOperation
from core.views.common.chart import Figure, axis, figure, label, log_axis, marks
from core.views.common.palette import Palette

_RANGE = (0.1, 1e5)
_LEFT_ABOVE = {"xanchor": "right", "yanchor": "bottom"}
_RIGHT_BELOW = {"xanchor": "left", "yanchor": "top", "xshift": 10, "yshift": -16}


def roofline(
    operations: Sequence[LayerOperation],
    trail: LayerOperation,
    tokens: npt.NDArray[np.float64],
    matrix: Mapping[str, float],
    vector: float,
    bandwidth: float,
    palette: Palette,
    datasheet: tuple[Mapping[str, float], float] | None = None,
) -> Figure:
    """Return each operation at its intensity and the rate it can reach: blue where compute is the limit, red where
    memory is.

    trail: one matmul over micro-batches of ``tokens``, drawn as the way it climbs. matrix: dtype → peak of the matrix
    units in FLOP/s, that of the products with weights first and, where others stay wider, theirs after it. vector: peak
    of the vector units; bandwidth in bytes per second. datasheet: where ``matrix`` and ``bandwidth`` were measured, the
    same by the datasheet.
    """
    x = np.geomspace(*_RANGE, 161)
    first, *rest = matrix.values()
    ridge = first / bandwidth

    sheet, sheet_bandwidth = datasheet or ({}, bandwidth)

    def roof(peak: float, dash: str, bandwidth: float = bandwidth) -> Figure:
        line = {"color": palette.muted, "width": 2, "dash": dash}
        return marks("lines", x, np.minimum(peak, x * bandwidth) / 1e12, "", line=line)

    climbing = np.asarray(trail.placed.intensity, dtype=np.float64)
    path: Figure = marks(
        "lines+markers",
        climbing,
        np.asarray(trail.placed.attainable, dtype=np.float64) / 1e12,
        "%{text}: %{x:.3~r} FLOP/B, %{y:.4~r} TFLOP/s",
        line={"color": palette.accent, "width": 1.5, "dash": "dot"},
        marker={"size": 6, "color": palette.accent},
        text=[message("roofline.chart.trail", operation=trail.name, tokens=float(t)) for t in tokens],
    )
    dots = [
        marks(
            "markers",
            np.array([float(o.placed.intensity) for o in chosen]),
            np.array([float(o.placed.attainable) / 1e12 for o in chosen]),
            "%{text}: %{x:.3~r} FLOP/B, at most %{y:.4~r} TFLOP/s",
            text=[o.name for o in chosen],
            marker={"size": 12, "symbol": symbol, "color": colour, "line": {"color": palette.background, "width": 1}},
        )
        for chosen, symbol, colour in (
            ([o for o in operations if o.placed.bound == "compute"], "circle", palette.compute_bound),
            ([o for o in operations if o.placed.bound == "memory"], "diamond", palette.memory_bound),
        )
        if chosen
    ]
    top = math.log10(max([*matrix.values(), *sheet.values()]) / 1e12)
    low = min(float(o.placed.attainable) for o in operations) / 1e12
    low = min(low, float(np.min(np.asarray(trail.placed.attainable))) / 1e12)
    return figure(
        palette,
        [
            roof(first, "solid"),
            *(roof(peak, "solid") for peak in rest),
            *(roof(peak, "dash", sheet_bandwidth) for peak in sheet.values() if peak == peak),
            *([roof(vector, "dash")] if vector < first else []),
            path,
            *dots,
        ],
        height=430,
        hovermode="closest",
        xaxis=log_axis(
            palette,
            message("roofline.chart.x"),
            *_RANGE,
            tickvals=[10.0**k for k in range(-1, 6)],
            ticktext=["0.1", "1", "10", "100", "1,000", "10,000", "100,000"],
        ),
        yaxis=axis(
            palette, message("roofline.chart.y"), type="log", range=[math.log10(low) - 0.3, top + 0.25], dtick=1
        ),
        annotations=[
            *_peaks(matrix, sheet, palette),
            label(
                palette,
                message("roofline.chart.ridge_measured" if datasheet else "roofline.chart.ridge", ridge=ridge),
                x=math.log10(ridge),
                y=math.log10(first / 1e12),
                **(_RIGHT_BELOW if datasheet else _LEFT_ABOVE),
                colour=palette.muted,
            ),
            *(_ends(trail, climbing, tokens, palette)),
            *(_names(operations, palette)),
        ],
    )


def _peaks(matrix: Mapping[str, float], sheet: Mapping[str, float], palette: Palette) -> list[Figure]:
    """Return the names of the roofs; of a measured one and the datasheet's, which are near each other, on both
    sides."""

    def named(text: str, peak: float, *, above: bool) -> Figure:
        side = "bottom" if above else "top"
        return label(palette, text, x=5, y=math.log10(peak / 1e12), xanchor="right", yanchor=side)

    figures: list[Figure] = []
    for dtype, peak in matrix.items():
        other, name = sheet.get(dtype, peak), dtype if len(matrix) > 1 else message("roofline.chart.matmul")
        if other == peak or other != other:
            figures.append(named(message("roofline.chart.peak", rate=peak, name=name), peak, above=True))
        else:
            figures.append(
                named(message("roofline.chart.peak_measured", rate=peak, name=dtype), peak, above=peak > other)
            )
            expected = message("roofline.chart.peak_datasheet", rate=other, name=dtype)
            figures.append(named(expected, other, above=peak < other))
    return figures


def _ends(
    trail: LayerOperation, at: npt.NDArray[np.float64], tokens: npt.NDArray[np.float64], palette: Palette
) -> list[Figure]:
    """Return names the trail where it is alone, between the operations that move bytes and the ridge."""
    rates = np.asarray(trail.placed.attainable, dtype=np.float64) / 1e12
    ridge = trail.placed.peak / trail.placed.bandwidth
    alone = [(i, int(t)) for i, t in enumerate(tokens.tolist()) if 6 < at[i] < 0.6 * ridge]
    marked = alone[::3]
    return [
        label(
            palette,
            message("roofline.chart.tokens", tokens=float(count))
            if place
            else message("roofline.chart.trail", operation=trail.name, tokens=float(count)),
            x=math.log10(float(at[i])),
            y=math.log10(float(rates[i])),
            xanchor="left",
            xshift=9,
            yshift=-9,
            colour=palette.accent,
        )
        for place, (i, count) in enumerate(marked)
    ]


def _names(operations: Sequence[LayerOperation], palette: Palette) -> list[Figure]:
    """Return names beside all but the matmuls, which crowd under the roof and are read by hovering.

    They take turns right and left of the roof, because several share nearly one place.
    """
    others = sorted((o for o in operations if o.kind != "matmul"), key=lambda o: float(o.placed.intensity))
    at = [math.log10(float(o.placed.intensity)) for o in others]
    sides = [at[i + 2 :: 2] if i % 2 == 0 else at[1:i:2] for i in range(len(at))]  # names move away from these
    near = [sum(abs(at[i] - other) < 0.3 for other in side) for i, side in enumerate(sides)]
    return [
        label(
            palette,
            o.name,
            x=at[i],
            y=math.log10(float(o.placed.attainable) / 1e12),
            xanchor="right" if i % 2 else "left",
            xshift=-11 if i % 2 else 11,
            yshift=6 + 13 * near[i] if i % 2 else -4 - 13 * near[i],
        )
        for i, o in enumerate(others)
    ]
