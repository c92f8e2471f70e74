"""Picture of serving: the least time of a token over the users."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.messages import message
from core.serving.serving import Serving
from core.units import format_count, significant
from core.views.common.chart import Figure, figure, label, log_axis, marks, over, rule
from core.views.common.palette import Palette

_HEIGHT = 330


def _logs(palette: Palette, title: str, low: float, high: float, ticks: Sequence[float]) -> Figure:
    texts = [format_count(tick) for tick in ticks]
    return log_axis(palette, title, low, high, tickvals=list(ticks), ticktext=texts, fixedrange=True)


def _decades(low: float, high: float) -> list[float]:
    return [10.0**k for k in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]


def token_time(s: Serving, palette: Palette) -> Figure:
    """Return the least time of a token over users at once: by memory, by arithmetic, and where the memory is full."""
    fit = s.users_that_fit
    most = 2.0 ** math.ceil(math.log2(max(64.0, 2 * fit if math.isfinite(fit) else 64.0, 2.0 * s.users)))
    users = np.unique(np.geomspace(1, most, 60).round())
    placed = s.decode(users)
    by_memory = 1e3 * np.asarray(placed.work.bytes) / s.device.bandwidth
    by_arithmetic = 1e3 * np.asarray(placed.work.flop) / placed.peak
    low, high = float(by_arithmetic.min()) / 2, 2.5 * float(max(by_memory.max(), by_arithmetic.max()))
    curves = (
        (message("serving.picture.memory"), by_memory, palette.memory_bound, "solid"),
        (message("serving.picture.compute"), by_arithmetic, palette.compute_bound, "dash"),
    )
    side, shift = ("right", -4) if fit > 4 else ("left", 4)
    at_fit = {
        "x": math.log10(max(fit, 1)),
        "xanchor": side,
        "xshift": shift,
        "y": 0,
        "yref": "paper",
        "yanchor": "bottom",
    }
    text = message("serving.picture.fit", fit=fit)
    full = [label(palette, text, **at_fit, yshift=2, bgcolor=palette.background)] if 1 <= fit <= most else []
    at = 1e3 * float(s.decode(s.users).seconds)
    return figure(
        palette,
        [
            *(
                marks(
                    "lines",
                    users,
                    y,
                    f"{name}: %{{y:.3~r}} ms for %{{x:,}} users",
                    name=name,
                    line={"color": colour, "width": 2.5, "dash": dash},
                )
                for name, y, colour, dash in curves
            ),
            marks(
                "markers",
                [s.users],
                [at],
                "",
                cliponaxis=False,
                marker={"size": 11, "color": palette.text, "line": {"color": palette.background, "width": 1}},
            ),
        ],
        height=_HEIGHT,
        margin={"l": 8, "r": 8, "t": 40, "b": 8},
        xaxis=_logs(
            palette, message("serving.picture.users"), 1, most, [2.0**k for k in range(0, int(math.log2(most)) + 1, 2)]
        ),
        yaxis=log_axis(
            palette,
            message("serving.picture.time"),
            low,
            high,
            tickvals=_decades(low, high),
            ticktext=[str(significant(tick)) for tick in _decades(low, high)],
            fixedrange=True,
        ),
        shapes=[rule({"color": palette.text, "width": 1.5, "dash": "dash"}, x=fit)] if full else [],
        annotations=[
            over(palette, " · ".join(f"<b style='color:{colour}'>{name}</b>" for name, _, colour, _ in curves), 10),
            label(
                palette,
                f"<b>{significant(at, 3)} ms</b>",
                x=math.log10(s.users),
                y=math.log10(at),
                xanchor="left" if s.users < most / 8 else "right",
                yanchor="bottom",
                yshift=7,
                bgcolor=palette.background,
            ),
            *full,
        ],
    )
