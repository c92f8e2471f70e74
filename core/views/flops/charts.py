"""Pictures of a count: where the FLOPs of one token go, how they grow, and where a published run’s hours went."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from core.messages import message
from core.models.attention_share import Growth
from core.models.flops import FlopCount
from core.units import significant
from core.views.common.chart import (
    NAMED_ROW,
    Figure,
    axis,
    figure,
    label,
    log_axis,
    lying_bars,
    marks,
    named_axis,
    rule,
)
from core.views.common.palette import Palette
from core.views.flops.text import attention_name

_CHARACTER = 0.018
"""Width of one character of a bar's text, as a share of the narrowest plot it is drawn in (about 400 pixels)."""

_SCALES = (("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6), ("kFLOP", 1e3), ("FLOP", 1.0))


def flops_by_component(count: FlopCount, palette: Palette) -> Figure:
    """Return a bar chart of training FLOPs per token, one bar per component, forward then backward.

    The numbers are under the names, where no narrow screen cuts them off. Weight matmuls have the color of parameters,
    and attention matmuls that of activations; backward is lighter.
    """
    total = count.training
    parts = count.parts[::-1]
    forward = np.array([part.flop for part in parts], dtype=np.float64)
    backward = forward * (total / count.forward - 1)
    both = forward + backward
    unit, size = next(((u, s) for u, s in _SCALES if float(both.max()) >= s), _SCALES[-1])
    texts = [f"{significant(v / size)} {unit} · {100 * v / total:.1f}%" for v in both.tolist()]
    grows = message("flops.components.grows")
    notes = [grows if part.square and part.group == "attention" else "" for part in parts]
    # The longest bar is not always the one whose note reaches furthest.
    reach = max(v / (1 - len(note) * _CHARACTER) for v, note in zip(both.tolist(), notes, strict=True))
    longest = int(np.argmax(both))
    names = [part.name for part in parts]
    colours = [palette.activations if p.square else palette.parameters for p in parts]

    def bars(name: str, values: npt.NDArray[np.float64], base: npt.NDArray[np.float64], opacity: float) -> Figure:
        return lying_bars(
            values / size,
            names,
            "%{y}: %{customdata}",
            name=name,
            base=base / size,
            marker={"color": colours, "opacity": opacity},
            customdata=[f"{name} {significant(v / size)} {unit}" for v in values.tolist()],
        )

    behind = bars(message("flops.components.backward_name"), backward, forward, 0.4)
    behind |= {
        "text": notes,
        "textposition": "outside",
        "textfont": {"size": 12, "color": palette.text},
        "cliponaxis": False,
        "constraintext": "none",
    }
    inside = [
        label(palette, text, colour, x=at / size, y=names[longest], xanchor="left", xshift=8)
        for text, at, colour in (
            (message("flops.components.forward"), 0.0, palette.background),
            (message("flops.components.backward"), float(forward[longest]), palette.text),
        )
    ]
    return figure(
        palette,
        [bars(message("flops.components.forward"), forward, np.zeros_like(forward), 1.0), behind],
        height=NAMED_ROW * len(parts) + 64,
        bargap=0.45,
        barmode="overlay",
        annotations=inside,
        xaxis=axis(palette, message("flops.components.axis", unit=unit), range=[0, 1.02 * reach / size]),
        yaxis=named_axis(palette, names, texts),
    )


def sequence_sweep(growth: Growth, palette: Palette) -> Figure:
    """Return a chart of attention matmuls and all other FLOPs by sequence length, with the length at which they
    cross."""
    x = growth.lengths.astype(np.float64)
    weights, squares = growth.weights, growth.squares
    unit, size = next(((u, s) for u, s in _SCALES if float(weights[0]) >= s), _SCALES[-1])
    top = float(np.log10(max(weights[-1], squares[-1]) / size)) + 0.25
    low = float(np.log10(min(weights[0], squares[0]) / size)) - 0.1
    yours = message("flops.growth.yours", length=float(growth.here))
    places: list[tuple[float, str, str, str, float]] = [(float(growth.here), yours, palette.accent, "solid", 1.0)]
    if growth.attention == "full":
        places.append((float(growth.six_h), f"6H = {growth.six_h:,}", palette.muted, "dot", 0.86))
    if math.isfinite(growth.crossing):
        crossing = message("flops.growth.crossing", length=growth.crossing)
        places.append((growth.crossing, crossing, palette.text, "dash", 0.93))
    inside = [mark for mark in places if x[0] <= mark[0] <= x[-1]]
    place = int(len(x) * 0.2)
    weight_matmuls = message("flops.growth.weights")
    return figure(
        palette,
        [
            _line(x, weights / size, palette.parameters, f"{weight_matmuls}: %{{y:.4s}} {unit}"),
            _line(x, squares / size, palette.activations, f"{attention_name(growth.states)}: %{{y:.4s}} {unit}"),
        ],
        height=360,
        hovermode="x unified",
        xaxis=log_axis(
            palette,
            message("flops.growth.x"),
            float(x[0]),
            float(x[-1]),
            tickvals=[4.0**k for k in range(4, 11)],
            ticktext=[f"{4**k:,}" if k < 10 else "1,048,576" for k in range(4, 11)],
        ),
        yaxis=axis(palette, message("flops.components.axis", unit=unit), type="log", range=[low, top], dtick=1),
        shapes=[
            rule(x=at, line={"color": colour, "width": 1.5, "dash": dash}, y1=height)
            for at, _, colour, dash, height in inside
        ],
        annotations=[
            label(
                palette,
                text,
                x=float(np.log10(at)),
                y=height,
                yref="paper",
                xanchor=side,
                yanchor="top",
                xshift=-5 if side == "right" else 5,
                colour=colour,
            )
            for (at, text, colour, _, height), side in ((mark, _side(mark[0], growth, x)) for mark in inside)
        ]
        + [
            label(palette, text, x=float(np.log10(x[at])), y=float(np.log10(y[at] / size)), xanchor="left", **side)
            for text, y, at, side in (
                (weight_matmuls, weights, place, {"yanchor": "bottom", "yshift": 4}),
                (attention_name(growth.states), squares, place, {"yanchor": "top", "xshift": 8}),
            )
        ],
    )


def _side(at: float, growth: Growth, x: npt.NDArray[np.float64]) -> str:
    """Return the side of its mark on which a label ends: away from the crossing, and inside the picture."""
    return "right" if at > x[-1] / 30 or 0.5 * growth.crossing < at < growth.crossing else "left"


def _line(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], colour: str, hover: str) -> Figure:
    return marks("lines", x, y, hover, line={"color": colour, "width": 2.5})
