"""Memory of one accelerator over one step: every class stacked, and where it is highest."""

from __future__ import annotations

import math

import numpy as np

from core.messages import message
from core.training.device.peak import StepCurve
from core.views.common.chart import SANS, Figure, axis, colored, figure, label, marks, over, rule
from core.views.common.palette import Palette
from core.views.training.charts_device import CLASSES, GIB, colour


def step_curve(curve: StepCurve, usable: float, palette: Palette) -> Figure:
    """Return the stacked areas of every class over the points of one step, against the memory. usable: bytes, NaN if
    unknown."""
    x = np.arange(len(curve.phases))
    total = curve.total / GIB
    peak = curve.peak
    known = 0.0 if math.isnan(usable) else usable / GIB
    top = 1.15 * max(known, float(total.max()))
    starts = {
        phase: at for phase, at in curve.moments.items() if phase in ("forward", "steady", "backward", "optimizer")
    }
    at_limit = {"x": 0, "xref": "paper", "xanchor": "left", "y": known, "yanchor": "bottom", "yshift": 3}
    title = message("memory.picture.capacity", capacity=usable)
    return figure(
        palette,
        [
            marks(
                "lines",
                x,
                np.asarray(curve.bytes[field]) / GIB,
                f"{name}: %{{y:,.2f}} GiB",
                name=name,
                stackgroup="one",
                line={"width": 0},
                fillcolor=colour(role, palette),
            )
            for field, role, name in CLASSES
        ],
        height=360,
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        hovermode="x",
        xaxis=axis(
            palette,
            message("memory.step.axis"),
            tickvals=list(starts.values()),
            ticktext=[message(f"memory.phase.{phase}") for phase in starts],
            tickfont={"family": SANS, "size": 12, "color": palette.muted},
            tickangle=0,
            showgrid=True,
            fixedrange=True,
        ),
        yaxis=axis(palette, message("memory.picture.axis"), range=[0, top], fixedrange=True),
        annotations=[
            label(
                palette,
                message("memory.step.peak", peak=float(curve.total[peak])),
                x=peak,
                y=float(total[peak]),
                yanchor="bottom",
                yshift=3,
                bgcolor=palette.background,
            ),
            over(palette, colored((name, colour(role, palette)) for _, role, name in CLASSES), 14),
            *([label(palette, title, **at_limit, bgcolor=palette.background)] if known else []),
        ],
        shapes=[rule({"color": palette.text, "width": 2, "dash": "dash"}, y=known)] if known else [],
    )
