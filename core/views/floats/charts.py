"""Charts: how far formats reach, how finely they divide, and sums that stall."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from core.floats.arithmetic.accumulation import (
    TABLE_BITS,
    Spread,
    SummationRun,
    add_up,
    master_copy,
    own_exact,
    spread,
)
from core.floats.formats import FloatFormat
from core.floats.range_and_precision import reaches, staircase
from core.floats.rounding import Rounding
from core.messages import message
from core.views.common.chart import MONO, Figure, axis, figure, label, layout, lying_bars, marks, power, rows_axis
from core.views.common.palette import Palette

_ROW = 22
_LOG10 = math.log10(2)

STEPS = (-40, 24)
"""The staircase is drawn from 2^-40 to 2^24, where the narrow formats differ."""


def dynamic_range(formats: Iterable[FloatFormat], here: FloatFormat, palette: Palette) -> Figure:
    """Return one bar per format from its smallest to its largest positive value, log10; subnormals are hatched.

    fp64 reaches far beyond the others, so it is cut at both ends and says so.
    """
    rows = reaches(formats)[::-1]
    low, high = -50.0, 50.0
    names = [f"<b>{r.fmt.title}</b>" if r.fmt == here else r.fmt.title for r in rows]
    small = np.array([r.smallest * _LOG10 for r in rows])
    normal = np.array([r.normal * _LOG10 for r in rows])
    large = np.array([r.largest * _LOG10 for r in rows])
    texts = [f"{power(10, round(s))} to {power(10, round(b))}" for s, b in zip(small, large, strict=True)]
    left, middle, right = (np.clip(v, low, high) for v in (small, normal, large))
    colours = [palette.accent if r.fmt == here else palette.exponent for r in rows]
    subnormal = {
        "color": palette.background,
        "line": {"width": 1, "color": colours},
        "pattern": {"shape": "/", "size": 5, "fgcolor": colours, "bgcolor": palette.background},
    }
    return figure(
        palette,
        [
            lying_bars(
                end - start,
                np.arange(len(rows)),
                [message(what, range=text) for text in texts],
                base=start,
                width=0.62,
                marker=marker,
            )
            for what, start, end, marker in (
                ("formats.hover.subnormals", left, middle, subnormal),
                ("formats.hover.normal", middle, right, {"color": colours}),
            )
        ],
        height=_ROW * len(rows) + 76,
        barmode="overlay",
        xaxis=axis(
            palette,
            message("formats.axis.range"),
            range=[low, high + 1],
            tickvals=list(range(-40, 41, 20)),
            ticktext=[power(10, p) if p else "1" for p in range(-40, 41, 20)],
            tickangle=0,
        ),
        yaxis=rows_axis(palette, list(range(len(rows))), names, 12, range=[-0.6, len(rows) - 0.4]),
        annotations=[
            label(
                palette,
                f"{power(10, -324)} ←  → {power(10, 308)}",
                x=0,
                y=i,
                font={"family": MONO, "size": 12, "color": palette.background},
            )
            for i, r in enumerate(rows)
            if r.largest * _LOG10 > high
        ],
    )


def spacing(formats: Sequence[FloatFormat], here: FloatFormat, palette: Palette) -> Figure:
    """Return a log-log chart of relative spacing against magnitude, one staircase per format, labeled where it is
    flat."""
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
            marks(
                "lines",
                np.append(powers, powers[-1] + 1) * _LOG10,
                np.append(steps, steps[-1]) * _LOG10,
                message("formats.hover.spacing", fmt=fmt.title, step="%{customdata}"),
                line={"shape": "hv", "width": 3 if chosen else 1.5, "color": colour},
                customdata=[_percent(2.0**s) for s in np.append(steps, steps[-1])],
            )
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
                colour=palette.accent if chosen else palette.text,
            )
        )
    return figure(
        palette,
        data,
        height=_ROW * 20 + 76,
        xaxis=axis(
            palette,
            message("formats.axis.magnitude"),
            range=[low * _LOG10, high * _LOG10 + 1.6],
            tickvals=list(range(-12, 8, 4)),
            ticktext=[power(10, p) if p else "1" for p in range(-12, 8, 4)],
            tickangle=0,
        ),
        yaxis=axis(
            palette,
            message("formats.axis.spacing"),
            tickvals=[0, -1, -2, -3, -4, -5, -6, -7],
            ticktext=["100%", "10%", "1%", "0.1%", "0.01%", *(power(10, p) for p in (-5, -6, -7))],
        ),
        annotations=notes,
    )


def summation_lines(
    start: float, addend: float, steps: int, fmt: FloatFormat
) -> tuple[list[tuple[str, str, SummationRun]], Spread | None]:
    """Return name, color role, and run of each line of a sum's picture, and the stochastic spread.

    Of the directed modes it shows the one that goes where the addend does.
    """
    onward: Rounding = "down" if addend < 0 else "up"
    modes: list[tuple[str, str, Rounding]] = [
        (message("sums.line.nearest", fmt=fmt.title), "gradients", "nearest_even"),
        (message("sums.line.zero", fmt=fmt.title), "activations", "toward_zero"),
        (message("sums.line.down" if addend < 0 else "sums.line.up", fmt=fmt.title), "buffers", onward),
    ]
    lines = [(name, role, add_up(start, addend, steps, fmt, mode)) for name, role, mode in modes]
    if fmt.name != "fp32":
        lines.append((message("sums.line.master"), "master", master_copy(start, addend, steps, fmt)))
    return lines, spread(start, addend, steps, fmt) if fmt.bits <= TABLE_BITS else None


def accumulation(
    runs: Sequence[tuple[str, str, SummationRun]],
    drawn: Spread | None,
    *,
    exact: tuple[float, float],
    palette: Palette,
) -> Figure:
    """Return sums against steps. ``runs``: label, role of the color, and run, the first one wide; the mean lies on top.

    exact: start and addend of the ideal sum; what the first run's format makes of them is drawn too where it differs. A
    sum that overflows ends in a cross.
    """
    steps = float(runs[0][2].at[-1])
    target = exact[0] + steps * exact[1]
    data: list[dict[str, object]] = []
    if drawn is not None and np.isfinite(drawn.mean[0]):
        here = np.isfinite(drawn.mean)
        at, middle, off = drawn.at[here].astype(np.float64), drawn.mean[here], drawn.deviation[here]
        there: npt.NDArray[np.float64] = np.concatenate([at, at[::-1]])
        edge: npt.NDArray[np.float64] = np.concatenate([middle + off, (middle - off)[::-1]])
        data.append(
            marks(
                "lines",
                there,
                edge,
                "",
                fill="toself",
                fillcolor=palette.surface,
                line={"width": 0, "color": palette.optimizer},
            )
        )
    across = np.array([0.0, steps])
    data.append(
        _line(
            across, np.array([exact[0], target]), (ideal := message("sums.line.exact")), 1.5, palette.text, dash="dot"
        )
    )
    ends = [_End(steps, target, ideal, palette.text)]
    own = own_exact(*exact, runs[0][2])
    if own is not None:
        name = message("sums.line.stored")
        reached = own[0] + steps * own[1]
        data.append(_line(across, np.array([own[0], reached]), name, 1.5, palette.muted, dash="dot"))
        ends.append(_End(steps, reached, name, palette.muted))
    for i, (name, role, run) in enumerate(runs):
        data += _sum_line(run.at, run.sums, name, 5 if i == 0 else 2.5, palette.role(role), ends, shape="hv")
    if drawn is not None:
        # On top and dashed, so that the line of a master copy under it stays in sight.
        data += _sum_line(
            drawn.at, drawn.mean, message("sums.line.stochastic"), 2, palette.optimizer, ends, dash="dash"
        )
    # Rounding up can run away exponentially; the picture stays with the sums that are of interest.
    most = exact[0] + 2.2 * (target - exact[0])
    nearer = min if target >= exact[0] else max
    ends = [replace(end, y=nearer(end.y, most)) for end in ends]
    values = [end.y for end in ends] + [exact[0]]
    bottom, top = min(values), max(values)
    room = (top - bottom or 1.0) * 0.08
    return {
        "data": data,
        "layout": layout(
            palette,
            height=340,
            # The lines' names stand right of the last addition, where no number is.
            xaxis=axis(
                palette,
                message("sums.axis.additions"),
                range=[0, steps * 1.34],
                tickvals=_upto(steps),
                tickformat=",d",
                showgrid=False,
            ),
            yaxis=axis(palette, message("sums.axis.sum"), range=[bottom - room, top + room], showgrid=False),
            annotations=_end_labels(ends, bottom - room, top + room, palette),
        ),
    }


def _upto(last: float) -> list[float]:
    """Round numbers from 0 to ``last``, half a dozen at most."""
    unit = 10.0 ** math.floor(math.log10(last / 5))
    every = max(1.0, next(times * unit for times in (1, 2, 5, 10, 20) if last <= 5 * times * unit))
    return (every * np.arange(last // every + 1)).tolist()


@dataclass(frozen=True, slots=True)
class _End:
    """Where a line ends, and what stands there."""

    x: float
    y: float
    name: str
    colour: str


def _line(
    x: npt.NDArray[Any], y: npt.NDArray[np.float64], name: str, width: float, colour: str, **style: str
) -> dict[str, object]:
    return marks("lines", x, y, f"{name}: %{{y:.6g}}", line={"width": width, "color": colour, **style})


def _sum_line(
    at: npt.NDArray[np.int64],
    sums: npt.NDArray[np.float64],
    name: str,
    width: float,
    colour: str,
    ends: list[_End],
    **style: str,
) -> list[dict[str, object]]:
    """Return the line of a sum as far as it is finite, with a cross where it overflows; adds its end to ``ends``."""
    finite = int(np.argmin(np.isfinite(sums))) if not np.isfinite(sums).all() else sums.size
    if finite == sums.size:
        ends.append(_End(float(at[-1]), float(sums[-1]), name, colour))
        return [_line(at, sums, name, width, colour, **style)]
    if finite == 0:
        return []
    word = "NaN" if np.isnan(sums[finite]) else "∞"
    ends.append(
        _End(
            float(at[finite - 1]),
            float(sums[finite - 1]),
            message("sums.line.overflows", line=name, value=word),
            colour,
        )
    )
    cross = marks(
        "markers",
        at[finite - 1 : finite],
        sums[finite - 1 : finite],
        f"{name}: %{{y:.6g}}, then {word}",
        marker={"symbol": "x", "size": 9, "color": colour},
    )
    return [_line(at[:finite], sums[:finite], name, width, colour, **style), cross]


def _end_labels(ends: list[_End], bottom: float, top: float, palette: Palette) -> list[dict[str, object]]:
    """Return labels at the right of the lines' ends, pushed up where they would touch."""
    pixels = 270 / (top - bottom)
    notes: list[dict[str, object]] = []
    lowest = {False: -math.inf, True: -math.inf}
    middle = max(end.x for end in ends) / 2
    for end in sorted(ends, key=lambda e: e.y):
        height, early = (end.y - bottom) * pixels, end.x < middle
        lowest[early] = max(height, lowest[early] + 16)
        notes.append(
            label(
                palette,
                end.name,
                x=end.x,
                y=end.y,
                xanchor="left",
                xshift=8,
                yshift=lowest[early] - height,
                bgcolor=palette.background if early else "rgba(0,0,0,0)",
                colour=end.colour,
            )
        )
    return notes


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.3g}%"
