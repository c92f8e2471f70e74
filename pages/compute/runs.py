"""Compute budget, evidence: the published run beside the plan, every published run, and how well they predict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.formula import Explanation
from core.limits import cached
from core.messages import message
from core.planning.estimate import PlanEstimate
from core.planning.nearest_runs import similar_runs
from core.planning.plan import OWN_SHAPE
from core.runs.published import (
    Basis,
    Comparison,
    Evidence,
    compare_all,
    evidence,
    explain_comparison,
    left_out,
    peak_16bit,
    printed_mfu,
)
from core.runs.run_efficiency import published_shares, run_shares
from core.runs.scores import predictions, predictions_by_one_of_its_own, score, score_of
from core.views.common.rows import cited
from core.views.plan.charts import answer_strip
from core.views.runs import text
from core.views.runs.charts import RunPoint, evidence_scatter
from core.wording import plain
from pages.common import show
from pages.common.figures import wire
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.compute.form import BASIS


def _runs(a: PlanEstimate) -> list[Comparison]:
    """Return the published runs of the very model, compared with 6ND at the plan's MFU of the dense 16-bit peak."""
    if a.model is None or a.plan.model == OWN_SHAPE or not a.plan.trained.everything:
        return []
    mfu = a.middle.mfu * a.peak / peak_16bit(a.device.name)
    return compare_all(a.model, mfu, a.plan.seq_len, a.device.name)


def comparisons(a: PlanEstimate) -> list[Explanation]:
    """Return the utilization of the published run of the very model, if there is one."""
    return [explain_comparison(run) for run in _runs(a)[:1]]


def draw_mfu_beside_runs(a: PlanEstimate) -> None:
    """Draw the plan at the run efficiency of the published runs that are nearest to it."""
    alt, strip = _mfu_beside_runs(a)
    show.chart(strip, alt=plain(alt), key="compute:answer")


@cached("results_kept")
def _mfu_beside_runs(a: PlanEstimate) -> tuple[str, dict[str, Any]]:
    """Return alt text and picture. Most reruns show the plan of the rerun before."""
    similar = similar_runs(a, _SIMILAR)
    return text.similar_runs_text(a, similar), wire(answer_strip(a, similar, TOKENS))


_SIMILAR = 6
"""Published runs in the picture of the answer."""


def _published_run(a: PlanEstimate) -> None:
    """Draw the published run of the same model beside the plan."""
    runs = _runs(a)
    if a.model and a.plan.model != OWN_SHAPE and a.plan.trained.everything and not runs:
        show.note(text.no_run(a.model))
    for published in runs[:1]:
        show.small_table(
            text.published_headings(published),
            text.published_rows(
                published, a.middle.accelerators, a.middle.steps_mfu * a.peak / peak_16bit(a.device.name)
            ),
            caption=text.about_run(published),
        )
        if published.run.notes:
            show.note(published.run.notes)
        show.source(cited(published.run.source, published.run.confidence))


def evidence_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """Draw how well published runs predict each other, every one of them with yours among them, and that of the
    model."""
    timed, new_hardware = a.terms.has_step_estimate, a.terms.new_hardware
    show.takeaway(text.score_text(score()))
    shares, runs = published_shares(timed, new_hardware), len(run_shares(timed))
    show.note(text.efficiency_text(shares, runs, has_step_estimate=timed, new_hardware=new_hardware))
    show.note(printed_mfu().text)
    inputs.draw(BASIS)
    basis: Basis = inputs.reading.values[BASIS.id]
    rows = evidence(basis)
    similar = similar_runs(a)
    near = {run.similarity.evidence for run in similar}
    show.chart(
        evidence_scatter(_points(rows, a, near), TOKENS),
        alt=message("runs.scatter.alt", runs=float(len(rows)), mfu=a.middle.mfu),
        key="compute:scatter",
    )
    show.note(message("runs.scatter.caption"))
    _published_run(a)
    with show.fold(message("runs.near.title"), key="compute:near") as panel:
        if panel.open:
            shares_by_run = {run.evidence: run.share for run in run_shares(has_step_estimate=True)}
            show.small_table(*text.near_table(similar, shares_by_run), words=3)
    with show.fold(message("runs.predicted.title", runs=float(len(predictions()))), key="compute:pred") as panel:
        if panel.open:
            show.note(text.score_detail(score(), score_of(predictions_by_one_of_its_own())))
            show.small_table(
                *text.predicted_table(predictions()),
                caption=message("runs.predicted.caption"),
                words=3,
            )
    gone = left_out(basis)
    with show.fold(message("runs.excluded.title", rows=float(len(gone))), key="compute:left") as panel:
        if panel.open:
            reasons = [(row.run.model, message("runs.excluded.because", reason=row.reason)) for row in gone]
            headings = (message("runs.excluded.row"), message("runs.excluded.reason"))
            show.small_table(headings, reasons, words=None)


def _points(rows: Sequence[Evidence], a: PlanEstimate, near: set[Evidence]) -> list[RunPoint]:
    points = [
        RunPoint(row.run.model, row.run.params, row.utilisation, text.hover_text(row), row in near) for row in rows
    ]
    m, yours = a.middle, message("runs.scatter.yours")
    mfu = m.mfu / a.peak_ratio * 6 / m.per_parameter
    return [*points, RunPoint(yours, m.parameters, mfu, yours, here=True)]
