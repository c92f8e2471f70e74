"""Compute budget: from a model, its tokens and a cluster to FLOPs, days, hours and dollars, beside published runs."""

from __future__ import annotations

from collections.abc import Callable

from core.planning.evaluation import Answer
from core.planning.form.plan_form import link_texts
from core.planning.presets import REMARKS
from core.views.flops.text import SCOPE
from core.views.plan import text, text_rates
from core.wording import plain
from pages.common import show
from pages.common.compare_button import add_to_comparison
from pages.common.inputs import Inputs
from pages.common.plan_presets import plan_chips
from pages.common.registry import CALENDAR, COMPUTE, MEMORY, PARALLEL
from pages.common.saving import saving
from pages.common.shape import adopt_built
from pages.common.takeaway import TAKE, take_away
from pages.common.theme import projecting
from pages.compute.assumptions import parts
from pages.compute.flops import where
from pages.compute.form import CHIPS, FORM, PANELS
from pages.compute.inputs import draw, read_inputs
from pages.compute.layer import roof
from pages.compute.runs import beside, comparisons, evidence_panel, paced
from pages.compute.sensitivity import moves
from pages.compute.table import table
from pages.compute.whole_run import split, whole

_PANELS: dict[str, Callable[[Inputs, Answer], None]] = {
    "whole": whole,
    "moves": moves,
    "runs": evidence_panel,
    "flops": where,
    "roof": roof,
    "split": split,
    "parts": parts,
    "table": table,
    TAKE.id: lambda inputs, _: take_away(inputs, inputs.reading.texts),
}


def page() -> None:
    """Inputs, the answer beside what published runs took, and the panels behind it."""
    adopt_built(COMPUTE)
    inputs = Inputs(COMPUTE, FORM)
    chips = show.slot()
    now = read_inputs(inputs)
    draw(inputs, now)
    preset = plan_chips(inputs, CHIPS, into=chips)
    a = now.answer

    with show.guarded("The answer"):
        show.answer(text.sentence(a), text.assumptions(a))
        show.note(text.steps_and_whole(a))
        if preset and preset in REMARKS:
            show.note(REMARKS[preset])
        if wrong := text.impossible(a):
            show.error(wrong)
        if wrong := text.memory(a):
            show.error(wrong)
        if tight := text.tight(a):
            show.note(tight)
            show.onwards("What fits, and on how many", MEMORY, link_texts(inputs.reading.texts, a))
        for line in filter(None, (*text.cautions(a), text_rates.change(a.plan))):
            show.note(line)
    with show.guarded("The picture of published runs"):
        message, strip = paced(a, most=6) if projecting() else paced(a)
        show.takeaway(message)
        show.chart(strip, alt=plain(message), key="compute:answer")
    add_to_comparison(COMPUTE, link_texts(inputs.reading.texts, a))
    with show.guarded("The published run of this model"):
        beside(a)
    saving(inputs, inputs.reading.texts)

    for name, panel in _PANELS.items():
        with inputs.panel(name, PANELS[name].label) as opened:
            if opened.open:
                panel(inputs, a)

    show.how(lambda: [*a.explain(), *comparisons(a)], key="compute:how", notes=[SCOPE])
    show.onwards("What each accelerator has to hold", MEMORY, link_texts(inputs.reading.texts, a))
    show.onwards("Which layout is fastest", PARALLEL, link_texts(inputs.reading.texts, a))
    show.onwards(
        "When it ends, and what it costs to rent, reserve or own", CALENDAR, link_texts(inputs.reading.texts, a)
    )
    show.footer(inputs)


show.body(page)
