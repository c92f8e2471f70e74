"""Charts of matmuls: achieved rate per dtype beside the datasheet peak, and how the rate grows with the size."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.benchmark.best import squares
from core.benchmark.points import Point
from core.benchmark.programme import MISALIGNED
from core.benchmark.record import Record
from core.views.benchmark.common import point_rate_text, rate_text, rate_ticks, rate_title
from core.views.benchmark.matmul import Bar
from core.views.common.chart import (
    MONO,
    Figure,
    as_typed,
    axis,
    figure,
    label,
    lying_bars,
    marks,
    part_labels,
    whiskers,
)
from core.views.common.palette import Palette

_ROW_PX = 68
_TOOLS_PX = 32
"""Above the rows, so that plotly's tool icons lie over no label."""

_UNDER = 0.4
"""Of a row: how far a peak's label lies below its bar, midway to the next one however high rows are."""

_CURVES_PX = 340
_LEAST_DECADES = 0.5
_SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "hexagon",
    "star",
    "cross",
    "bowtie",
)

_LABEL_SHARE = 0.24
"""Share of the axis that a rate's label takes: a longer bar has it inside, a peak closer than that gets it behind."""


def rates(bars: Sequence[Bar], palette: Palette) -> Figure:
    """Horizontal bars of achieved FLOP/s with their p10–p90 spread, and a tick at the dense datasheet peak.

    A dtype without a rate says why in its row. Where the peak of one is known and another's not, that row says so.
    """
    values = [v for bar in bars for v in (bar.rate, bar.high, bar.peak) if not math.isnan(v)]
    top = max(values, default=1e9)
    prefix, scale = ("T", 1e12) if top >= 1e12 else ("G", 1e9)
    span = 1.3 * top / scale
    ys = np.arange(len(bars), dtype=np.float64)
    rate, low, high, peak = np.array([(b.rate, b.low, b.high, b.peak) for b in bars]).T / scale
    done, known = ~np.isnan(rate), ~np.isnan(peak)
    data: list[Figure] = [
        lying_bars(
            rate[done],
            ys[done],
            [_hover(bar) for bar in bars if not math.isnan(bar.rate)],
            width=0.44,
            marker={"color": palette.compute_bound, "line": {"width": 0}},
            error_x=whiskers(low[done], rate[done], high[done], palette.text, thickness=1.5, width=5),
        ),
        *_others(bars, scale, palette),
        marks(
            "markers",
            peak[known],
            ys[known],
            [f"{bar.dtype}: dense peak {rate_text(bar.peak, bar.dtype)}" for bar in bars if not math.isnan(bar.peak)],
            marker={"symbol": "line-ns", "size": 26, "line": {"width": 2.5, "color": palette.text}},
        ),
    ]
    texts = [text for y, bar in enumerate(bars) for text in _labels(palette, y, bar, scale, span, some=known.any())]
    ticks = [f"<b>{bar.dtype}</b>" + (f"<br>{bar.size}" if bar.size else "") for bar in bars]
    return figure(
        palette,
        data,
        height=_ROW_PX * len(bars) + 48 + _TOOLS_PX,
        xaxis=axis(
            palette,
            rate_title((b.dtype for b in bars if not math.isnan(b.rate)), prefix) if values else "",
            range=[0, span],
            fixedrange=True,
            showticklabels=bool(values),
        ),
        yaxis=axis(
            palette,
            "",
            tickmode="array",
            tickvals=ys,
            ticktext=ticks,
            range=[len(bars) - 0.5, -0.5],
            fixedrange=True,
            showgrid=False,
            tickfont={"family": MONO, "size": 13, "color": palette.text},
        ),
        annotations=texts,
        margin={"l": 8, "r": 8, "t": _TOOLS_PX, "b": 8},
    )


def rates_key(bars: Sequence[Bar]) -> str:
    """How `rates` is read: only of what is in it, and empty where there is no bar."""
    done = [bar for bar in bars if not math.isnan(bar.rate)]
    sentences = ["Bar: the median", "whisker: p10 to p90"]
    if any(bar.others for bar in done):
        sentences.append("ring: the median at another n")
    if any(not math.isnan(bar.peak) for bar in done):
        sentences.append("upright stroke: the datasheet’s dense peak")
    return f"{'; '.join(sentences)}." if done else ""


def _others(bars: Sequence[Bar], scale: float, palette: Palette) -> list[Figure]:
    """Small rings under each bar: the rates at the other sizes."""
    rows = [
        (y + 0.34, rate / scale, f"{bar.dtype}, {size}: {rate_text(rate, bar.dtype)}")
        for y, bar in enumerate(bars)
        for size, rate in bar.others
    ]
    if not rows:
        return []
    ys, xs, texts = zip(*rows, strict=True)
    ring = {"symbol": "circle-open", "size": 6, "color": palette.muted, "line": {"width": 1.2}}
    return [marks("markers", xs, ys, texts, marker=ring)]


def _hover(bar: Bar) -> str:
    low, median, high = (rate_text(rate, bar.dtype) for rate in (bar.low, bar.rate, bar.high))
    return f"{bar.dtype}: median {median}<br>p10–p90 {low} to {high}"


