"""Compute budget: from a model, its tokens and a cluster to FLOPs, days, hours and dollars, beside published runs."""

from __future__ import annotations

from collections.abc import Callable

from core.messages import message
from core.planning.estimate import PlanEstimate
from core.planning.form.links import link_texts, solved_texts
from core.planning.form.plan_form import FIND
from core.planning.presets import LECTURE
from core.views.flops.text import scope_text
from core.views.plan import text, text_rates
from pages.common import plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.plan_page.notices import draw_notices
from pages.common.plan_page.panels import draw_panels
from pages.common.plan_page.published import repeated_notices
from pages.common.registry import MEMORY, PARALLEL
from pages.common.takeaway import DOWNLOADS, download_panel
from pages.compute.actuals import actuals_panel
from pages.compute.assumptions import assumptions_panel
from pages.compute.flops import flops_panel
from pages.compute.form import GROUPS
from pages.compute.inputs import draw_question, read_answer
from pages.compute.layer import layer_panel
from pages.compute.runs import comparisons, draw_mfu_beside_runs, evidence_panel
from pages.compute.sensitivity import sensitivity_panel
from pages.compute.table import draw_main_rows, table_panel
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


def page(inputs: Inputs) -> None:
    """Draw the answer, the comparison with published runs, and the panels."""
    a = read_answer(inputs)
    inputs.hand_on({**solved_texts(a), FIND.id: "time"})
    draw_question(inputs)
    show.input_errors(inputs)
    preset = plan_sidebar.draw_actions(inputs.reading.texts)
    link = link_texts(inputs.reading.texts, a)

    with show.guarded(message("common.answer")):
        show.answer(text.headline(a), " ".join(filter(None, (text.range_text(a), text.mfu_text(a)))))
        for wrong in filter(None, (text.impossible(a), tight := text.does_not_fit(a))):
            show.error(wrong)
        if tight:
            show.next_page(message("compute.link.fits"), MEMORY, link)
        plan_sidebar.draw_limits(inputs)
    with show.guarded(message("common.chart")):
        draw_mfu_beside_runs(a)
        others = draw_notices(
            [
                *repeated_notices([a]),
                message("plan.preset.lecture") if preset == LECTURE else "",
                *text.cautions(a),
                text_rates.change(a.plan),
            ]
        )
        draw_main_rows(a)

    draw_panels(inputs, GROUPS, _PANELS, a)

    show.how(lambda: [*a.explain(), *comparisons(a)], key="compute:how", notes=[*others, scope_text()])
    show.next_page(message("compute.link.memory"), MEMORY, link)
    show.next_page(message("compute.link.parallel"), PARALLEL, link)
    show.footer(inputs)


plan_sidebar.draw_page(page)
