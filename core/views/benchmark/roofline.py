"""The measured roofline: what this device really computes and moves, its datasheet dashed, and what was timed on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.benchmark.best import computed_in, is_square
from core.benchmark.best import roof as highest
from core.benchmark.points import Point
from core.benchmark.record import Record
from core.formula import Explanation
from core.hardware.operations import Placed, Work, place, ridge_point
from core.units import format_quantity
from core.views.benchmark.common import bandwidth_text, of_kind, rate_text, rate_ticks, subject
from core.views.common.chart import Figure, as_typed, axis, figure, label, log_axis, marks
from core.views.common.dot_labels import Boxes, label_dots, text_box
from core.views.common.palette import Palette
from core.wording import listed

_HEIGHT = 440
_PLOT = 379.0
"""Pixels of the height that are within the axes."""

_RAISED = 10.0
"""Pixels from the height of a text that stands on it to the text's middle."""


@dataclass(frozen=True, slots=True)
class Roof:
    """A roofline: peaks by dtype in FLOP/s and a bandwidth in bytes per second; NaN where unknown."""

    peaks: Mapping[str, float]
    bandwidth: float

    @property
    def top(self) -> float:
        """The highest peak; NaN where none is known."""
        return max((peak for peak in self.peaks.values() if not math.isnan(peak)), default=math.nan)

    @property
    def known(self) -> bool:
        """Whether there is enough of it to draw."""
        return not math.isnan(self.top * self.bandwidth)

    def place(self, point: Point) -> Placed:
        """A point on it: under the peak of its own dtype where that is known, else under the highest."""
        peak = self.peaks.get(computed_in(point), math.nan)
        return place(Work(point.flop, point.bytes), self.top if math.isnan(peak) else peak, self.bandwidth)


def placed(record: Record, roof: Roof) -> tuple[Point, ...]:
    """What stands on a roofline: everything timed that both computes and moves bytes, but the squares that it is made
    of, and other matmuls only under a peak of their own dtype."""
    kinds = [p for kind in ("attention", "layer") for p in of_kind(record, kind)]
    shapes = [p for p in of_kind(record, "matmul") if not is_square(p) and p.item.name in roof.peaks]
    return tuple(p for p in (*shapes, *kinds) if p.flop and p.bytes)


def picture(record: Record, roof: Roof, sheet: Roof, palette: Palette) -> Figure:
    """Points on the measured roofline; sheet: the datasheet's, dashed where it is known."""
    points = placed(record, roof)
    at = [p.flop / p.bytes for p in points]
    ridge = ridge_point(roof.top, roof.bandwidth)
    low, high = min([*at, ridge / 100]), max([*at, ridge * 10])
    x = np.geomspace(low / 2, high * 2, 121)
    tops = [roof.top, sheet.top if sheet.known else 0.0]
    floor = min([*(p.rate for p in points), min(roof.top, low * roof.bandwidth)])
    y_range = [math.log10(floor) - 0.3, math.log10(max([*tops, *(p.rate for p in points)])) + 0.4]
    data = [_line(x, roof.bandwidth, peak, "solid", palette) for peak in roof.peaks.values() if not math.isnan(peak)]
    if sheet.known:
        data.append(_line(x, sheet.bandwidth, sheet.top, "dash", palette))
    for bound, symbol, colour in ((False, "circle", palette.compute_bound), (True, "diamond", palette.memory_bound)):
        some = [p for p in points if (roof.place(p).bound == "memory") == bound]
        if some:
            data.append(_dots(some, symbol, colour, palette))
    others = [*_regions(palette, ridge, low / 2, high * 2, y_range[0]), *_roofs(palette, roof)]
    x_range = [math.log10(low / 2), math.log10(high * 2)]
    return figure(
        palette,
        data,
        height=_HEIGHT,
        hovermode="closest",
        xaxis=log_axis(palette, "FLOPs per byte of memory traffic", low / 2, high * 2, fixedrange=True, dtick=1),
        yaxis=axis(palette, "achieved rate", type="log", range=y_range, fixedrange=True, **rate_ticks(*y_range)),
        annotations=[*others, *_names(palette, points, (x_range, y_range), others)],
    )


def _line(x: npt.NDArray[np.float64], slope: float, peak: float, dash: str, palette: Palette) -> Figure:
    text = "datasheet" if dash == "dash" else "measured"
    line = {"color": palette.muted if dash == "dash" else palette.text, "width": 1.5, "dash": dash}
    hover = f"{text}: {rate_text(peak)}, {bandwidth_text(slope)}"
    return marks("lines", x, np.minimum(peak, x * slope), hover, line=line)


def _dots(points: Sequence[Point], symbol: str, colour: str, palette: Palette) -> Figure:
    hover = [f"{as_typed(name(p))}: {rate_text(p.rate)}, {bandwidth_text(p.bandwidth)}" for p in points]
    marker = {"size": 11, "symbol": symbol, "color": colour, "line": {"color": palette.background, "width": 1}}
    return marks("markers", [p.flop / p.bytes for p in points], [p.rate for p in points], hover, marker=marker)


