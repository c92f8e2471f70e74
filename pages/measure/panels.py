"""The parts of the page under its answer: what else was timed, the roofline, every matmul, how it was done."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.benchmark.datasheet import datasheet_of, peak_of
from core.benchmark.points import Kind, Point
from core.benchmark.rates import measured_rates
from core.benchmark.record import Record
from core.formula import Explanation
from core.planning.form.measured_rates import named, with_measured_rates
from core.step_time.predicted_measured import HEADINGS, predicted_against_measured
from core.views.benchmark import charts, common, matmul, others, roofline
from core.wording import listed
from pages.common import show
from pages.common.registry import COMPUTE, PARALLEL
from pages.common.theme import TOKENS

MATMUL_CAPTION = "Each dtype at the square where it is fastest; the error is relative to a float64 product."


def matmuls(record: Record, *, led: bool) -> None:
    """Answer, doubts, charts and table of a record's matmuls. led: whether another kind is the page's answer."""
    key = "measure:rates"
    if matmul.bests(record):
        sentence, detail = matmul.answer(record)
        if led:
            show.takeaway(sentence)
            show.note(detail)
        else:
            show.answer(sentence, detail)
    for doubt in filter(None, (matmul.warning(record), matmul.disturbed(record))):
        show.error(doubt)
    drawn = matmul.bars(record)
    show.chart(charts.rates(drawn, TOKENS), alt=matmul.chart_alt(record), key=key)
    if read := charts.rates_key(drawn):
        show.note(read)
    if len(record.programme.sizes) > 1 and matmul.bests(record):
        with show.question("How does the rate grow with the size?"):
            show.chart(charts.curves(record, TOKENS), alt=charts.curves_alt(record), key=f"{key}:curves")
    if matmul.bests(record):
        show.small_table(matmul.headings(record), matmul.rows(record), caption=MATMUL_CAPTION)
    for remark in matmul.remarks(record):
        show.note(remark)


def kinds_of(record: Record) -> tuple[Kind, ...]:
    """The kinds but matmul of which something was tried, in the order in which they are shown."""
    tried = {outcome.item.kind for outcome in record.outcomes}
    return tuple(kind for kind in others.TITLES if kind in tried)


def kind(record: Record, which: Kind, *, led: bool = False, measured: str = "") -> None:
    """What was timed of one kind: takeaway, picture where there is one, and table. led: it has been said already.
    measured: when, where that was not with the rest."""
    points = common.of_kind(record, which)
    with show.question(others.TITLES[which]):
        if points:
            if not led:
                show.takeaway(others.says(record, which))
            if measured:
                show.note(measured)
            if which == "memory":
                show.chart(others.bandwidths(record, TOKENS), alt=others.bandwidths_alt(record), key="measure:memory")
            if which == "layer":
                _layer(record)
            with show.fold("In numbers", key=f"measure:{which}:numbers") as numbers:
                if numbers.open:
                    show.small_table(others.headings(points), others.rows(points), words=2)
        for remark in others.refusals(record, which):
            show.note(remark)


def roof(record: Record) -> None:
    """The measured roofline, and the datasheet's."""
    measured = roofline.measured(record, measured_rates(record).rates.memory)
    if not measured.known:
        lacks = "a matmul in bf16 or fp32" if math.isnan(measured.top) else "a large copy whose runs agree"
        show.note(f"A roofline needs {lacks}, and there is none yet: measure “Rates for a plan”.")
        return
    promised = datasheet_of(record)
    sheet = roofline.Roof({dtype: peak_of(promised, dtype) for dtype in measured.peaks}, others.sheet_bandwidth(record))
    show.takeaway(roofline.takeaway(record, measured, sheet))
    drawn = roofline.picture(record, measured, sheet, TOKENS)
    show.chart(drawn, alt=roofline.takeaway(record, measured, sheet).replace("**", ""), key="measure:roof")
    if rows := roofline.rows(record, measured):
        show.note("Hover over a dot to see what it is and how fast it ran.")
        caption = "Each operand read once and each result written once; above 100% a cache holds them."
        show.small_table(roofline.HEADINGS, rows, caption=caption)
    show.how(roofline.explanations(record, measured), key="measure:roof:how", label="How the roofline is computed")


def supplemented(record: Record, older: Sequence[Record]) -> Record:
    """A measurement with what it lacks, kind by kind, from the newest older one of the same device and method."""
    outcomes, programme = [*record.outcomes], record.programme
    have = {point.item.kind for point in record.points}
    for other in older:
        if other.method == record.method and other.facts and record.facts and other.facts.name == record.facts.name:
            kinds = {point.item.kind for point in other.points} - have
            outcomes += [outcome for outcome in other.outcomes if outcome.item.kind in kinds]
            have |= kinds
            taken = ("dtypes", "sizes") * ("matmul" in kinds) + ("layer",) * ("layer" in kinds)
            programme = programme.model_copy(update={name: getattr(other.programme, name) for name in taken})
    return record.model_copy(update={"outcomes": tuple(outcomes), "programme": programme})


def every(record: Record) -> None:
    """Every matmul, squares and shapes."""
    if points := common.of_kind(record, "matmul"):
        show.small_table(others.headings(points), others.rows(points), caption="In the order of measuring.", words=2)
    else:
        show.note("No matmul is part of this measurement.")


def opened(record: Record) -> tuple[Explanation, ...]:
    """Every number of the page, opened."""
    rest: list[Point] = [p for kind in others.TITLES for p in common.of_kind(record, kind)]
    predicted = [step for measured in predicted_against_measured(record)[0] for step in measured.explanations]
    return (*matmul.explanations(record), *others.explanations(rest), *predicted)


def use(record: Record) -> None:
    """The way into a plan with the rates that were measured, and why some are missing."""
    texts = with_measured_rates(record)
    if not texts or record.programme.device == "cpu":  # no plan trains on one
        return
    with show.question("What does that mean for a plan?"):
        text = listed([f"{name} {text}" for name, text in named(texts)])
        show.note(" ".join((f"A plan can take {text} in place of a datasheet’s.", *measured_rates(record).remarks)))
        for page in (PARALLEL, COMPUTE):
            show.next_page(f"Use these rates in {page.title}", page, texts)


def _layer(record: Record) -> None:
    """What was predicted of each step that was timed."""
    measurements, why = predicted_against_measured(record)
    if measurements:
        show.small_table(
            HEADINGS,
            [measured.cells for measured in measurements],
            caption="Predicted by the rates measured here, else by the datasheet.",
        )
    elif why:
        show.note(why)
