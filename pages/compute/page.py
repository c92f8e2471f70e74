"""Compute budget: from a model, its tokens and a cluster to FLOPs, days, hours and dollars, beside published runs."""

from __future__ import annotations

from collections.abc import Callable

from core.planning.estimate import PlanEstimate
from core.planning.form.links import link_texts, solved_texts
from core.planning.form.plan_form import FIND
from core.planning.presets import REMARKS
from core.views.flops.text import SCOPE
from core.views.plan import text, text_rates
from core.wording import plain
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.plan_page.panels import draw_panels
from pages.common.plan_page.published import draw_repeated_runs
from pages.common.registry import CALENDAR, EXERCISES, MEMORY, PARALLEL
from pages.common.takeaway import DOWNLOADS, download_panel
from pages.compute.actuals import actuals_panel
from pages.compute.assumptions import assumptions_panel
from pages.compute.flops import flops_panel
from pages.compute.form import GROUPS
from pages.compute.inputs import draw_question, read_answer
from pages.compute.layer import layer_panel
from pages.compute.runs import comparisons, evidence_panel, mfu_beside_runs, published_run
from pages.compute.sensitivity import sensitivity_panel
from pages.compute.table import table_panel
from pages.compute.whole_run import split_panel, whole_run_panel

_PANELS: dict[str, Callable[[Inputs, PlanEstimate], None]] = {
    "whole": whole_run_panel,
    "moves": sensitivity_panel,
    "actuals": actuals_panel,
    "runs": evidence_panel,
    "flops": flops_panel,
    "roof": layer_panel,
    "split": split_panel,
    "parts": assumptions_panel,
    "table": table_panel,
    DOWNLOADS.id: lambda inputs, _: download_panel(inputs, inputs.reading.texts),
}


def _notes(inputs: Inputs, a: PlanEstimate, preset: str | None) -> None:
    """What else is to be known of an answer."""
    lines = (
        text.steps_and_whole(a),
        REMARKS.get(preset or "", ""),
        *text.cautions(a),
        text_rates.change(a.plan),
    )
    for line in filter(None, lines):
        show.note(line)
    if tight := text.too_large_as_laid_out(a):
        show.note(tight)
        show.next_page("What fits, and on how many", MEMORY, link_texts(inputs.reading.texts, a))


def page(inputs: Inputs) -> None:
    """The answer beside what published runs took, and the panels behind it."""
    a = read_answer(inputs)
    inputs.hand_on({**solved_texts(a), FIND.id: "time"})
    draw_question(inputs)
    show.input_errors(inputs)
    preset = plan_sidebar.draw_actions(inputs.reading.texts)

    with show.guarded("The answer"):
        show.answer(text.sentence(a), text.assumptions(a))
        draw_repeated_runs([a])
        for wrong in filter(None, (text.impossible(a), text.memory(a))):
            show.error(wrong)
        plan_sidebar.draw_limits(inputs)
    with show.guarded("The picture of published runs"):
        message, strip = mfu_beside_runs(a, most=6)
        show.chart(strip, alt=plain(message), key="compute:answer")
        show.takeaway(message)
        _notes(inputs, a, preset)
    with show.guarded("The published run of this model"):
        published_run(a)

    draw_panels(inputs, GROUPS, _PANELS, a)

    show.how(lambda: [*a.explain(), *comparisons(a)], key="compute:how", notes=[SCOPE])
    show.next_page("What each accelerator has to hold", MEMORY, link_texts(inputs.reading.texts, a))
    show.next_page("Which layout is fastest", PARALLEL, link_texts(inputs.reading.texts, a))
    show.next_page(
        "When it ends, and what it costs to rent, reserve or own", CALENDAR, link_texts(inputs.reading.texts, a)
    )
    show.next_page("Exercises on FLOPs and days: predict, then see", EXERCISES, {"topics": "FLOPs"})
    show.footer(inputs)


plan_sidebar.draw_page(page)
