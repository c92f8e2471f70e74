"""Charts: gradients under a scale, and scales that follow the gradients over a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from core.floats.range_and_precision import reach
from core.floats.scaling.gradients import Floats
from core.floats.scaling.loss_scaling import Followed, Scaled, borders
from core.messages import message
from core.views.common.chart import Figure, axis, figure, label, marks, part_labels, power, rule
from core.views.common.palette import Palette
from core.views.floats.text_training import scale_text

_FLOOR = -6
"""log10 of the smallest share drawn, one gradient in a million; smaller ones lie on the floor."""

_LETTER = 7
"""Pixels of a letter of the lines' names, which stand right of the last step."""


def gradients(scaled: Scaled, palette: Palette) -> Figure:
    """Return the share of gradients per binade after scaling, colored by what the format makes of them."""
    fmt = scaled.fmt
    here = reach(fmt)
    flush, normal, largest = here.smallest - 1, here.normal, here.largest
    low, high = flush - 16, largest + 10
    centres = scaled.edges[:-1] + 0.5
    inside = (centres > low) & (centres < high)
    lost_below, lost_above = centres < flush, centres > largest
    colours = np.where(
        lost_below | lost_above, palette.gradients, np.where(centres < normal, palette.activations, palette.fraction)
    )
    shares = scaled.shares * 100
    top = float(shares.max()) * 1.32
    parts = (
        (low, flush, message("scaling.part.zero", share=scaled.zero), palette.gradients),
        (flush, normal, message("scaling.part.subnormal", share=scaled.subnormal), palette.activations),
        (normal, largest, message("scaling.part.normal", share=max(scaled.kept, 0.0)), palette.fraction),
        (largest, high, message("scaling.part.overflow", share=scaled.overflow), palette.gradients),
    )
    ticks = list(range(math.ceil(low / 8) * 8, math.floor(high) + 1, 8))
    return figure(
        palette,
        [
            {
                "type": "bar",
                "x": centres[inside],
                "y": shares[inside],
                "width": 0.9,
                "marker": {"color": colours[inside].tolist()},
                "hovertemplate": message("scaling.hover.share", share="%{y:.3g}") + "<extra></extra>",
            }
        ],
        height=300,
        bargap=0,
        xaxis=axis(
            palette,
            message("scaling.axis.magnitude", scale=scale_text(scaled.power)),
            range=[low, high],
            tickvals=ticks,
            ticktext=[power(2, t) for t in ticks],
            showgrid=False,
        ),
        yaxis=axis(palette, message("scaling.axis.share"), range=[0, top], rangemode="tozero"),
        shapes=[rule({"width": 1, "dash": "dot", "color": palette.muted}, x=x) for x in (flush, normal, largest)],
        annotations=[
            label(palette, f"<b>{text.replace('<', '&lt;')}</b>", colour, x=(a + b) / 2, y=top, yanchor="top")
            for a, b, text, colour in parts
        ],
    )


def followed(run: Followed, palette: Palette) -> Figure:
    """Return a dynamic loss scale over the steps, under the largest that would fit, and what of each step becomes
    zero."""
    steps = np.arange(1.0, run.scales.size + 1)
    ceiling = borders(run.fmt)[2] - run.drawn.largest
    upper = [
        _line(steps, ceiling, message("scaling.line.largest"), palette.muted, 1),
        _line(steps, run.powers, message("scaling.line.scale"), palette.accent, 2.5, shape="hv"),
        _marks(steps, run.powers, run.skipped, message("scaling.line.skipped"), palette),
    ]
    return _stacked(upper, [_lost(steps, run.zero, palette)], palette)


def _lost(steps: Floats, zero: Floats, palette: Palette) -> dict[str, Any]:
    return _annotated(_line(steps, _log10(zero), message("scaling.line.zero"), palette.fraction, 1.5), zero)


def _annotated(trace: dict[str, Any], shares: Floats) -> dict[str, Any]:
    """Return a trace of the lower picture, which says its shares in percent."""
    hover = f"step %{{x}}: %{{customdata:.3~g}}% {trace['name']}<extra></extra>"
    return {**trace, "yaxis": "y2", "customdata": 100 * shares, "hovertemplate": hover}


def _log10(shares: Floats) -> Floats:
    return np.log10(np.maximum(shares, 10.0**_FLOOR))


def _line(steps: Floats, values: Floats, name: str, colour: str, width: float, **style: str) -> dict[str, Any]:
    return marks(
        "lines",
        steps,
        values,
        f"step %{{x}}: {name} 2^%{{y:.1f}}",
        name=name,
        line={"width": width, "color": colour, **style},
    )


def _marks(steps: Floats, values: Floats, which: npt.NDArray[np.bool_], name: str, palette: Palette) -> dict[str, Any]:
    return marks(
        "markers",
        steps[which],
        values[which],
        f"step %{{x}}: {name}",
        name=name,
        marker={"symbol": "x", "size": 8, "color": palette.gradients},
    )


def _stacked(upper: list[dict[str, Any]], lower: list[dict[str, Any]], palette: Palette) -> Figure:
    """Return the powers of two over the steps, and under them shares on a logarithmic axis; lines carry their names."""
    steps = float(upper[0]["x"][-1])
    powers = np.concatenate([trace["y"] for trace in upper])
    low, high = math.floor(powers.min()) - 1, math.ceil(powers.max()) + 1
    every = max(1, math.ceil((high - low) / 6))
    ticks = list(range(math.ceil(low / every) * every, high + 1, every))
    notes = [
        label(
            palette,
            trace["name"],
            x=steps,
            y=float(trace["y"][-1]),
            yref=trace.get("yaxis", "y"),
            xanchor="left",
            xshift=6,
            bgcolor=palette.background,
            colour=trace["line"]["color"],
        )
        for trace in (*upper, *lower)
        if trace["mode"] == "lines"
    ]
    part_labels(notes[:2], 175 / (high - low), 13)
    room = 14 + _LETTER * max(len(note["text"]) for note in notes)
    return figure(
        palette,
        [*upper, *lower],
        height=380,
        margin={"l": 8, "r": room, "t": 16, "b": 8},
        xaxis=axis(
            palette, message("scaling.axis.step"), range=[1, steps], tickformat=",d", showgrid=False, anchor="y2"
        ),
        yaxis=axis(
            palette,
            message("scaling.axis.scale"),
            domain=[0.43, 1],
            range=[low, high],
            tickvals=ticks,
            ticktext=[power(2, t) for t in ticks],
        ),
        yaxis2=axis(
            palette,
            message("scaling.axis.lost"),
            domain=[0, 0.35],
            range=[_FLOOR - 0.4, 0.4],
            tickvals=[_FLOOR, -4, -2, 0],
            ticktext=[f"≤ {power(10, _FLOOR + 2)}%", f"{power(10, -2)}%", "1%", "100%"],
        ),
        annotations=notes,
    )
