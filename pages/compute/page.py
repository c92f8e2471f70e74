"""Compute budget: from a model, its tokens and a cluster to FLOPs, days, hours and dollars, beside published runs."""

from __future__ import annotations

from collections.abc import Callable

from core.planning.answer import words, words_rates
from core.planning.answer.answer import Answer
from core.planning.answer.form import carried
from core.planning.answer.stories import REMARKS, STORIES
from core.planning.counting.words import SCOPE
from core.wording import plain
from pages.compute.flops import where
from pages.compute.form import FORM, PANELS
from pages.compute.inputs import asked, draw
from pages.compute.layer import roof
from pages.compute.moves import moves
from pages.compute.parts import parts
from pages.compute.runs import beside, comparisons, evidence_panel, paced
from pages.compute.table import table
from pages.compute.whole import split, whole
from pages.parts import show
from pages.parts.adding import add_to_comparison
from pages.parts.inputs import Inputs
from pages.parts.projecting import projecting
from pages.parts.registry import CALENDAR, COMPUTE, MEMORY, PLAN_SEARCH
from pages.parts.saving import saving
from pages.parts.shape import adopt_built
from pages.parts.takeaway import TAKE, take_away

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
    now = asked(inputs)
    draw(inputs, now)
    story = inputs.stories("Stories", STORIES, into=chips)
    a = now.answer

    with show.guarded("The answer"):
        show.answer(words.sentence(a), words.assumptions(a))
        if story and story in REMARKS:
            show.note(REMARKS[story])
        if wrong := words.impossible(a):
            show.error(wrong)
        if wrong := words.memory(a):
            show.error(wrong)
        if tight := words.tight(a):
            show.note(tight)
            show.onwards("What fits, and on how many", MEMORY, carried(inputs.reading.texts, a))
        for line in filter(None, (*words.cautions(a), words_rates.change(a.plan))):
            show.note(line)
    with show.guarded("The picture of published runs"):
        said, strip = paced(a, most=6) if projecting() else paced(a)
        show.says(said)
        show.chart(strip, alt=plain(said), key="compute:answer")
    add_to_comparison(COMPUTE, carried(inputs.reading.texts, a))
    with show.guarded("The published run of this model"):
        beside(a)
    saving(inputs, inputs.reading.texts)

    for name, panel in _PANELS.items():
        with inputs.panel(name, PANELS[name].label) as opened:
            if opened.open:
                panel(inputs, a)

    show.how(lambda: [*a.explain(), *comparisons(a)], key="compute:how", notes=[SCOPE])
    show.onwards("What each accelerator has to hold", MEMORY, carried(inputs.reading.texts, a))
    show.onwards("Which layout is fastest", PLAN_SEARCH, carried(inputs.reading.texts, a))
    show.onwards("When it ends, and what it costs to rent, reserve or own", CALENDAR, carried(inputs.reading.texts, a))
    show.footer(inputs)


show.body(page)
