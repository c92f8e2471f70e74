"""Parallel plan, held against what was measured: published layouts beside the search’s, and every published step."""

from __future__ import annotations

from core.search.published_layouts import compare_published
from core.step_time.calibration.report import kept
from core.views.search import text_evidence as words
from core.views.search.charts_evidence import errors_within, predicted_against_measured
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.parallel.form import SOURCE
from pages.parallel.request import SearchInputs


def published_layouts_panel(_: Inputs, __: SearchInputs) -> None:
    """Published layouts, as they were measured, as they are timed here, and where the search would have gone."""
    comparisons = compare_published()
    show.takeaway(words.published(comparisons))
    show.small_table(
        [show.Column(heading, numeric=i in (2, 3, 4, 5, 7)) for i, heading in enumerate(words.PUBLISHED)],
        words.published_rows(comparisons),
        caption="On the same accelerators with the same batch, kernels and overlap.",
    )
    for source in dict.fromkeys(comparison.run.source for comparison in comparisons):
        show.source(source)


def measured_steps_panel(inputs: Inputs, _: SearchInputs) -> None:
    """Every published step, predicted and measured."""
    head = show.slot()
    inputs.draw(SOURCE)
    show.draw_problems(inputs, SOURCE.id)
    source = inputs.reading.values[SOURCE.id]
    every = kept()
    calibration = every if source == "all" else words.of_source(every, source)
    text = words.believed(calibration)
    with head:
        show.takeaway(text)
    show.chart(
        predicted_against_measured(*words.points(calibration), TOKENS),
        alt=f"Predicted against measured seconds of a step. {plain(text)}",
        key="parallel:evidence",
    )
    show.chart(
        errors_within(words.curves(calibration), TOKENS),
        alt=f"Share of published steps within each error. {plain(text)}",
        key="parallel:errors",
    )
    show.note(words.ordered(every))
    show.note(words.covered())
