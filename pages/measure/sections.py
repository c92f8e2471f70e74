"""Measure, what was found: matmuls, the other kinds, the rates for a plan, and the roofline."""

from __future__ import annotations

import math

from core.benchmark.best import best_squares
from core.benchmark.datasheet import datasheet_of, peak_of
from core.benchmark.points import Kind
from core.benchmark.rates import measured_rates
from core.benchmark.record import Record
from core.benchmark.roofline import Roof, measured_roof, placed_points
from core.formula import Explanation
from core.hardware.operations import ridge_point
from core.messages import Message, message
from core.planning.form.measured_rates import with_measured_rates
from core.step_time.predicted_measured import predicted_against_measured
from core.views.benchmark import charts, roofline, tables, text
from core.wording import plain
from pages.common import show
from pages.common.registry import COMPUTE, PARALLEL
from pages.common.theme import TOKENS

_TITLES: dict[Kind, str] = {
    "matmul": "measure.section.matmul",
    "memory": "measure.section.memory",
    "attention": "measure.section.attention",
    "layer": "measure.section.layer",
}


def section_title(kind: Kind) -> Message:
    """Return the heading of a kind."""
    return message(_TITLES[kind])


def draw_kind(record: Record, kind: Kind) -> None:
    """Draw what was found of a kind under its takeaway."""
    if kind == "matmul":
        _matmuls(record)
    points = text.points_of(record, kind)
    if kind == "memory" and points:
        alt = message("measure.chart.memory_alt", takeaway=text.takeaway(record, kind)[0])
        show.chart(charts.bandwidths(record, TOKENS), alt=plain(alt), key="measure:memory")
    if kind == "layer":
        _layer(record)
    if not points:
        _missing(record, kind)
        return
    with show.fold(message("measure.points.title"), key=f"measure:{kind}:numbers") as opened:
        if opened.open:
            if kind == "matmul" and len(record.programme.sizes) > 1 and best_squares(record):
                alt = message("measure.chart.curves_alt", takeaway=text.answer(record)[0])
                show.chart(charts.curves(record, TOKENS), alt=plain(alt), key="measure:rates:curves")
            headings, rows = tables.points_table(points)
            show.small_table(headings, rows, words=2)
            _missing(record, kind)


def _missing(record: Record, kind: Kind) -> None:
    headings, rows = tables.missing_table(record, kind)
    if rows:
        show.small_table(headings, rows, caption=message("measure.missing.caption"), words=None)


def _matmuls(record: Record) -> None:
    """Draw doubts, charts, notices, and the table of dtypes."""
    if doubt := text.doubts(record):
        show.error(" ".join(doubt))
    draw_rates(record)
    for notice in text.notices(record):
        show.note(notice)
    if not best_squares(record):
        return
    headings, rows = tables.dtype_table(record)
    notes = tables.kernel_notes(record, "matmul")
    cells = [(show.remarked(row[0], notes.get(row[0], "")), *row[1:]) for row in rows]
    show.small_table(headings, cells, caption=message("measure.table.caption"))


def draw_rates(record: Record, doing: str = "", key: str = "measure:rates") -> None:
    """Draw the rate of each dtype. doing: the dtype that is being measured."""
    bars, takeaway = charts.bars_of(record, doing), text.takeaway(record, "matmul")
    alt = message("measure.chart.rates_alt", takeaway=" ".join(takeaway))
    show.chart(charts.rates(bars, TOKENS), alt=plain(alt), key=key)
    if takeaway:
        show.note(charts.rates_caption(bars))


def _layer(record: Record) -> None:
    """Draw the predicted and the measured steps."""
    steps, why = predicted_against_measured(record)
    if steps:
        headings, rows = tables.step_table(steps)
        show.small_table(headings, rows, caption=message("measure.step.caption"))
    elif why:
        show.note(why)


def draw_plan(record: Record) -> None:
    """Draw the rates that a plan can use and the ways into one; nothing for a CPU, on which no plan trains."""
    texts = with_measured_rates(record)
    if not texts or record.programme.device == "cpu":
        return
    with show.question(message("measure.section.plan")):
        headings, rows = tables.plan_table(measured_rates(record))
        show.small_table([headings[0], show.Column(headings[1], numeric=True), headings[2]], rows, words=None)
        for page in (PARALLEL, COMPUTE):
            show.next_page(message("measure.plan.link", page=page.title), page, texts)


def draw_roofline(record: Record) -> None:
    """Draw the measured roofline and the datasheet's."""
    roof = measured_roof(record, measured_rates(record).rates.memory)
    if math.isnan(roof.ridge):
        lacks = "measure.roofline.needs_matmul" if math.isnan(roof.top) else "measure.roofline.needs_copy"
        show.note(message(lacks))
        return
    promised = datasheet_of(record)
    sheet = Roof({dtype: peak_of(promised, dtype) for dtype in roof.peaks}, promised.bandwidth)
    takeaway = text.roofline_text(record, roof, sheet)
    show.takeaway(takeaway)
    alt = message("measure.chart.roofline_alt", takeaway=takeaway)
    show.chart(roofline.picture(record, roof, sheet, TOKENS), alt=plain(alt), key="measure:roof")
    headings, rows = tables.roofline_table(record, roof)
    if rows:
        show.small_table(headings, rows, caption=message("measure.roofline.caption"))
    steps = [step for p in placed_points(record, roof) for step in roof.place(p).explanations]
    ridge = ridge_point.explain(peak=roof.top, bandwidth=roof.bandwidth)
    show.how([ridge, *steps], key="measure:roof:how", label=message("measure.how.roofline"))


def explanations(record: Record) -> list[Explanation]:
    """Return the formulas behind the numbers of the page."""
    predicted = predicted_against_measured(record)[0]
    return text.explanations(record) + [
        step.about(message("measure.how.predicted", variant=one.point.item.label))
        for one in predicted
        for step in one.predicted.explanations
    ]
