"""Charts of a measurement: matmul rate by dtype and by size, and copy bandwidth by size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.benchmark.best import best_squares, squares
from core.benchmark.datasheet import comparable_peak, datasheet_of, peak_of
from core.benchmark.formulas import achieved_bandwidth
from core.benchmark.points import Point
from core.benchmark.programme import MISALIGNED
from core.benchmark.record import Record
from core.hardware.accelerators import rate_kind
from core.messages import Message, message
from core.units import UNIT
from core.views.benchmark.tables import rate_text
from core.views.benchmark.text import points_of, range_of, rate_amount, rate_of
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
    rule,
    whiskers,
)
from core.views.common.palette import Palette
from core.wording import Amount

_ROW_PX, _CURVES_PX, _MEMORY_PX = 60, 340, 300
_TOOLS_PX = 32
"""Above the rows, so that plotly's tool icons lie over no label."""

_UNDER = 0.4
"""Of a row: how far a peak's label lies below its bar, midway to the next one however high rows are."""

_LABEL_SHARE = 0.24
"""Share of the axis that a rate's label takes: a longer bar has it inside, a peak closer than that gets it behind."""

_LEAST_DECADES = 0.5
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "hexagon", "star", "cross")


def rate_title(dtypes: Iterable[str], prefix: str = "") -> Message:
    """Return the title of an axis of rates in ``dtypes``."""
    kinds = {rate_kind(dtype) for dtype in dtypes} or {"flop_per_s"}
    flop, integer = f"{prefix}{UNIT['flop_per_s']}", f"{prefix}{UNIT['op_per_s']}"
    if len(kinds) > 1:
        return message("measure.chart.rate_integer", unit=flop, integer=integer)
    return message("measure.chart.rate", unit=integer if "op_per_s" in kinds else flop)


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of the chart of dtypes: its best square and the peak, NaN if unknown; or why there is no rate."""

    dtype: str
    point: Point | None
    peak: float
    note: str = ""


def bars_of(record: Record, doing: str = "") -> tuple[Bar, ...]:
    """Return a bar for each dtype of the program, measured or not. doing: the dtype that is being measured."""
    sheet, bests = datasheet_of(record), {p.item.name: p for p in best_squares(record)}
    result: list[Bar] = []
    for dtype in record.programme.dtypes:
        if point := bests.get(dtype):
            peak = comparable_peak(sheet, point)
            known = not math.isnan(peak_of(sheet, dtype))
            note = message("measure.chart.not_compared") if known else message("measure.chart.no_peak")
            result.append(Bar(dtype, point, peak, note if math.isnan(peak) else ""))
            continue
        whys = [r.why for r in record.refusals if r.item.kind == "matmul" and r.item.name == dtype]
        if whys:
            note = message("measure.chart.refused" if "refused" in whys else "measure.chart.skipped")
        elif record.stage == "running":
            note = message("measure.chart.measuring" if dtype == doing else "measure.chart.waiting")
        else:
            note = message("measure.chart.not_measured")
        result.append(Bar(dtype, None, math.nan, note))
    return tuple(result)


def rates_caption(bars: Sequence[Bar]) -> Message:
    """Return how `rates` is read."""
    peaks = any(bar.point and not math.isnan(bar.peak) for bar in bars)
    return message("measure.chart.rates_peak" if peaks else "measure.chart.rates")


def rates(bars: Sequence[Bar], palette: Palette) -> Figure:
    """Return a bar chart of measured rates with P10–P90, and a tick at the dense datasheet peak."""
    done = [(y, bar.point) for y, bar in enumerate(bars) if bar.point]
    peaks = [(y, bar) for y, bar in enumerate(bars) if not math.isnan(bar.peak)]
    top = max([*(p.p90_rate for _, p in done), *(bar.peak for _, bar in peaks)], default=1e9)
    prefix, scale = ("T", 1e12) if top >= 1e12 else ("G", 1e9)
    span = 1.3 * top / scale
    low, rate, high = ([getattr(p, of) / scale for _, p in done] for of in ("p10_rate", "rate", "p90_rate"))
    data = [
        lying_bars(
            rate,
            [y for y, _ in done],
            [message("measure.chart.range", name=p.item.name, rate=rate_of(p), range=range_of(p)) for _, p in done],
            width=0.44,
            marker={"color": palette.compute_bound, "line": {"width": 0}},
            error_x=whiskers(low, rate, high, palette.text, thickness=1.5, width=5),
        ),
        marks(
            "markers",
            [bar.peak / scale for _, bar in peaks],
            [y for y, _ in peaks],
            [message("measure.chart.peak", peak=rate_amount(bar.peak, bar.dtype)) for _, bar in peaks],
            marker={"symbol": "line-ns", "size": 26, "line": {"width": 2.5, "color": palette.text}},
        ),
    ]
    texts = [text for y, bar in enumerate(bars) for text in _labels(palette, y, bar, scale, span, some=bool(peaks))]
    ticks = [f"<b>{bar.dtype}</b>" + (f"<br>n = {bar.point.shape[0]:,}" if bar.point else "") for bar in bars]
    return figure(
        palette,
        data,
        height=_ROW_PX * len(bars) + 48 + _TOOLS_PX,
        xaxis=axis(
            palette,
            rate_title((p.item.name for _, p in done), prefix) if done else "",
            range=[0, span],
            fixedrange=True,
            showticklabels=bool(done),
        ),
        yaxis=axis(
            palette,
            "",
            tickvals=list(range(len(bars))),
            ticktext=ticks,
            range=[len(bars) - 0.5, -0.5],
            fixedrange=True,
            showgrid=False,
            tickfont={"family": MONO, "size": 13, "color": palette.text},
        ),
        annotations=texts,
        margin={"l": 8, "r": 8, "t": _TOOLS_PX, "b": 8},
    )


def _labels(palette: Palette, y: int, bar: Bar, scale: float, span: float, *, some: bool) -> list[Figure]:
    """Return the texts of one row: the rate (or why there is none) at the bar's end, and the peak under its tick.

    some: whether another row's peak is known, so that an unknown one must be said here.
    """
    left = {"y": y, "xanchor": "left", "align": "left"}
    point, peak, quiet = bar.point, bar.peak / scale, palette.muted
    if point is None:
        return [label(palette, bar.note, quiet, x=0, xshift=8, **left)]
    end, colour = point.p90_rate / scale, palette.text
    if point.p10_rate / scale > _LABEL_SHARE * span:
        end, colour = 0.0, palette.background  # inside the bar, where neither spread nor peak crosses it
    elif 0 <= peak - end < _LABEL_SHARE * span:
        end = peak
    strong = {"family": MONO, "size": 14, "color": colour}
    texts = [label(palette, f"<b>{rate_text(point.rate, bar.dtype)}</b>", x=end, xshift=12, font=strong, **left)]
    if not bar.note or some:
        text = bar.note or message("measure.chart.peak", peak=rate_amount(bar.peak, bar.dtype))
        at = point.rate / scale if bar.note else peak
        texts.append(label(palette, text, quiet, x=at, y=y + _UNDER, xshift=5, xanchor="left"))
    return texts


def curves(record: Record, palette: Palette) -> Figure:
    """Return a chart of matmul rate over size for each dtype, on log axes, with P10–P90 and the name at the right end.

    A size that no tile divides is a cross next to its line.
    """
    lines = [(dtype, result) for dtype in record.programme.dtypes if (result := squares(record.points, dtype))]
    data: list[Figure] = []
    ends: list[tuple[str, float]] = []
    for i, (dtype, result) in enumerate(lines):
        smooth = [p for p in result if p.shape[0] != MISALIGNED]
        odd = [p for p in result if p.shape[0] == MISALIGNED]
        data += [_curve(smooth, "lines+markers", _SYMBOLS[i], palette)] if smooth else []
        data += [_curve(odd, "markers", "x-thin-open", palette)] if odd else []
        ends.append((dtype, (smooth or list(result))[-1].rate))
    sizes = sorted({p.shape[0] for _, points in lines for p in points} - {MISALIGNED}) or [10, 10_000]
    rates = [p.rate for _, points in lines for p in points] or [1e9, 1e12]
    low = math.log10(min(rates))
    room = max(math.log10(max(rates)) - low, _LEAST_DECADES)
    ends_at = [low - 0.06 * room, low + 1.08 * room]
    return figure(
        palette,
        data,
        height=_CURVES_PX,
        hovermode="closest",
        xaxis=axis(
            palette,
            message("measure.chart.size"),
            type="log",
            tickvals=sizes,
            ticktext=[f"{n:,}" for n in sizes],
            range=[math.log10(sizes[0]) - 0.06, math.log10(sizes[-1]) + 0.06],
            fixedrange=True,
        ),
        yaxis=axis(
            palette,
            rate_title(dtype for dtype, _ in lines),
            type="log",
            range=ends_at,
            fixedrange=True,
            tickformat="~s",
        ),
        annotations=_line_ends(palette, ends, 1.14 * room),
        margin={"l": 8, "r": 96, "t": _TOOLS_PX, "b": 8},
    )


def _curve(points: Sequence[Point], mode: str, symbol: str, palette: Palette) -> Figure:
    low, rate, high = ([getattr(p, of) for p in points] for of in ("p10_rate", "rate", "p90_rate"))
    names = [message("measure.chart.at_size", dtype=p.item.name, n=float(p.shape[0])) for p in points]
    return marks(
        mode,
        [p.shape[0] for p in points],
        rate,
        [message("measure.chart.point", name=name, rate=rate_of(p)) for name, p in zip(names, points, strict=True)],
        error_y=whiskers(low, rate, high, palette.muted, thickness=1, width=3),
        line={"color": palette.compute_bound, "width": 2},
        marker={"symbol": symbol, "size": 8, "color": palette.compute_bound},
    )


def _line_ends(palette: Palette, ends: Sequence[tuple[str, float]], room: float) -> list[Figure]:
    """Return the name of each line at its end, moved apart where lines end close together."""
    place = {"x": 1, "xref": "paper", "xshift": 10, "xanchor": "left"}
    font = {"family": MONO, "size": 12, "color": palette.text}
    notes = [label(palette, f"<b>{dtype}</b>", y=math.log10(rate), font=font, **place) for dtype, rate in ends]
    part_labels(notes, (_CURVES_PX - _TOOLS_PX - 56) / room, 15)
    return notes


def bandwidths(record: Record, palette: Palette) -> Figure:
    """Return a chart of copy bandwidth over size, with caches as steps and the datasheet's bandwidth dashed."""
    points = sorted(points_of(record, "memory"), key=lambda p: p.bytes)
    sheet = datasheet_of(record).bandwidth
    known = [] if math.isnan(sheet) else [sheet]
    unit, scale = ("TB/s", 1e12) if max([*(p.bandwidth for p in points), *known]) >= 1e12 else ("GB/s", 1e9)
    names = [as_typed(p.item.label) for p in points]
    low, middle, high = (
        [achieved_bandwidth(p.bytes, getattr(p, of)) / scale for p in points] for of in ("p90_s", "median_s", "p10_s")
    )
    rates = [Amount(p.bandwidth, "bandwidth") for p in points]
    curve = marks(
        "lines+markers",
        names,
        middle,
        [message("measure.chart.point", name=p.item.label, rate=r) for p, r in zip(points, rates, strict=True)],
        error_y=whiskers(low, middle, high, palette.muted, thickness=1, width=3),
        line={"color": palette.memory_bound, "width": 2},
        marker={"symbol": "diamond", "size": 9, "color": palette.memory_bound},
    )
    dashed = {"color": palette.muted, "width": 1.5, "dash": "dash"}
    return figure(
        palette,
        [curve],
        height=_MEMORY_PX,
        xaxis=axis(
            palette,
            message("measure.chart.copy_size"),
            type="category",
            fixedrange=True,
            tickfont={"family": MONO, "size": 12, "color": palette.muted},
        ),
        yaxis=axis(palette, message("measure.chart.bandwidth", unit=unit), rangemode="tozero", fixedrange=True),
        annotations=[
            label(
                palette,
                message("measure.chart.datasheet_bandwidth", bandwidth=each),
                x=1,
                xref="paper",
                xanchor="right",
                y=each / scale,
                yanchor="bottom",
            )
            for each in known
        ],
        shapes=[rule(y=each / scale, line=dashed) for each in known],
    )
