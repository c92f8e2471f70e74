"""Compute budget, evidence: the published run beside the plan, every published run, and how well they predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.planning.answer import words
from core.planning.answer.figures import Point, evidence_scatter
from core.planning.answer.outlook import explain_row
from core.planning.counting.figures import hours_of_a_run
from core.planning.evidence import words as words_runs
from core.planning.evidence.comparable import predictions, score
from core.planning.evidence.rows import Basis, Evidence, base_peak, evidence, left_out
from core.planning.evidence.runs import Comparison, compare_all
from pages.compute.inputs import Asked
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS


def comparisons(asked: Asked) -> list[Comparison]:
    """The published runs of the very model, held against 6ND at the plan's MFU."""
    if asked.model is None or asked.own:
        return []
    # Published runs are held against the dense 16-bit peak, so the plan's MFU has to be as well.
    mfu = asked.plan.mfu * asked.plan.peak / base_peak(asked.device.name)
    return compare_all(asked.model, mfu, asked.seq_len, asked.device.name)


def beside(asked: Asked) -> None:
    """The published run of the same model beside the plan, and folded, why they differ."""
    runs = comparisons(asked)
    if asked.model and not asked.own and not runs:
        show.note(words_runs.no_run(asked.model))
    for published in runs[:1]:
        headings = words_runs.beside_headings(published, asked.plan.mfu, asked.dtype)
        show.small_table(
            [show.Column(heading, numeric=i > 0) for i, heading in enumerate(headings)],
            words_runs.beside(published, asked.plan.accelerators),
            caption=words_runs.about_run(published),
        )
        with show.fold("Why the published hours and 6ND differ", key="compute:why") as panel:
            if panel.open:
                if published.evidence:
                    show.chart(
                        hours_of_a_run(published, TOKENS),
                        alt=f"Accelerator-hours of {published.run.model}, step by step from 6ND at your MFU to the "
                        "published ones.",
                        key="compute:hours",
                    )
                for line in (*words_runs.reasons(published), *words_runs.other_runs(runs[1:])):
                    show.note(line)
                show.source(f"{published.run.source} ({words.known(published.run.confidence)})")


def evidence_panel(inputs: Inputs, asked: Asked) -> None:
    """Every published run, yours among them; and each of them predicted from the others."""
    show.says(words_runs.scored(score(), score("lab")))
    if widened := words_runs.given_up(asked.seen):
        show.note(widened)
    with st.container(horizontal=True):
        measure = inputs.choice("meas", "Against size", ["MFU", "hours"], "MFU", segmented=True)
        basis = inputs.choice("basis", "Runs", ["whole", "steady"], "whole", segmented=True, help=BASIS_HELP)
        families = sorted({row.family for row in evidence("whole") + evidence("steady")})
        family = inputs.choice("fam", "Accelerators", ["all", *families], "all")
    rows = [row for row in evidence(_BASES[basis]) if family in ("all", row.family)]
    show.chart(
        evidence_scatter(_points(rows, asked, measure), "MFU" if measure == "MFU" else "hours", TOKENS),
        alt=f"{len(rows)} published runs, {measure} against active parameters, and the plan among them at "
        f"{words.percent(asked.plan.mfu)} MFU. Comparable ones are filled.",
        key="compute:scatter",
    )
    show.note("Filled: comparable with your plan. Hover for the figures and their source.")
    with show.fold(f"Predicted against published, all {len(predictions())} whole runs", key="compute:pred") as panel:
        if panel.open:
            show.small_table(
                [show.Column(heading, numeric=i > 1) for i, heading in enumerate(words_runs.PREDICTED)],
                words_runs.predicted(predictions()),
                caption="Accelerator-hours. Each run is predicted from those of all other models.",
            )
    gone = left_out(_BASES[basis])
    with show.fold(f"{len(gone)} published rows left out, and why", key="compute:left") as panel:
        if panel.open:
            show.small_table(
                [show.Column("row"), show.Column("why it is left out")],
                [(row.run.model, f"{row.reason}.") for row in gone],
            )
    show.how(lambda: [explain_row(asked.seen.middle)], key="compute:runs:how")


BASIS_HELP = "Whole runs: all hours that were billed. Steady: steps alone, from benchmarks and single stages."
_BASES: Mapping[str, Basis] = {"whole": "whole", "steady": "steady"}


def _points(rows: Sequence[Evidence], asked: Asked, measure: str) -> list[Point]:
    alike = set(asked.seen.peers.rows)
    plan = asked.plan
    found: list[Point] = []
    for row in rows:
        hours = words_runs.hours_per_billion(row)
        value = row.utilisation if measure == "MFU" else hours
        shown = words.percent(value) if measure == "MFU" else f"{words.amount(hours)} h per billion tokens"
        found.append(Point(row.run.model, row.run.params, value, words_runs.pointed(row, shown), row in alike))
    yours = plan.mfu / asked.seen.scale
    if measure != "MFU":
        yours = words_runs.hours_per_billion_tokens(plan.params, plan.peak, asked.outlook.by_rule.mfu)
    return [*found, Point("yours", plan.params, yours, "Your plan", here=True)]
