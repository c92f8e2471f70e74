"""A running job over the range of its plan, as a picture."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from core.messages import message
from core.planning.actuals.logged_run import Array
from core.planning.actuals.progress import JobProgress
from core.views.common.chart import SANS, Figure, axis, figure, label, marks, rule
from core.views.common.palette import Palette
from core.views.plan.charts import scale_for

_DRAWN, _FURTHEST = 600, 2.0
"""Points drawn at most, about; and how far the picture goes beyond the plan's last end."""


def drawn_rows(days: Array) -> npt.NDArray[np.intp]:
    """Return rows enough for the picture: the first and the last of equal stretches of time, so that gaps keep their
    ends."""
    if len(days) <= _DRAWN:
        return np.arange(len(days))
    bins = np.floor((days - days[0]) / (days[-1] - days[0]) * (_DRAWN // 2))
    edges = np.flatnonzero(np.diff(bins))
    return np.unique(np.concatenate(([0], edges, edges + 1, [len(days) - 1])))


def tokens_over_days(p: JobProgress, palette: Palette) -> Figure:
    """Return a chart of tokens over days: the plan's P10–P90 and median, the log, and its projection."""
    scale = scale_for("tokens", p.goal)
    goal, plan = p.goal / scale.size, p.planned
    ends = [min(end, _FURTHEST * max(plan.high, p.day)) for end in p.ends]
    reach = 1.04 * max(plan.high, p.day, *ends, 0.0 if math.isnan(p.deadline) else p.deadline)
    at = drawn_rows(p.days)
    trained = p.trained / scale.size

    def line(x: Array, y: Array, style: Figure, **more: object) -> Figure:
        return marks("lines", x, y, "", line=style, **more)

    data = [
        line(
            np.array([0.0, plan.mid]),
            np.array([0.0, goal]),
            {"color": palette.parameters, "width": 1.5, "dash": "dash"},
        ),
    ]
    named = {"family": SANS, "size": 13}
    notes = [
        label(palette, message("actuals.chart.logged"), x=p.day, y=trained, xanchor="left", yanchor="top", xshift=6,
              yshift=-4, font={**named, "color": palette.accent}),
        label(palette, message("actuals.chart.plan"), x=(plan.low + plan.high) / 2, y=goal, yanchor="bottom", yshift=2,
              font={**named, "color": palette.parameters}),
    ]  # fmt: skip
    if not p.done:
        leads = [
            (end, trained + (goal - trained) * (end - p.day) / (true - p.day))  # an infinite end gains nothing
            for end, true in zip(ends, p.ends, strict=True)
        ]
        data += [
            line(np.array([p.day, x]), np.array([trained, y]), {"color": palette.accent, "width": 1.5, "dash": "dot"})
            for x, y in leads
        ]
        beyond = max(ends) > 0.8 * reach
        notes.append(
            label(
                palette,
                message("actuals.chart.leads"),
                x=max(ends),
                y=leads[-1][1],
                yanchor="top",
                xanchor="right" if beyond else "left",
                xshift=-12 if beyond else 4,
                yshift=-12,
                font={**named, "color": palette.accent},
            )
        )
    data.append(
        line(
            p.days[at],
            p.tokens[at] / scale.size,
            {"color": palette.accent, "width": 3},
            hoverinfo="all",
            hovertemplate=f"day %{{x:,.1f}}: {scale.title} %{{y:,.4~g}}<extra></extra>",
        )
    )
    shapes: list[Figure] = [
        {
            "type": "path",
            "path": f"M 0,0 L {plan.low:.9g},{goal:.9g} L {plan.high:.9g},{goal:.9g} Z",
            "fillcolor": palette.surface,
            "line": {"color": palette.border, "width": 1},
            "layer": "below",
        }
    ]
    if not math.isnan(p.deadline):
        shapes.append(
            rule(x=p.deadline, line={"color": palette.text, "width": 1.5}, yref="y", y1=goal)
        )  # fmt: skip
        notes.append(
            label(palette, message("actuals.chart.deadline", days=p.deadline), x=p.deadline, y=0, yanchor="bottom",
                  xanchor="left" if p.deadline < 0.7 * reach else "right", xshift=5 if p.deadline < 0.7 * reach else -5)
        )  # fmt: skip
    return figure(
        palette,
        data,
        height=340,
        hovermode="closest",
        shapes=shapes,
        annotations=notes,
        xaxis=axis(palette, message("actuals.chart.x"), range=[0, reach]),
        yaxis=axis(palette, scale.title, range=[0, max(goal, float(p.tokens.max()) / scale.size) * 1.1]),
    )
