"""Tables of a measurement: headings, and rows of cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.benchmark.best import best_squares, is_spread, is_square, sustained
from core.benchmark.datasheet import best_published, comparable_peak, datasheet_of, peak_of
from core.benchmark.formulas import share_of_peak
from core.benchmark.points import Kind, Point, clip
from core.benchmark.rates import MeasuredRates, SelectedRate
from core.benchmark.record import Record
from core.benchmark.roofline import Roof, placed_points
from core.hardware.accelerators import rate_kind
from core.hardware.cluster import RateName
from core.messages import Message, message
from core.step_time.predicted_measured import PredictedMeasured
from core.units import (
    QuantityText,
    format_bytes,
    format_duration,
    format_exact,
    format_quantity,
    scientific,
    significant,
)
from core.views.benchmark.text import range_of
from core.wording import format_value, percent

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Headings, and rows of cells."""


def rate_text(rate: float, dtype: str = "") -> str:
    """A rate to three digits: 790 TFLOP/s, of int8 790 TOP/s."""
    return format_quantity(rate, rate_kind(dtype), 3)


def bandwidth_text(rate: float) -> str:
    """A bandwidth to three digits: 3.91 TB/s."""
    return format_quantity(rate, "bytes_per_s", 3)


def _error_text(point: Point) -> str:
    if point.relative_error is None:
        return ""
    return scientific(point.relative_error, 2) if point.relative_error else "0"


def _used(headings: Sequence[Message], rows: Sequence[tuple[str, ...]]) -> Table:
    """The columns that have a value."""
    used = [i for i in range(len(headings)) if any(row[i] for row in rows)]
    return tuple(headings[i] for i in used), [tuple(row[i] or "–" for i in used) for row in rows]


def dtype_table(record: Record) -> Table:
    """Return each dtype at the square where it is fastest."""
    sheet, bests = datasheet_of(record), best_squares(record)
    base = next((p for p in bests if p.item.name == "fp32"), None)
    headings = (
        message("measure.table.dtype"),
        message("measure.table.n"),
        message("measure.table.rate"),
        message("measure.table.range"),
        message("measure.table.sustained"),
        message("measure.table.share"),
        message("measure.table.published"),
        message("measure.table.fp32"),
        message("measure.table.error"),
    )
    rows: list[tuple[str, ...]] = []
    for p in bests:
        dtype, long = p.item.name, sustained(record.points, p.item.name)
        published = share_of_peak(p.rate, best_published(sheet, dtype))
        rows.append(
            (
                dtype,
                format_exact(p.shape[0]),
                rate_text(p.rate, dtype),
                format_value(*range_of(p)),
                rate_text(long[-1].rate, dtype) if long else "",
                _share_text(record, p),
                "" if math.isnan(published) else percent(published),
                _relative_text(p, base),
                _error_text(p),
            )
        )
    return _used(headings, rows)


def _share_text(record: Record, p: Point) -> str:
    sheet = datasheet_of(record)
    share = share_of_peak(p.rate, comparable_peak(sheet, p))
    if math.isnan(share):
        known = not math.isnan(peak_of(sheet, p.item.name))
        return message("measure.table.not_compared" if known else "measure.table.unknown") if sheet.rows else ""
    text = percent(share)
    over = message("measure.table.over_peak", share=share)
    return text.written(over) if share > 1 and isinstance(text, QuantityText) else text


def _relative_text(p: Point, base: Point | None) -> str:
    """How fast a dtype is relative to fp32, where the runs of both agree well enough to say so."""
    if base is None or (p is not base and (is_spread(p) or is_spread(base))):
        return message("measure.table.unknown")
    return format_value(p.rate / base.rate, "factor")


def points_table(points: Sequence[Point]) -> Table:
    """Return everything that was timed of a kind, in order."""
    headings = (
        message("measure.points.item"),
        message("measure.points.variant"),
        message("measure.points.time"),
        message("measure.points.range"),
        message("measure.points.rate"),
        message("measure.points.bandwidth"),
        message("measure.points.runs"),
        message("measure.points.error"),
        message("measure.points.memory"),
    )
    return _used(headings, [_point_cells(p) for p in points])


