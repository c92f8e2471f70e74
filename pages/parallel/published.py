"""Parallel plan, held against what was measured: published layouts beside the search’s, and every published step."""

from __future__ import annotations

from core.search.neighbours import compare_published
from core.step_time.calibration.fit import kept
from core.views.search import text_evidence as words
from core.views.search.charts_evidence import predicted_against_measured
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.parallel.request import SearchInputs


def published_layouts_panel(_: Inputs, __: SearchInputs) -> None:
    """Published layouts, as they were measured, as they are timed here, and where the search would have gone."""
    comparisons = compare_published()
    show.takeaway(words.published(comparisons))
    show.small_table(
        [show.Column(heading, numeric=i in (2, 3, 4, 5, 7)) for i, heading in enumerate(words.PUBLISHED)],
        words.published_rows(comparisons),
        caption="On the same accelerators with the same batch, kernels, and overlap.",
    )
    for source in dict.fromkeys(comparison.run.source for comparison in comparisons):
        show.source(source)


def measured_steps_panel(_: Inputs, __: SearchInputs) -> None:
    """Every published step, predicted and measured."""
    calibration = kept()
    text = words.believed(calibration)
    show.takeaway(text)
    show.chart(
        predicted_against_measured(*words.points(calibration), TOKENS),
        alt=f"Predicted against measured seconds of a step. {plain(text)}",
        key="parallel:evidence",
    )
    show.note(words.ordered(calibration))
    show.note(words.covered())