def name(point: Point) -> str:
    """What was timed, for a row or beside a dot."""
    item = point.item
    return f"{item.label}, {item.name}" if item.kind == "matmul" else f"{item.name}, {item.label}"


def _regions(palette: Palette, ridge: float, low: float, high: float, floor: float) -> list[Figure]:
    """The names of the two regions, at the foot on either side of the ridge."""
    places = (
        (math.sqrt(low * ridge), "memory-bound", palette.memory_bound),
        (math.sqrt(ridge * high), "compute-bound", palette.compute_bound),
    )
    return [
        label(palette, text, colour, x=math.log10(x), y=floor, yanchor="bottom", yshift=4) for x, text, colour in places
    ]


def _roofs(palette: Palette, roof: Roof) -> list[Figure]:
    """The name of each roof at its ridge, above the slope, where no dot can be."""
    at: Figure = {"xanchor": "right", "yanchor": "bottom", "xshift": -28}
    known = {dtype: peak for dtype, peak in roof.peaks.items() if not math.isnan(peak)}
    return [
        label(
            palette,
            f"{dtype} {rate_text(peak)}",
            x=math.log10(ridge_point(peak, roof.bandwidth)),
            y=math.log10(peak),
            **at,
        )
        for dtype, peak in known.items()
    ]


def _names(
    palette: Palette, points: Sequence[Point], axes: Sequence[Sequence[float]], others: Sequence[Figure]
) -> list[Figure]:
    """The names of the dots, as many as fit. axes: their ends. others: annotations that are there already."""

    def place(x: float, y: float) -> tuple[float, float]:
        share, up = ((v - low) / (high - low) for v, (low, high) in zip((x, y), axes, strict=True))
        return share, up * _PLOT

    at = [(math.log10(p.flop / p.bytes), math.log10(p.rate)) for p in points]
    taken: list[Boxes] = []
    for note in others:
        share, up = place(note["x"], note["y"])
        side = -1.0 if note.get("xanchor") == "right" else 0.0
        taken.append(text_box(note["text"], share, note.get("xshift", 0), up + _RAISED, note["font"]["size"], side))
    labels = label_dots(palette, [as_typed(short_name(p)) for p in points], [place(*dot) for dot in at], _PLOT, taken)
    return [note | {"x": x, "y": y} for note, (x, y) in zip(labels, at, strict=True) if note]


def short_name(point: Point) -> str:
    """What was timed, in as few words as tell the dots apart."""
    item = point.item
    which = item.label.split(",")[0].replace("forward", "fwd").replace("backward", "bwd").replace(" and ", " + ")
    return item.label if item.kind == "matmul" else f"{item.name}, {which}"


def takeaway(record: Record, roof: Roof, sheet: Roof) -> str:
    """What the roofline shows in a sentence or two."""
    ridge = format_quantity(ridge_point(roof.top, roof.bandwidth), "flop_per_byte", 3)
    both = f"computes **{rate_text(roof.top)}** and moves **{bandwidth_text(roof.bandwidth)}**"
    text = f"{subject(record)} {both}: below **{ridge}** memory is the limit."
    if sheet.known:
        there = format_quantity(ridge_point(sheet.top, sheet.bandwidth), "flop_per_byte", 3)
        text += f" Its datasheet puts the ridge at {there}."
    bound = list(dict.fromkeys(p.item.name for p in placed(record, roof) if roof.place(p).bound == "memory"))
    return text + (f" Memory-bound here: {listed(bound)}." if bound else "")


HEADINGS = ("What", "FLOP per byte", "Rate", "Bandwidth", "Of what the roof allows", "Limit")


def rows(record: Record, roof: Roof) -> tuple[tuple[str, ...], ...]:
    """Every point of the roofline: its intensity, what it reached, and the share of what the roof allows there."""
    return tuple(
        (
            name(p),
            format_quantity(float(roof.place(p).intensity), "flop_per_byte", 3),
            rate_text(p.rate),
            bandwidth_text(p.bandwidth),
            format_quantity(p.rate / float(roof.place(p).attainable), "ratio", 2),
            roof.place(p).bound,
        )
        for p in placed(record, roof)
    )


def explanations(record: Record, roof: Roof) -> tuple[Explanation, ...]:
    """The ridge point, and of each point its intensity and what the roof allows."""
    result = [ridge_point.explain(peak=roof.top, bandwidth=roof.bandwidth)]
    for p in placed(record, roof):
        result += [step.about(name(p)) for step in roof.place(p).explanations]
    return tuple(result)


def measured(record: Record, bandwidth: float) -> Roof:
    """The roofline of what was measured: the highest rates in 16 and 32 bits, and a bandwidth."""
    rates = {dtype: highest(record.points, dtype) for dtype in ("bf16", "fp16", "fp32")}
    peaks = {dtype: rate for dtype, rate in rates.items() if not math.isnan(rate)}
    if "bf16" in peaks:
        peaks.pop("fp16", None)
    return Roof(peaks, bandwidth)