def _point_cells(p: Point) -> tuple[str, ...]:
    shape = "" if p.item.kind != "matmul" or is_square(p) else f", {' × '.join(f'{size:,}' for size in p.shape)}"
    label, peak = p.item.label + shape, p.peak_memory_bytes
    return (
        p.item.name,
        message("measure.points.sustained", item=label) if p.item.regime == "sustained" else label,
        format_duration(p.median_s, 3),
        format_value((p.p10_s, p.p90_s), "time"),
        rate_text(p.rate, p.item.name) if p.flop else "",
        bandwidth_text(p.bandwidth) if p.bytes else "",
        format_exact(p.runs),
        _error_text(p),
        "" if peak is None else format_bytes(peak, system="binary", digits=3),
    )


def missing_table(record: Record, kind: Kind) -> Table:
    """Return what of a kind was not measured and why, items with one reason together; then the notes on kernels."""
    alike: dict[tuple[str, str], list[str]] = {}
    for refusal in record.refusals:
        if refusal.item.kind == kind:
            alike.setdefault((refusal.item.name, clip(refusal.text, 900)), []).append(refusal.item.label)
    rows = [(name, ", ".join(labels), reason) for (name, reason), labels in alike.items()]
    headings = (message("measure.points.item"), message("measure.points.variant"), message("measure.missing.reason"))
    return headings, rows


def kernel_notes(record: Record, kind: Kind) -> dict[str, str]:
    """Return by name what is to be known of the kernels of a kind."""
    return {p.item.name: p.note for p in record.points if p.item.kind == kind and p.note}


_PLAN_RATES: dict[RateName, str] = {
    "matmul16": "measure.plan.matmul16",
    "matmul8": "measure.plan.matmul8",
    "matmul4": "measure.plan.matmul4",
    "memory": "measure.plan.memory",
}


def plan_table(found: MeasuredRates) -> Table:
    """Return the rates that a plan can use and what they are of, or why there is none."""
    headings = (
        message("measure.plan.heading.rate"),
        message("measure.plan.heading.measured"),
        message("measure.plan.heading.basis"),
    )
    return headings, [(message(_PLAN_RATES[one.name]), *_rate_cells(one)) for one in found.selected]


def _rate_cells(one: SelectedRate) -> tuple[str, str]:
    p = one.point
    if p is None:
        return "–", message("measure.plan.missing", reasons=one.reasons)
    if one.name == "memory":
        return bandwidth_text(p.bandwidth), message("measure.plan.copy", size=p.item.label)
    basis = "measure.plan.sustained" if p.item.regime == "sustained" else "measure.plan.burst"
    return rate_text(p.rate), message(basis, dtype=p.item.name, n=float(p.shape[0]), seconds=p.duration_s)


def step_table(steps: Sequence[PredictedMeasured]) -> Table:
    """Return the predicted and measured steps of a layer."""
    headings = (
        message("measure.step.heading"),
        message("measure.step.predicted"),
        message("measure.step.measured"),
        message("measure.step.ratio"),
        message("measure.step.memory_predicted"),
        message("measure.step.memory_measured"),
        message("measure.step.memory_ratio"),
    )
    rows: list[tuple[str, ...]] = []
    for one in steps:
        peak = one.point.peak_memory_bytes
        rows.append(
            (
                one.point.item.label,
                format_duration(one.predicted.seconds, 3),
                format_duration(one.point.median_s, 3),
                percent(one.time_ratio),
                format_bytes(one.predicted.peak_bytes, system="binary", digits=3),
                "" if peak is None else format_bytes(peak, system="binary", digits=3),
                "" if peak is None else percent(one.memory_ratio),
            )
        )
    return _used(headings, rows)


def roofline_table(record: Record, roof: Roof) -> Table:
    """Return every point of the roofline: its intensity, its rate, and the share of what the roof allows there."""
    headings = (
        message("measure.roofline.item"),
        message("measure.roofline.intensity"),
        message("measure.roofline.rate"),
        message("measure.roofline.share"),
        message("measure.roofline.bound"),
    )
    rows: list[tuple[str, ...]] = []
    for p in placed_points(record, roof):
        placed = roof.place(p)
        rows.append(
            (
                message("measure.chart.item", item=p.item.name, variant=p.item.label),
                significant(float(placed.intensity), 3),
                rate_text(p.rate),
                percent(p.rate / float(placed.attainable)),
                placed.bound,
            )
        )
    return headings, rows
