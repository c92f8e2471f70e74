"""Compute budget, evidence: the published run beside the plan, every published run, and how well they predict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.formula import Explanation
from core.limits import cached
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
from core.views.plan.charts import answer_strip
from core.views.runs import text
from core.views.runs.charts import RunPoint, evidence_scatter
from core.wording import known, percent
from pages.common import show
from pages.common.figures import wire
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS
from pages.compute.form import BASIS


def _runs(a: PlanEstimate) -> list[Comparison]:
    """The published runs of the very model, held against 6ND at the plan's MFU of the dense 16-bit peak."""
    if a.model is None or a.plan.model == OWN_SHAPE or not a.plan.trained.everything:
        return []
    mfu = a.middle.mfu * a.peak / peak_16bit(a.device.name)
    return compare_all(a.model, mfu, a.plan.seq_len, a.device.name)


def comparisons(a: PlanEstimate) -> list[Explanation]:
    """The utilisation of the published run of the very model, if there is one."""
    return [explain_comparison(run) for run in _runs(a)[:1]]


@cached("results_kept")
def mfu_beside_runs(a: PlanEstimate, most: int = 12) -> tuple[str, dict[str, Any]]:
    """The MFU beside that of published runs, in words and as a picture; so many of them at ``most``. Most reruns show
    the plan of the rerun before."""
    similar = similar_runs(a, most)
    return text.nearest_runs_sentence(a, similar), wire(answer_strip(a, similar, TOKENS))


def published_run(a: PlanEstimate) -> None:
    """The published run of the same model beside the plan."""
    runs = _runs(a)
    if a.model and a.plan.model != OWN_SHAPE and a.plan.trained.everything and not runs:
        show.note(text.no_run(a.model))
    for published in runs[:1]:
        show.small_table(
            text.published_headings(published, a.middle.mfu, a.dtype),
            text.published_rows(
                published, a.middle.accelerators, a.middle.steps_mfu * a.peak / peak_16bit(a.device.name)
            ),
            caption=text.about_run(published),
        )
        if published.run.notes:
            show.note(published.run.notes)
        show.source(f"{published.run.source} ({known(published.run.confidence)})")


def evidence_panel(inputs: Inputs, a: PlanEstimate) -> None:
    """Every published run, yours among them; the nearest with what sets them apart; each predicted from the others."""
    timed, new_hardware = a.terms.has_step_estimate, a.terms.new_hardware
    show.takeaway(text.scored(score(), score_of(predictions_by_one_of_its_own())))
    show.note(
        text.share_of(
            published_shares(timed, new_hardware),
            len(run_shares(timed)),
            has_step_estimate=timed,
            new_hardware=new_hardware,
        )
    )
    show.note(printed_mfu().text)
    inputs.draw(BASIS)
    basis: Basis = inputs.reading.values[BASIS.id]
    rows = evidence(basis)
    similar = similar_runs(a)
    near = {run.similarity.evidence for run in similar}
    show.chart(
        evidence_scatter(_points(rows, a, near), TOKENS),
        alt=f"{len(rows)} published runs, MFU against active parameters, and the plan among them at "
        f"{percent(a.middle.mfu)} MFU. The nearest are filled.",
        key="compute:scatter",
    )
    show.note("Filled: nearest to your plan. Hover for the figures and their source.")
    with show.fold("The nearest runs, and how they differ from your plan", key="compute:near") as panel:
        if panel.open:
            show.small_table(
                text.NEAREST,
                text.near_rows(similar, {run.evidence: run.share for run in run_shares(has_step_estimate=True)}),
                words=3,
            )
    with show.fold(f"Predicted against published, all {len(predictions())} whole runs", key="compute:pred") as panel:
        if panel.open:
            show.small_table(
                text.PREDICTED,
                text.predicted(predictions()),
                caption="Accelerator-hours. Each run is predicted from those of all other labs.",
                words=3,
            )
    gone = left_out(basis)
    with show.fold(f"{len(gone)} published rows left out, and why", key="compute:left") as panel:
        if panel.open:
            rows = [(row.run.model, f"{row.reason}.") for row in gone]
            show.small_table(("row", "why it is left out"), rows, words=None)


def _points(rows: Sequence[Evidence], a: PlanEstimate, near: set[Evidence]) -> list[RunPoint]:
    points = [RunPoint(row.run.model, row.run.params, row.utilisation, text.pointed(row), row in near) for row in rows]
    m = a.middle
    yours = m.mfu / a.peak_ratio * 6 / m.per_parameter
    return [*points, RunPoint("yours", m.parameters, yours, "Your plan", here=True)]
