"""Pictures of serving: users that fit over the context, and the least time of a token over the users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from core.serving.cache import CACHE_TYPES
from core.serving.serving import Serving
from core.units import format_count, significant
from core.views.common.chart import SANS, Figure, axis, label, layout
from core.views.common.palette import Palette

_CONTEXTS = np.unique(np.geomspace(512, 2**20, 90).round().astype(np.int64))
_TICKS = (1_000, 10_000, 100_000, 1_000_000)
_HEIGHT = 330
_DASHES = {"bf16": "solid", "fp8": "dash", "int8": "dot"}


def _logs(palette: Palette, title: str, low: float, high: float, ticks: Sequence[float]) -> Figure:
    return axis(
        palette,
        title,
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=list(ticks),
        ticktext=[format_count(tick) for tick in ticks],
        fixedrange=True,
    )


def _decades(low: float, high: float) -> list[float]:
    return [10.0**k for k in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]


def users_over_context(s: Serving, palette: Palette) -> Figure:
    """Users that fit over the tokens of each, for every format of the cache; the one in force is bold."""
    curves = {name: replace(s, stored=kind).users_over(_CONTEXTS) for name, kind in CACHE_TYPES.items()}
    most = max(2.0, *(float(users.max()) for users in curves.values()))
    here = s.users_that_fit
    marks = (
        [
            label(
                palette,
                f"<b>{format_count(here)} of {s.context:,} tokens</b>",
                x=math.log10(s.context),
                y=math.log10(max(here, 1)),
                xanchor="left" if s.context < 30_000 else "right",
                yanchor="bottom",
                yshift=6,
                bgcolor=palette.background,
            )
        ]
        if here >= 1
        else []
    )
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": _CONTEXTS,
                "y": np.where(users >= 1, users, np.nan),
                "line": {
                    "color": palette.parameters if name == s.stored.name else palette.muted,
                    "width": 3 if name == s.stored.name else 1.5,
                    "dash": _DASHES[name],
                },
                "hovertemplate": f"cache in {name}: %{{y:,.0f}} users of %{{x:,}} tokens<extra></extra>",
            }
            for name, users in curves.items()
        ]
        + [
            {
                "type": "scatter",
                "mode": "markers",
                "x": [s.context],
                "y": [here if here >= 1 else None],
                "marker": {"size": 11, "color": palette.parameters, "line": {"color": palette.background, "width": 1}},
                "hoverinfo": "skip",
            }
        ],
        "layout": layout(
            palette,
            height=_HEIGHT,
            margin={"l": 8, "r": 8, "t": 40, "b": 8},
            xaxis=_logs(palette, "tokens of each user", 512, 2**20, _TICKS),
            yaxis=_logs(palette, "users at once", 1, 2 * most, _decades(1, 2 * most)),
            annotations=[
                *marks,
                _named("<b>cache in</b> " + " · ".join(_line(n, s.stored.name) for n in curves), palette),
            ],
        ),
    }


def _line(name: str, chosen: str) -> str:
    drawn = {"solid": "——", "dash": "– –", "dot": "·····"}[_DASHES[name]]
    return f"<b>{name} {drawn}</b>" if name == chosen else f"{name} {drawn}"


def _named(text: str, palette: Palette) -> Figure:
    return label(
        palette,
        text,
        x=0,
        xref="paper",
        xanchor="left",
        y=1,
        yref="paper",
        yanchor="bottom",
        yshift=10,
        font={"family": SANS, "size": 12, "color": palette.text},
    )


def token_time(s: Serving, palette: Palette) -> Figure:
    """The least time of a token over users at once: by memory, by arithmetic, and where the memory is full."""
    fit = s.users_that_fit
    most = 2.0 ** math.ceil(math.log2(max(64.0, 2 * fit if math.isfinite(fit) else 64.0, 2.0 * s.users)))
    users = np.unique(np.geomspace(1, most, 60).round())
    placed = s.decode(users)
    by_memory = 1e3 * np.asarray(placed.work.bytes) / s.device.bandwidth
    by_arithmetic = 1e3 * np.asarray(placed.work.flop) / placed.peak
    low, high = float(by_arithmetic.min()) / 2, 2.5 * float(max(by_memory.max(), by_arithmetic.max()))
    curves = (
        ("by memory", by_memory, palette.memory_bound, "solid"),
        ("by arithmetic", by_arithmetic, palette.compute_bound, "dash"),
    )
    full = 1 <= fit <= most
    line = {"type": "line", "x0": fit, "x1": fit, "yref": "paper", "y0": 0, "y1": 1}
    at = 1e3 * float(s.decode(s.users).seconds)
    return {
        "data": [
            *(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": name,
                    "x": users,
                    "y": y,
                    "line": {"color": colour, "width": 2.5, "dash": dash},
                    "hovertemplate": f"{name}: %{{y:.3~r}} ms for %{{x:,}} users<extra></extra>",
                }
                for name, y, colour, dash in curves
            ),
            {
                "type": "scatter",
                "mode": "markers",
                "x": [s.users],
                "y": [at],
                "marker": {"size": 11, "color": palette.text, "line": {"color": palette.background, "width": 1}},
                "hoverinfo": "skip",
            },
        ],
        "layout": layout(
            palette,
            height=_HEIGHT,
            margin={"l": 8, "r": 8, "t": 40, "b": 8},
            xaxis=_logs(palette, "users at once", 1, most, [2.0**k for k in range(0, int(math.log2(most)) + 1, 2)]),
            yaxis=axis(
                palette,
                "ms a token, at least",
                type="log",
                range=[math.log10(low), math.log10(high)],
                tickvals=_decades(low, high),
                ticktext=[str(significant(tick)) for tick in _decades(low, high)],
                fixedrange=True,
            ),
            shapes=[line | {"line": {"color": palette.text, "width": 1.5, "dash": "dash"}}] if full else [],
            annotations=[
                _named(
                    " · ".join(f"<b style='color:{colour}'>{name}</b>" for name, _, colour, _ in curves),
                    palette,
                ),
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
                *(
                    [
                        label(
                            palette,
                            f"<b>{format_count(fit)} fit</b>",
                            x=math.log10(fit),
                            y=0,
                            yref="paper",
                            xanchor="right" if fit > 4 else "left",
                            yanchor="bottom",
                            xshift=-4 if fit > 4 else 4,
                            yshift=2,
                            bgcolor=palette.background,
                        )
                    ]
                    if full
                    else []
                ),
            ],
        ),
    }
