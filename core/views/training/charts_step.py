"""Memory of one accelerator over one step: every class stacked, and where it is highest."""

from __future__ import annotations

import math

import numpy as np

from core.training.device.peak import StepCurve
from core.units import significant
from core.views.common.chart import SANS, Figure, axis, figure, label, marks, over, rule
from core.views.common.palette import Palette
from core.views.training.charts_device import CLASSES, GIB, colour

_NAMES = {
    "start": "start",
    "forward": "forward",
    "loss": "loss",
    "steady": "alternating",
    "backward": "backward",
    "optimizer": "optimizer",
}


def step_curve(curve: StepCurve, usable: float, palette: Palette) -> Figure:
    """Stacked areas of every class over the points of one step, against the memory. usable: bytes, NaN if unknown."""
    x = np.arange(len(curve.phases))
    total = curve.total / GIB
    peak = curve.peak
    known = 0.0 if math.isnan(usable) else usable / GIB
    top = 1.15 * max(known, float(total.max()))
    starts = {phase: at for phase, at in curve.moments.items() if phase not in ("loss", "start")}
    at_limit = {"x": 0, "xref": "paper", "xanchor": "left", "y": known, "yanchor": "bottom", "yshift": 3}
    title = f"<b>memory capacity: {significant(known, 3)} GiB</b>"
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
            "one step, layer by layer",
            tickvals=list(starts.values()),
            ticktext=[_NAMES[phase] for phase in starts],
            tickfont={"family": SANS, "size": 12, "color": palette.muted},
            tickangle=0,
            showgrid=True,
            fixedrange=True,
        ),
        yaxis=axis(palette, "GiB on one accelerator", range=[0, top], fixedrange=True),
        annotations=[
            label(
                palette,
                f"<b>highest: {significant(float(total[peak]), 3)} GiB</b>",
                x=peak,
                y=float(total[peak]),
                yanchor="bottom",
                yshift=3,
                bgcolor=palette.background,
            ),
            over(
                palette,
                " · ".join(f"<b style='color:{colour(role, palette)}'>{name}</b>" for _, role, name in CLASSES),
                14,
            ),
            *([label(palette, title, **at_limit, bgcolor=palette.background)] if known else []),
        ],
        shapes=[rule({"color": palette.text, "width": 2, "dash": "dash"}, y=known)] if known else [],
    )
