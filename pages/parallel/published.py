"""Parallel plan, its evidence: published layouts compared with the search, and predicted with measured steps."""

from __future__ import annotations

from core.messages import message
from core.search.neighbours import compare_published
from core.step_time.calibration.fit import kept, ranking
from core.step_time.error_ranges import coverage_of
from core.step_time.running import TUNINGS
from core.views.search import text_evidence as text
from core.views.search.charts_evidence import predicted_against_measured
from core.wording import plain
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.parallel.inputs import SearchInputs


def published_layouts_panel(_: Inputs, __: SearchInputs) -> None:
    """Draw published layouts with their predicted times, and the fastest layout of the search."""
    comparisons = compare_published()
    show.takeaway(text.published_text(comparisons))
    show.small_table(
        [show.Column(heading, numeric=i in (2, 3, 4, 5, 7)) for i, heading in enumerate(text.published_headings())],
        text.published_rows(comparisons),
        caption=message("parallel.published.caption"),
    )
    for source in dict.fromkeys(comparison.run.source for comparison in comparisons):
        show.source(source)


def measured_steps_panel(_: Inputs, __: SearchInputs) -> None:
    """Draw every published step, predicted and measured."""
    calibration = kept()
    points, finding = text.points(calibration), text.accuracy_text(calibration)
    show.takeaway(finding)
    show.chart(
        predicted_against_measured(*points, TOKENS),
        alt=plain(message("parallel.alt.steps", finding=finding)),
        key="parallel:evidence",
    )
    show.note(text.ranking_text(ranking(calibration.runs, points[1])))
    show.small_table(text.coverage_headings(), text.coverage_rows({kind: coverage_of(kind) for kind in TUNINGS}))
