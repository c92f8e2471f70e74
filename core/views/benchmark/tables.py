"""Tables of a measurement: headings, and rows of cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
from core.views.common.table import Table, table_of
from core.wording import format_value, percent


def rate_text(rate: float, dtype: str = "") -> str:
    """Return a rate to three digits: 790 TFLOP/s, of int8 790 TOP/s."""
    return format_quantity(rate, rate_kind(dtype), 3)


def bandwidth_text(rate: float) -> str:
    """Return a bandwidth to three digits: 3.91 TB/s."""
    return format_quantity(rate, "bytes_per_s", 3)


def _error_text(point: Point) -> str:
    if point.relative_error is None:
        return ""
    return scientific(point.relative_error, 2) if point.relative_error else "0"


def _used(columns: Mapping[Message, Sequence[str]]) -> Table:
    """Return the columns that have a value."""
    return table_of({heading: [cell or "–" for cell in cells] for heading, cells in columns.items() if any(cells)})


def dtype_table(record: Record) -> Table:
    """Return each dtype at the square where it is fastest."""
    sheet, bests = datasheet_of(record), best_squares(record)
    base = next((p for p in bests if p.item.name == "fp32"), None)
    dtypes = [p.item.name for p in bests]
    published = [share_of_peak(p.rate, best_published(sheet, p.item.name)) for p in bests]
    long = [sustained(record.points, dtype) for dtype in dtypes]
    return _used(
        {
            message("measure.table.dtype"): dtypes,
            message("measure.table.n"): [format_exact(p.shape[0]) for p in bests],
            message("measure.table.rate"): [rate_text(p.rate, p.item.name) for p in bests],
            message("measure.table.range"): [format_value(*range_of(p)) for p in bests],
            message("measure.table.sustained"): [
                rate_text(one[-1].rate, one[-1].item.name) if one else "" for one in long
            ],
            message("measure.table.share"): [_share_text(record, p) for p in bests],
            message("measure.table.published"): ["" if math.isnan(share) else percent(share) for share in published],
            message("measure.table.fp32"): [_relative_text(p, base) for p in bests],
            message("measure.table.error"): [_error_text(p) for p in bests],
        }
    )


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
    """Return how fast a dtype is relative to fp32, where the runs of both agree well enough to say so."""
    if base is None or (p is not base and (is_spread(p) or is_spread(base))):
        return message("measure.table.unknown")
    return format_value(p.rate / base.rate, "factor")


def points_table(points: Sequence[Point]) -> Table:
    """Return everything that was timed of a kind, in order."""
    return _used(
        {
            message("measure.points.item"): [p.item.name for p in points],
            message("measure.points.variant"): [_variant(p) for p in points],
            message("measure.points.time"): [format_duration(p.median_s, 3) for p in points],
            message("measure.points.range"): [format_value((p.p10_s, p.p90_s), "time") for p in points],
            message("measure.points.rate"): [rate_text(p.rate, p.item.name) if p.flop else "" for p in points],
            message("measure.points.bandwidth"): [bandwidth_text(p.bandwidth) if p.bytes else "" for p in points],
            message("measure.points.runs"): [format_exact(p.runs) for p in points],
            message("measure.points.error"): [_error_text(p) for p in points],
            message("measure.points.memory"): [_memory_text(p.peak_memory_bytes) for p in points],
        }
    )


def _variant(p: Point) -> str:
    shape = "" if p.item.kind != "matmul" or is_square(p) else f", {' × '.join(f'{size:,}' for size in p.shape)}"
    label = p.item.label + shape
    return message("measure.points.sustained", item=label) if p.item.regime == "sustained" else label


def _memory_text(size: float | None) -> str:
    return "" if size is None else format_bytes(size, system="binary", digits=3)


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
    """Return the notes on kernels of a kind, by name."""
    return {p.item.name: p.note for p in record.points if p.item.kind == kind and p.note}


_PLAN_RATES: dict[RateName, str] = {
    "matmul16": "measure.plan.matmul16",
    "matmul8": "measure.plan.matmul8",
    "matmul4": "measure.plan.matmul4",
    "memory": "measure.plan.memory",
}


def plan_table(found: MeasuredRates) -> Table:
    """Return the rates that a plan can use and their basis, or the reason why there is none."""
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
    peaks = [one.point.peak_memory_bytes for one in steps]
    ratios = [percent(one.memory_ratio) if peak is not None else "" for one, peak in zip(steps, peaks, strict=True)]
    return _used(
        {
            message("measure.step.heading"): [one.point.item.label for one in steps],
            message("measure.step.predicted"): [format_duration(one.predicted.seconds, 3) for one in steps],
            message("measure.step.measured"): [format_duration(one.point.median_s, 3) for one in steps],
            message("measure.step.ratio"): [percent(one.time_ratio) for one in steps],
            message("measure.step.memory_predicted"): [_memory_text(one.predicted.peak_bytes) for one in steps],
            message("measure.step.memory_measured"): [_memory_text(peak) for peak in peaks],
            message("measure.step.memory_ratio"): ratios,
        }
    )


def roofline_table(record: Record, roof: Roof) -> Table:
    """Return every point of the roofline: its intensity, its rate, and the share of what the roof allows there."""
    points = placed_points(record, roof)
    placed = [(p, roof.place(p)) for p in points]
    names = [message("measure.chart.item", item=p.item.name, variant=p.item.label) for p in points]
    return table_of(
        {
            message("measure.roofline.item"): names,
            message("measure.roofline.intensity"): [significant(float(at.intensity), 3) for _, at in placed],
            message("measure.roofline.rate"): [rate_text(p.rate) for p in points],
            message("measure.roofline.share"): [percent(p.rate / float(at.attainable)) for p, at in placed],
            message("measure.roofline.bound"): [at.bound for _, at in placed],
        }
    )
