"""What every figure shares: type, axes with units, thin rules, no chart junk.

Figures are plain dicts in plotly's schema (no plotly import), made from a `Palette`; numpy arrays go in as they are.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any, TypeAlias

from core.views.common.palette import Palette

Figure: TypeAlias = dict[str, Any]

SANS = "Inter, system-ui, sans-serif"
MONO = "'JetBrains Mono', ui-monospace, monospace"

_APART = 4
"""Pixels at least between two labels that stand side by side."""


def axis(palette: Palette, title: str, **options: Any) -> dict[str, Any]:
    """One axis: ``title`` with its unit, quiet grid, ticks in the product's type. ``options`` override."""
    return {
        "title": {"text": title, "font": {"family": SANS, "size": 13, "color": palette.muted}, "standoff": 8},
        "tickfont": {"family": MONO, "size": 12, "color": palette.muted},
        "gridcolor": palette.border,
        "linecolor": palette.border,
        "zeroline": False,
        "automargin": True,
        **options,
    }


def layout(palette: Palette, *, height: int, **options: Any) -> dict[str, Any]:
    """The base layout of a figure ``height`` pixels tall. ``options`` override."""
    return {
        "template": {"layout": {}},
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 16, "b": 8},
        "paper_bgcolor": palette.background,
        "plot_bgcolor": palette.background,
        "font": {"family": SANS, "size": 13, "color": palette.text},
        "showlegend": False,
        "dragmode": False,
        "hoverlabel": {
            "bgcolor": palette.surface,
            "bordercolor": palette.border,
            "font": {"family": MONO, "size": 12, "color": palette.text},
        },
        **options,
    }


def label(palette: Palette, text: str, **options: Any) -> dict[str, Any]:
    """A text annotation without arrow, for labelling data directly instead of by legend."""
    return {
        "text": text,
        "showarrow": False,
        "font": {"family": SANS, "size": 12, "color": palette.text},
        **options,
    }


def whiskers(
    low: Iterable[float], middle: Iterable[float], high: Iterable[float], colour: str, *, thickness: float, width: int
) -> Figure:
    """The error bars of values at ``middle``."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [top - value for value, top in zip(middle, high, strict=True)],
        "arrayminus": [value - bottom for bottom, value in zip(low, middle, strict=True)],
        "color": colour,
        "thickness": thickness,
        "width": width,
    }


def marks(mode: str, x: Iterable[Any], y: Iterable[Any], said: str | Sequence[str], **options: Any) -> Figure:
    """Points or a line, with what a mouse is told of them."""
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "hovertext": said, "hoverinfo": "text", **options}


def as_typed(text: str) -> str:
    """``text`` of a visitor's or of a file for a figure, where a tag would be one: with none in it."""
    return html.escape(text, quote=False)


NAMED_ROW = 42
"""Height of one bar's row in pixels: two lines of text beside it."""


def named_axis(palette: Palette, names: Sequence[str], texts: Sequence[str]) -> Figure:
    """The axis of the bars: each name with its figure on a second line."""
    ticks = [
        f"{name}<br><span style='font-family:{MONO};font-size:12px'>{text}</span>"
        for name, text in zip(names, texts, strict=True)
    ]
    font = {"size": 13, "color": palette.text}
    return axis(palette, "", tickvals=list(names), ticktext=ticks, tickfont=font, showgrid=False, ticksuffix="  ")


def apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Middles nearest to ``wanted`` (least squares) at which labels of these ``widths`` stand side by side."""
    offsets = [0.0]
    for left, right in pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2 + _APART)
    # Without the room that labels take, they may touch but not pass each other: runs that would are averaged.
    runs: list[list[float]] = []
    for middle, offset in zip(wanted, offsets, strict=False):
        runs.append([middle - offset])
        while len(runs) > 1 and mean(runs[-2]) > mean(runs[-1]):
            runs[-2:] = [runs[-2] + runs[-1]]
    level = [mean(run) for run in runs for _ in run]
    return [place + offset for place, offset in zip(level, offsets, strict=False)]
