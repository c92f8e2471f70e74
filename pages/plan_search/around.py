"""Parallel plan, around the plan in force: its neighbours, other cluster sizes, and how it is launched."""

from __future__ import annotations

import math

import streamlit as st

from core.planning.answer.exploring import sizes
from core.planning.answer.searching import asked as question_of
from core.planning.search import words, words_why
from core.planning.search.figures import cluster_sizes
from core.planning.search.launch import launches
from core.planning.search.neighbours import neighbours
from core.wording import plain
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS
from pages.plan_search.asked import Asked

_NONE = "Nothing fits, so there is no plan to look around from. Type one under “Own layout”."


def near(_: Inputs, a: Asked) -> None:
    """What one step in each direction changes."""
    if a.here is None:
        show.note(_NONE)
        return
    found = neighbours(a.here, question_of(a.query))
    show.says(words_why.around(a.here, found))
    show.small_table(
        [show.Column(heading, numeric=0 < i < 4) for i, heading in enumerate(words_why.NEIGHBOURS)],
        [words_why.neighbour_row(a.here, one) for one in found],
        caption=f"On the same accelerators with the same batch, from {words.degrees(a.here.layout)}.",
    )


def how_many(_: Inputs, a: Asked) -> None:
    """The best plan at each size of cluster."""
    low, high = a.plan.price_range
    with st.spinner("Searching clusters of other sizes."):
        found = sizes(a.query, a.plan.tokens, (low + high) / 2)
    deadline = a.plan.limits.days
    said = words.scaling(found, deadline)
    show.says(said)
    if not found:
        return
    show.chart(
        cluster_sizes(found, a.query.accelerators, deadline, TOKENS),
        alt=f"Days for all tokens against accelerators, the best plan at each. {plain(said)}",
        key="plan_search:sizes",
    )
    here = [one.accelerators for one in found]
    show.small_table(
        [show.Column(heading, numeric=i != 1) for i, heading in enumerate(words.SIZES)],
        words.size_rows(found),
        caption="The best plan at each size, of steps alone: what stops a run is not in these days. Cost is all "
        "accelerator-hours over those of the smallest cluster.",
        here=here.index(a.query.accelerators) if a.query.accelerators in here else None,
    )
    if math.isnan(low):
        show.note(f"The price of {a.query.accelerator} is unknown: type one under More.")


def launch(_: Inputs, a: Asked) -> None:
    """The settings of three systems."""
    if a.here is None:
        show.note(_NONE)
        return
    overlap = bool(a.here.running.overlap)
    made = launches(a.query.spec, a.here.layout, seq_len=a.query.seq_len, dtype=a.query.dtype, overlap=overlap)
    show.says(words_why.launched(made))
    for tab, one in zip(st.tabs([one.system for one in made]), made, strict=True):
        with tab:
            st.code(one.text, language=one.language)
            for remark in one.notes:
                show.note(remark)
            show.source(one.source)
