"""Parallel plan, its evidence: predicted and measured steps."""

from __future__ import annotations

from core.messages import message
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
    show.small_table(*text.coverage_table({kind: coverage_of(kind) for kind in TUNINGS}))
