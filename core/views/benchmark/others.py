"""What a record says of everything but matmuls: bandwidth by size, attention, a layer's step."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.benchmark.best import is_square
from core.benchmark.datasheet import datasheet_of
from core.benchmark.formulas import achieved_bandwidth, achieved_rate, share_of_peak
from core.benchmark.points import Kind, Point, clip
from core.benchmark.programme import LayerShape
from core.benchmark.record import Record
from core.formula import Explanation
from core.units import format_bytes, format_duration, format_exact, format_quantity, significant
from core.views.benchmark.common import bandwidth_text, of_kind, point_rate_text, rate_text, subject
from core.views.benchmark.matmul import error_text
from core.views.common.chart import MONO, Figure, as_typed, axis, figure, label, marks, rule, whiskers
from core.views.common.palette import Palette
from core.wording import listed

TITLES: dict[Kind, str] = {
    "memory": "How fast does memory move bytes?",
    "attention": "Which attention is fastest here?",
    "layer": "Does one layer take as long as predicted?",
}
"""The question that each kind answers, in the order in which they are shown."""

_HEIGHT = 300


def sheet_bandwidth(record: Record) -> float:
    """Memory bandwidth that the datasheet promises, in bytes per second; NaN where none is known."""
    values = {row.bandwidth for row in datasheet_of(record).rows}
    return values.pop() if len(values) == 1 else math.nan


def says(record: Record, kind: Kind) -> str:
    """The takeaway of a kind; empty where nothing of it was measured."""
    points = of_kind(record, kind)
    if not points:
        return ""
    return {"memory": _memory, "attention": _attention, "layer": _layer}[kind](record, points)


def _memory(record: Record, points: Sequence[Point]) -> str:
    large = max(points, key=lambda p: p.bytes)
    fast = max(points, key=lambda p: p.bandwidth)
    text = f"{subject(record)} copies {large.item.label} at **{bandwidth_text(large.bandwidth)}**, read and written"
    share = share_of_peak(large.bandwidth, sheet_bandwidth(record))
    if not math.isnan(share):
        text += f", {format_quantity(share, 'ratio', 3)} of its datasheet"
    if fast is not large and fast.bandwidth > 1.2 * large.bandwidth:
        times = significant(fast.bandwidth / large.bandwidth, 2)
        text += f"; {fast.item.label}, which caches hold, {times} times as fast"
    return f"{text}."


def _attention(record: Record, points: Sequence[Point]) -> str:
    best = max(points, key=lambda p: p.rate)
    return f"**{best.item.name}** is the fastest, {rate_text(best.rate)} ({best.item.label}); only causal pairs count."


def _layer(record: Record, points: Sequence[Point]) -> str:
    best = min(points, key=lambda p: p.median_s)
    took, layer = format_duration(best.median_s, 3), record.programme.layer
    of = f" of {layer.model}" if layer else ""
    batch = f"{' × '.join(f'{size:,}' for size in best.shape)} tokens"
    short = f", not the {layer.micro_batch:,} × {layer.seq_len:,} asked for" if layer and _less(best, layer) else ""
    return (
        f"A training step of one layer{of} takes **{took}** on {batch}{short} ({best.item.label}), at "
        f"{rate_text(best.rate)}."
    )


def _less(point: Point, layer: LayerShape) -> bool:
    """Whether fewer tokens were timed than the programme asked for, as where a step would take too long."""
    return math.prod(point.shape) < layer.tokens


HEADINGS = ("What", "Of", "Median time", "p10–p90", "Rate", "Bandwidth", "Runs", "Error", "Peak memory")


def headings(points: Sequence[Point]) -> tuple[str, ...]:
    """The headings over the cells of `rows`: only those under which something stands."""
    return tuple(name for i, name in enumerate(HEADINGS) if any(row[i] for row in _cells(points)))


def rows(points: Sequence[Point]) -> tuple[tuple[str, ...], ...]:
    """A row for each point, in the order of measuring."""
    cells = _cells(points)
    used = [i for i in range(len(HEADINGS)) if any(row[i] for row in cells)]
    return tuple(tuple(row[i] or "–" for i in used) for row in cells)


def _cells(points: Sequence[Point]) -> list[tuple[str, ...]]:
    return [
        (
            p.item.name,
            _of(p),
            format_duration(p.median_s, 3),
            f"{format_duration(p.p10_s, 3)} to {format_duration(p.p90_s, 3)}",
            point_rate_text(p) if p.flop else "",
            bandwidth_text(p.bandwidth) if p.bytes else "",
            format_exact(p.runs),
            "" if p.relative_error is None else error_text(p),
            "" if p.peak_memory_bytes is None else format_bytes(p.peak_memory_bytes, system="binary", digits=3),
        )
        for p in points
    ]


def _of(point: Point) -> str:
    """Which of its name it is; of a matmul that is no square its sizes too."""
    item, sizes = point.item, " × ".join(f"{size:,}" for size in point.shape)
    shape = f", {sizes}" if item.kind == "matmul" and not is_square(point) else ""
    return item.label + shape + (" (sustained)" if item.regime == "sustained" else "")


def refusals(record: Record, kind: Kind) -> tuple[str, ...]:
    """What of a kind was refused or skipped, in the words it was, and what is to be known of a point."""
    sentences = [
        f"**{r.item.name}, {r.item.label} {r.why}**: {clip(r.text, 900)}"
        for r in record.refusals
        if r.item.kind == kind
    ]
    notes: dict[str, dict[str, None]] = {}
    for p in of_kind(record, kind):
        if p.note:
            notes.setdefault(p.note, {})[p.item.name] = None
    return (*sentences, *(f"{listed(list(names))}: {note}." for note, names in notes.items()))


def bandwidths(record: Record, palette: Palette) -> Figure:
    """Bandwidth of a copy over its size, caches visible as steps; the datasheet's bandwidth dashed."""
    points = sorted(of_kind(record, "memory"), key=lambda p: p.bytes)
    promised = sheet_bandwidth(record)
    speeds = [p.bandwidth for p in points] + ([] if math.isnan(promised) else [promised])
    unit, scale = ("TB/s", 1e12) if max(speeds) >= 1e12 else ("GB/s", 1e9)
    names = [as_typed(p.item.label) for p in points]
    low, middle, high = (
        [achieved_bandwidth(p.bytes, getattr(p, of)) / scale for p in points] for of in ("p90_s", "median_s", "p10_s")
    )
    curve = marks(
        "lines+markers",
        names,
        middle,
        [f"{name}: {bandwidth_text(p.bandwidth)}" for name, p in zip(names, points, strict=True)],
        error_y=whiskers(low, middle, high, palette.muted, thickness=1, width=3),
        line={"color": palette.memory_bound, "width": 2},
        marker={"symbol": "diamond", "size": 9, "color": palette.memory_bound},
    )
    figures: list[Figure] = []
    shapes: list[Figure] = []
    if not math.isnan(promised):
        line = {"color": palette.muted, "width": 1.5, "dash": "dash"}
        at = promised / scale
        shapes.append(rule(y=at, line=line))
        text = f"datasheet {bandwidth_text(promised)}"
        figures.append(label(palette, text, x=1, xref="paper", xanchor="right", y=at, yanchor="bottom"))
    return figure(
        palette,
        [curve],
        height=_HEIGHT,
        xaxis=axis(
            palette,
            "size of what is copied",
            type="category",
            fixedrange=True,
            tickfont={"family": MONO, "size": 12, "color": palette.muted},
        ),
        yaxis=axis(palette, f"read and written, {unit}", rangemode="tozero", fixedrange=True),
        annotations=figures,
        shapes=shapes,
    )


def bandwidths_alt(record: Record) -> str:
    """The takeaway of `bandwidths` for those who do not see it."""
    points = sorted(of_kind(record, "memory"), key=lambda p: p.bytes)
    sentences = [f"{p.item.label} {bandwidth_text(p.bandwidth)}" for p in points]
    return f"Bandwidth of a copy by its size: {', '.join(sentences)}."


def explanations(points: Sequence[Point]) -> tuple[Explanation, ...]:
    """Rate and bandwidth of each point, opened."""
    result: list[Explanation] = []
    for p in points:
        about = f"{p.item.name}, {p.item.label}"
        if p.flop:
            result.append(achieved_rate.explain(flop=p.flop, seconds=p.median_s).about(about))
        if p.bytes:
            result.append(achieved_bandwidth.explain(size=p.bytes, seconds=p.median_s).about(about))
    return tuple(result)
