"""Parallel plan: the fastest layout that fits, what its step goes to, and the whole space that it was found in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from core.planning.answer.exploring import Rescue, as_texts, rescues
from core.planning.answer.form import carried, named_texts
from core.planning.answer.searching import asked as question_of
from core.planning.search import words
from core.planning.search.explained import explain
from pages.parts import show
from pages.parts.adding import add_to_comparison
from pages.parts.inputs import Inputs
from pages.parts.projecting import projecting
from pages.parts.registry import COMPUTE, MEMORY, PLAN_SEARCH
from pages.parts.saving import saving
from pages.parts.shape import adopt_built
from pages.parts.takeaway import TAKE, take_away
from pages.plan_search.around import how_many, launch, near
from pages.plan_search.asked import Asked, asked
from pages.plan_search.form import FORM, PANELS, STORIES
from pages.plan_search.inputs import draw
from pages.plan_search.measured import proof, published
from pages.plan_search.space import whole_space
from pages.plan_search.study import study
from pages.plan_search.why import goes_to, why

_PANELS: dict[str, Callable[[Inputs, Asked], None]] = {
    "space": whole_space,
    "why": why,
    "near": near,
    "runs": published,
    "sizes": how_many,
    "study": study,
    "proof": proof,
    "launch": launch,
    TAKE.id: lambda inputs, a: take_away(inputs, _in_force(inputs, a)),
}


def _apply(inputs: Inputs, ways: Sequence[Rescue]) -> None:
    """The changes under which a plan fits, each with its button."""

    def put(texts: Sequence[tuple[str, str]]) -> None:
        for name, text in texts:
            inputs.put(name, text)

    for i, way in enumerate(ways):
        button, place = st.columns([1, 8], vertical_alignment="center")
        button.button("Apply", key=inputs.key(f"way{i}"), on_click=put, args=(way.texts,))
        with place:
            show.note(words.way(way))


def _in_force(inputs: Inputs, a: Asked) -> dict[str, str]:
    """The plan's texts with the layout in force."""
    return named_texts(inputs.reading.texts) | (as_texts(a.here.layout) if a.here else {})


def page() -> None:
    """Inputs, the answer, and the panels behind it."""
    adopt_built(PLAN_SEARCH)
    inputs = Inputs(PLAN_SEARCH, FORM)
    chips = show.slot()
    a = asked(inputs)
    draw(inputs, a.plan)
    inputs.stories("Stories", STORIES, into=chips)

    with show.guarded("The answer"):
        if a.result.best is None:
            ways = rescues(a.query)
            show.answer(words.nothing_fits(a.plan, a.query, a.result, ways))
            _apply(inputs, ways)
        if a.here is not None:
            show.answer(words.sentence(a.plan, a.query, a.here), words.counted(a.query, a.result, a.here))
        for line in words.beside(a.plan, a.query, a.result, a.here):
            show.note(line)
    if projecting() and a.here is not None:
        with show.guarded("The picture"):
            goes_to(a.here, key="plan_search:picture")
    add_to_comparison(PLAN_SEARCH, _in_force(inputs, a))
    saving(inputs, _in_force(inputs, a))

    for name, panel in _PANELS.items():
        with inputs.panel(name, PANELS[name].label) as opened:
            if opened.open:
                panel(inputs, a)

    texts = carried(inputs.reading.texts) | (as_texts(a.here.layout) if a.here else {})
    here = a.here
    if here is not None:
        show.how(
            lambda: explain(question_of(a.query), here, a.plan.tokens), key="plan_search:how", notes=[words.STEP_SUMS]
        )
    show.onwards("Use this plan: what each accelerator has to hold", MEMORY, texts)
    show.onwards("Use this plan: FLOPs, days and dollars of the whole run", COMPUTE, texts)
    show.footer(inputs)


show.body(page)
