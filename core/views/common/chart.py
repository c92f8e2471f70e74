"""What every figure shares: type, axes with units, thin rules, no chart junk.

Figures are plain dicts in plotly's schema (no plotly import), made from a `Palette`; numpy arrays go in as they are.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any, TypeAlias

from core.units import significant
from core.views.common.palette import Palette

Figure: TypeAlias = dict[str, Any]

SANS = "Inter, system-ui, sans-serif"
MONO = "'JetBrains Mono', ui-monospace, monospace"

_APART = 4
"""Pixels at least between two labels that stand side by side."""


def axis(palette: Palette, title: str, **options: Any) -> dict[str, Any]:
    """Return one axis: ``title`` with its unit, quiet grid, ticks in the product's type. ``options`` override."""
    return {
        "title": {"text": title, "font": {"family": SANS, "size": 13, "color": palette.muted}, "standoff": 8},
        "tickfont": {"family": MONO, "size": 12, "color": palette.muted},
        "gridcolor": palette.border,
        "linecolor": palette.border,
        "zeroline": False,
        "automargin": True,
        **options,
    }


def log_axis(palette: Palette, title: str, low: float, high: float, **options: Any) -> dict[str, Any]:
    """Return a logarithmic axis from ``low`` to ``high``."""
    return axis(palette, title, type="log", range=[math.log10(low), math.log10(high)], **options)


def layout(palette: Palette, *, height: int, **options: Any) -> dict[str, Any]:
    """Return the base layout of a figure ``height`` pixels tall. ``options`` override."""
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


def figure(palette: Palette, data: Sequence[Figure], *, height: int, **options: Any) -> Figure:
    """Return traces on the base layout. ``options`` are of the layout."""
    return {"data": data, "layout": layout(palette, height=height, **options)}


def label(palette: Palette, text: str, colour: Any = "", size: Any = 12, **options: Any) -> Figure:
    """Return a text annotation without arrow, for labelling data directly instead of by legend. color: that of text
    unless given; size: in pixels."""
    font = {"family": SANS, "size": size, "color": colour or palette.text}
    return {"text": text, "showarrow": False, "font": font, **options}


def legend_above(y: float = 1.0) -> Figure:
    """Return a legend in one line over the picture."""
    place = {"orientation": "h", "x": 0, "y": y, "yanchor": "bottom", "traceorder": "normal"}
    return {**place, "font": {"family": SANS, "size": 12}}


def over(palette: Palette, text: str, up: int, **options: Any) -> Figure:
    """Return a text over the picture's left edge. up: pixels. ``options``: as of `label`."""
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper", "yanchor": "bottom"}
    return label(palette, text, **place, yshift=up, **options)


def whiskers(
    low: Iterable[float], middle: Iterable[float], high: Iterable[float], colour: str, *, thickness: float, width: int
) -> Figure:
    """Return the error bars of values at ``middle``."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [top - value for value, top in zip(middle, high, strict=True)],
        "arrayminus": [value - bottom for bottom, value in zip(low, middle, strict=True)],
        "color": colour,
        "thickness": thickness,
        "width": width,
    }


def marks(mode: str, x: Iterable[Any], y: Iterable[Any], hover: str | Sequence[str], **options: Any) -> Figure:
    """Return points or a line. hover: one template for all, one text per point, or nothing."""
    return {"type": "scatter", "mode": mode, "x": x, "y": y, **_hover(hover), **options}


def lying_bars(x: Iterable[Any], y: Iterable[Any], hover: str | Sequence[str], **options: Any) -> Figure:
    """Return bars as long as ``x``, from left to right, in the rows ``y``. hover: as of `marks`."""
    return {"type": "bar", "orientation": "h", "x": x, "y": y, **_hover(hover), **options}


def _hover(hover: str | Sequence[str]) -> Figure:
    if not hover:
        return {"hoverinfo": "skip"}
    if isinstance(hover, str):
        return {"hovertemplate": f"{hover}<extra></extra>"}
    return {"hovertext": hover, "hoverinfo": "text"}


def rule(line: Figure, *, x: Any = None, y: Any = None, **options: Any) -> Figure:
    """Return a line over the whole picture, upright at ``x`` or level at ``y``."""
    at, along, place = ("x", "y", x) if y is None else ("y", "x", y)
    ends = {f"{at}0": place, f"{at}1": place, f"{along}0": 0, f"{along}1": 1, f"{along}ref": "paper"}
    return {"type": "line", **ends, "line": line, **options}


def band(low: float, high: float, colour: str, **options: Any) -> Figure:
    """Return a rectangle behind the picture from ``low`` to ``high``, as high as it."""
    ends = {"x0": low, "x1": high, "yref": "paper", "y0": 0, "y1": 1}
    return {"type": "rect", **ends, "fillcolor": colour, "line": {"width": 0}, "layer": "below", **options}


def round_ticks(low: float, high: float, digits: Sequence[int] = (1, 2, 5), **options: Any) -> Figure:
    """Return the range and ticks of a logarithmic axis: these digits times powers of ten."""
    at = [digit * 10.0**k for k in range(-6, 9) for digit in digits if low <= digit * 10.0**k <= high]
    reach, texts = [math.log10(low), math.log10(high)], [significant(tick, 3) for tick in at]
    return {"type": "log", "range": reach, "tickvals": at, "ticktext": texts}


def colored(words: Iterable[tuple[str, str]]) -> str:
    """Return words, each in its color, in one line."""
    return " · ".join(f"<b style='color:{color}'>{word}</b>" for word, color in words)


def power(base: int, exponent: int) -> str:
    """Return a power of ten for a tick, such as 10⁻³."""
    return f"{base}<sup>{exponent}</sup>".replace("-", "−")


def as_typed(text: str) -> str:
    """Return ``text`` of a user or a file for a figure, with tags escaped."""
    return html.escape(text, quote=False)


NAMED_ROW = 42
"""Height of one bar's row in pixels: two lines of text beside it."""


def rows_axis(palette: Palette, at: Iterable[Any], texts: Sequence[str], size: int = 13, **options: Any) -> Figure:
    """Return the axis of lying bars: the name of each row. ``options`` override."""
    font = {"family": SANS, "size": size, "color": palette.text}
    base = {"tickvals": at, "ticktext": texts, "tickfont": font, "showgrid": False, "ticksuffix": "  "}
    return axis(palette, "", **base | options)


def named_axis(palette: Palette, names: Sequence[str], texts: Sequence[str]) -> Figure:
    """Return the same, each name with its figure on a second line."""
    ticks = [
        f"{name}<br><span style='font-family:{MONO};font-size:12px'>{text}</span>"
        for name, text in zip(names, texts, strict=True)
    ]
    return rows_axis(palette, names, ticks)


def apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Return the label positions nearest to ``wanted`` (least squares) at which labels of these ``widths`` do not
    overlap."""
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


def part_labels(notes: Iterable[Figure], pixels: float, line: float) -> None:
    """Move labels next to the data up and down until they do not overlap.

    pixels: pixels per unit of their axis, or per power of ten on a logarithmic one. line: height of a label in pixels.
    """
    ordered = sorted(notes, key=lambda note: note["y"])
    wanted = [note["y"] * pixels for note in ordered]
    for note, want, place in zip(ordered, wanted, apart(wanted, [line] * len(wanted)), strict=True):
        note["yshift"] = place - want