def _labels(palette: Palette, y: int, bar: Bar, scale: float, span: float, *, some: bool) -> list[Figure]:
    """The texts of one row: the rate (or why there is none) at the bar's end, and the peak under its tick.

    some: whether another row's peak is known, so that an unknown one must be said here.
    """
    left = {"y": y, "xanchor": "left", "align": "left"}
    quiet = palette.muted
    peak = bar.peak / scale
    texts: list[Figure] = []
    if math.isnan(bar.rate):
        texts.append(label(palette, as_typed(bar.note), quiet, x=0, xshift=8, **left))
    else:
        end, colour = bar.high / scale, palette.text
        if bar.low / scale > _LABEL_SHARE * span:
            end, colour = 0.0, palette.background  # inside the bar, where neither spread nor peak crosses it
        elif 0 <= peak - end < _LABEL_SHARE * span:
            end = peak
        strong = {"family": MONO, "size": 14, "color": colour}
        message = f"<b>{rate_text(bar.rate, bar.dtype)}</b>"
        texts.append(label(palette, message, x=end, xshift=12, font=strong, **left))
    if not math.isnan(peak) or (some and not math.isnan(bar.rate)):
        last = max([bar.rate, *(rate for _, rate in bar.others)]) / scale  # behind all rings
        text, at = (bar.no_peak, last) if math.isnan(peak) else (f"peak {rate_text(bar.peak, bar.dtype)}", peak)
        texts.append(label(palette, text, quiet, x=at, y=y + _UNDER, xshift=5, xanchor="left"))
    return texts


def curves(record: Record, palette: Palette) -> Figure:
    """Rate over size for each dtype, on log axes, with its spread; each line carries its name at its right end.

    A size that no tile divides stands as a cross beside its line. All lines are blue, for all is computing.
    """
    lines = [(dtype, result) for dtype in record.programme.dtypes if (result := squares(record.points, dtype))]
    data: list[Figure] = []
    ends: list[tuple[str, float]] = []
    for i, (dtype, result) in enumerate(lines):
        smooth = [p for p in result if p.shape[0] != MISALIGNED]
        for points, mode, symbol in (
            (smooth, "lines+markers", _SYMBOLS[i % len(_SYMBOLS)]),
            ([p for p in result if p.shape[0] == MISALIGNED], "markers", "x-thin-open"),
        ):
            if points:
                data.append(_curve(dtype, points, mode, symbol, palette))
        ends.append((dtype, (smooth or list(result))[-1].rate))
    sizes = sorted({p.shape[0] for _, points in lines for p in points} - {MISALIGNED})
    rates = [p.rate for _, points in lines for p in points] or [1e9, 1e12]
    low = math.log10(min(rates))
    room = max(math.log10(max(rates)) - low, _LEAST_DECADES)
    ends_at = [low - 0.06 * room, low + 1.08 * room]
    title = rate_title(dtype for dtype, _ in lines)
    ticks = rate_ticks(*ends_at, unit=":" not in title)
    return figure(
        palette,
        data,
        height=_CURVES_PX,
        hovermode="closest",
        xaxis=axis(
            palette,
            "n of square matrices",
            type="log",
            tickvals=sizes,
            ticktext=[f"{n:,}" for n in sizes],
            range=_padded(sizes),
            fixedrange=True,
        ),
        yaxis=axis(palette, title, type="log", range=ends_at, fixedrange=True, **ticks),
        annotations=_line_ends(palette, ends, 1.14 * room),
        margin={"l": 8, "r": 96, "t": _TOOLS_PX, "b": 8},
    )


def _curve(dtype: str, points: Sequence[Point], mode: str, symbol: str, palette: Palette) -> Figure:
    low, rate, high = ([getattr(p, of) for p in points] for of in ("p10_rate", "rate", "p90_rate"))
    return marks(
        mode,
        [p.shape[0] for p in points],
        rate,
        [f"{dtype}, n = {p.shape[0]:,}: {point_rate_text(p)}" for p in points],
        error_y=whiskers(low, rate, high, palette.muted, thickness=1, width=3),
        line={"color": palette.compute_bound, "width": 2},
        marker={"symbol": symbol, "size": 8, "color": palette.compute_bound},
    )


def _padded(sizes: Sequence[int]) -> list[float]:
    return [math.log10(sizes[0]) - 0.06, math.log10(sizes[-1]) + 0.06] if sizes else [1.0, 4.0]


def _line_ends(palette: Palette, ends: Sequence[tuple[str, float]], room: float) -> list[Figure]:
    """The name of each line at its end, moved apart where lines end close together."""
    place = {"x": 1, "xref": "paper", "xshift": 10, "xanchor": "left"}
    font = {"family": MONO, "size": 12, "color": palette.text}
    notes = [label(palette, f"<b>{dtype}</b>", y=math.log10(rate), font=font, **place) for dtype, rate in ends]
    part_labels(notes, (_CURVES_PX - _TOOLS_PX - 56) / room, 15)
    return notes


def curves_alt(record: Record) -> str:
    """The takeaway of `curves` for those who do not see it."""
    sentences: list[str] = []
    for dtype in record.programme.dtypes:
        points = squares(record.points, dtype)
        if len(points) > 1:
            first, top = points[0], max(points, key=lambda p: p.rate)
            sentences.append(
                f"{dtype} from {point_rate_text(first)} at n = {first.shape[0]:,} to {point_rate_text(top)} at "
                f"{top.shape[0]:,}"
            )
    return f"Rate over the size of square matmuls: {'; '.join(sentences) or 'one size only'}."
