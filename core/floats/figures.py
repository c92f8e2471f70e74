"""The page's charts: how far formats reach, how finely they divide, sums that stall, gradients under a loss scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from core.figure import MONO, Figure, axis, label, layout
from core.floats.accumulation import Run, Spread
from core.floats.decimals import raised
from core.floats.formats import FloatFormat
from core.floats.landscape import reach, reaches, staircase
from core.floats.lossscale import Scaled, percent
from core.palette import Palette

_ROW = 22
_LOG10 = math.log10(2)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

STEPS = (-40, 24)
"""The staircase is drawn from 2^-40 to 2^24, where the narrow formats differ."""


def dynamic_range(formats: Iterable[FloatFormat], here: FloatFormat, palette: Palette) -> Figure:
    """One bar per format from its smallest to its largest positive value, log10; subnormals are hatched.

    fp64 reaches far beyond the others, so it is cut at both ends and says so.
    """
    rows = reaches(formats)[::-1]
    low, high = -50.0, 50.0
    names = [f"<b>{r.fmt.title}</b>" if r.fmt == here else r.fmt.title for r in rows]
    small = np.array([r.smallest * _LOG10 for r in rows])
    normal = np.array([r.normal * _LOG10 for r in rows])
    large = np.array([r.largest * _LOG10 for r in rows])
    texts = [f"{_ten(s)} to {_ten(b)}" for s, b in zip(small, large, strict=True)]
    left, middle, right = (np.clip(v, low, high) for v in (small, normal, large))
    colours = [palette.accent if r.fmt == here else palette.exponent for r in rows]
    bars = {"type": "bar", "orientation": "h", "y": np.arange(len(rows)), "width": 0.62}
    return {
        "data": [
            {
                **bars,
                "base": left,
                "x": middle - left,
                "marker": {
                    "color": palette.background,
                    "line": {"width": 1, "color": colours},
                    "pattern": {"shape": "/", "size": 5, "fgcolor": colours, "bgcolor": palette.background},
                },
                "customdata": texts,
                "hovertemplate": "subnormals · %{customdata}<extra></extra>",
            },
            {
                **bars,
                "base": middle,
                "x": right - middle,
                "marker": {"color": colours},
                "customdata": texts,
                "hovertemplate": "normal numbers · %{customdata}<extra></extra>",
            },
        ],
        "layout": layout(
            palette,
            height=_ROW * len(rows) + 76,
            barmode="overlay",
            xaxis=axis(
                palette,
                "magnitude; hatched: subnormals",
                range=[low, high + 1],
                tickvals=list(range(-40, 41, 20)),
                ticktext=["1" if p == 0 else f"10<sup>{p}</sup>".replace("-", "−") for p in range(-40, 41, 20)],
                tickangle=0,
            ),
            yaxis=axis(
                palette,
                "",
                tickvals=np.arange(len(rows)),
                ticktext=names,
                tickfont={"size": 12, "color": palette.text},
                showgrid=False,
                ticksuffix="  ",
                range=[-0.6, len(rows) - 0.4],
            ),
            annotations=[
                label(
                    palette,
                    "10<sup>−324</sup> ←  → 10<sup>308</sup>",
                    x=0,
                    y=i,
                    font={"family": MONO, "size": 12, "color": palette.background},
                )
                for i, r in enumerate(rows)
                if r.largest * _LOG10 > high
            ],
        ),
    }


def spacing(formats: Sequence[FloatFormat], here: FloatFormat, palette: Palette) -> Figure:
    """Relative spacing against magnitude, log-log, one staircase per format, labelled where it is flat."""
    low, high = STEPS
    data: list[dict[str, object]] = []
    notes: list[dict[str, object]] = []
    for fmt in sorted(formats, key=lambda f: f.fraction_bits):
        powers, steps = staircase(fmt, low, high)
        if powers.size < 2:
            continue
        chosen = fmt == here
        colour = palette.accent if chosen else palette.muted
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": np.append(powers, powers[-1] + 1) * _LOG10,
                "y": np.append(steps, steps[-1]) * _LOG10,
                "line": {"shape": "hv", "width": 3 if chosen else 1.5, "color": colour},
                "hovertemplate": f"{fmt.title}: neighbours %{{customdata}} apart<extra></extra>",
                "customdata": [_percent(2.0**s) for s in np.append(steps, steps[-1])],
            }
        )
        if not chosen and any(f == here and np.array_equal(staircase(f, low, high), (powers, steps)) for f in formats):
            continue  # the chosen format's line lies on this one and carries its own name there
        # A line that ends early leaves room for its name at its right; the others carry it above their ends.
        beside = powers[-1] < high - 9
        above = beside and fmt.bits < 8
        notes.append(
            label(
                palette,
                f"<b>{fmt.title}</b>" if chosen else fmt.title,
                x=float(powers[-1] + 1) * _LOG10,
                y=float(steps[-1]) * _LOG10,
                xanchor="left" if beside else "right",
                yanchor="bottom" if above or not beside else "middle",
                xshift=5 if beside else 0,
                bgcolor=palette.background if beside else "rgba(0,0,0,0)",
                font={"size": 12, "color": palette.accent if chosen else palette.text},
            )
        )
    return {
        "data": data,
        "layout": layout(
            palette,
            height=_ROW * 20 + 76,
            xaxis=axis(
                palette,
                "magnitude",
                range=[low * _LOG10, high * _LOG10 + 1.6],
                tickvals=list(range(-12, 8, 4)),
                ticktext=["1" if p == 0 else f"10<sup>{p}</sup>".replace("-", "−") for p in range(-12, 8, 4)],
                tickangle=0,
            ),
            yaxis=axis(
                palette,
                "distance between neighbours, relative",
                tickvals=[0, -1, -2, -3, -4, -5, -6, -7],
                ticktext=[
                    "100 %",
                    "10 %",
                    "1 %",
                    "0.1 %",
                    "0.01 %",
                    "10<sup>−5</sup>",
                    "10<sup>−6</sup>",
                    "10<sup>−7</sup>",
                ],
            ),
            annotations=notes,
        ),
    }


def accumulation(
    runs: Sequence[tuple[str, str, Run]], spread: Spread | None, *, exact: tuple[float, float], palette: Palette
) -> Figure:
    """Sums against steps. ``runs``: label, role of the colour, and run.

    exact: start and addend of the ideal sum.
    """
    steps = float(runs[0][2].at[-1])
    target = exact[0] + steps * exact[1]
    data: list[dict[str, object]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": np.array([0.0, steps]),
            "y": np.array([exact[0], target]),
            "line": {"width": 1.5, "dash": "dot", "color": palette.text},
            "hovertemplate": "exact: %{y:.6g}<extra></extra>",
        }
    ]
    ends: list[tuple[float, str, str]] = [(target, "exact", palette.text)]
    if spread is not None:
        colour = palette.optimizer
        upper, lower = spread.mean + spread.deviation, spread.mean - spread.deviation
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": np.concatenate([spread.at, spread.at[::-1]]).astype(np.float64),
                "y": np.concatenate([upper, lower[::-1]]),
                "fill": "toself",
                "fillcolor": palette.surface,
                "line": {"width": 0, "color": colour},
                "hoverinfo": "skip",
            }
        )
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": spread.at,
                "y": spread.mean,
                "line": {"width": 2, "dash": "dash", "color": colour},
                "hovertemplate": "stochastic, mean: %{y:.6g}<extra></extra>",
            }
        )
        ends.append((float(spread.mean[-1]), "stochastic, mean ± σ", colour))
    for name, role, run in runs:
        colour = palette.role(role)
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": run.at,
                "y": run.sums,
                "line": {"width": 2.5, "color": colour, "shape": "hv"},
                "hovertemplate": f"{name}: %{{y:.6g}}<extra></extra>",
            }
        )
        ends.append((float(run.sums[-1]), name, colour))
    # Rounding up can run away exponentially; the picture stays with the sums that are of interest.
    most = exact[0] + 2.2 * (target - exact[0])
    ends = [(min(end, most) if math.isfinite(end) else most, name, colour) for end, name, colour in ends]
    values = [end for end, *_ in ends] + [exact[0]]
    bottom, top = min(values), max(values)
    room = (top - bottom or 1.0) * 0.08
    return {
        "data": data,
        "layout": layout(
            palette,
            height=340,
            xaxis=axis(palette, "additions", range=[0, steps * 1.34], tickformat=",d", showgrid=False),
            yaxis=axis(palette, "sum", range=[bottom - room, top + room], showgrid=False),
            annotations=_end_labels(ends, steps, bottom - room, top + room, palette),
        ),
    }


def _end_labels(
    ends: list[tuple[float, str, str]], x: float, bottom: float, top: float, palette: Palette
) -> list[dict[str, object]]:
    """Labels at the right ends of the lines, pushed up where they would touch."""
    pixels = 270 / (top - bottom)
    notes: list[dict[str, object]] = []
    lowest = -math.inf
    for end, name, colour in sorted(ends, key=lambda e: e[0]):
        height = (end - bottom) * pixels
        lowest = max(height, lowest + 16)
        notes.append(
            label(
                palette,
                name,
                x=x,
                y=end,
                xanchor="left",
                xshift=8,
                yshift=lowest - height,
                font={"size": 12, "color": colour},
            )
        )
    return notes


def gradients(scaled: Scaled, palette: Palette) -> Figure:
    """Share of gradients per binade after scaling, coloured by what the format makes of them."""
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
    marks = (
        (low, flush, f"zero: {percent(scaled.zero)}", palette.gradients),
        (flush, normal, f"subnormal: {percent(scaled.subnormal)}", palette.activations),
        (normal, largest, f"normal: {percent(max(scaled.kept, 0.0))}", palette.fraction),
        (largest, high, f"overflow: {percent(scaled.overflow)}", palette.gradients),
    )
    ticks = list(range(math.ceil(low / 8) * 8, math.floor(high) + 1, 8))
    return {
        "data": [
            {
                "type": "bar",
                "x": centres[inside],
                "y": shares[inside],
                "width": 0.9,
                "marker": {"color": colours[inside].tolist()},
                "hovertemplate": "%{y:.3g} % of the gradients<extra></extra>",
            }
        ],
        "layout": layout(
            palette,
            height=300,
            bargap=0,
            xaxis=axis(
                palette,
                f"gradient magnitude × 2^{scaled.power}".replace(f"2^{scaled.power}", raised(f"2^{scaled.power}")),
                range=[low, high],
                tickvals=ticks,
                ticktext=[f"2<sup>{t}</sup>".replace("-", "−") for t in ticks],
                showgrid=False,
            ),
            yaxis=axis(palette, "share of gradients, % per binade", range=[0, top], rangemode="tozero"),
            shapes=[
                {
                    "type": "line",
                    "x0": x,
                    "x1": x,
                    "y0": 0,
                    "y1": top,
                    "line": {"width": 1, "dash": "dot", "color": palette.muted},
                }
                for x in (flush, normal, largest)
            ],
            annotations=[
                label(
                    palette,
                    f"<b>{text}</b>",
                    x=(a + b) / 2,
                    y=top,
                    yanchor="top",
                    font={"size": 12, "color": colour},
                )
                for a, b, text, colour in marks
            ],
        ),
    }


def _ten(power: float) -> str:
    return f"10{str(round(power)).translate(_SUPERSCRIPT)}"


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.3g} %"
