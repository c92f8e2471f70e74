"""Compare: up to six plans side by side, which is fastest and cheapest, and every result and differing input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.limits import limit
from core.messages import message
from core.planning.comparison.comparison import ComparedPlan, compare_plans, differing_fields, with_saved_results
from core.planning.comparison.entry import entry_of, examples
from core.planning.form.links import link_texts
from core.planning.plan_limits import all_met
from core.planning.presets import PRESETS
from core.store.locations import plan_store
from core.views.comparison import text
from core.views.comparison.charts import bars
from core.views.plan import text as plan_text
from core.wording import plain
from pages.common import comparison_list, plan_sidebar, show
from pages.common.inputs import Inputs
from pages.common.registry import COMPUTE
from pages.common.saving import put_several, saving_all
from pages.common.takeaway import DOWNLOADS, files
from pages.common.theme import TOKENS
from pages.compare.columns import choose, columns, follow, where
from pages.compare.form import ADD, BASE
from pages.compare.opening import file_of_plans


def _more_plans(inputs: Inputs) -> None:
    """One more plan to begin from; others are added where they are worked out."""

    def add() -> None:
        name = str(st.session_state.get(inputs.key(ADD.id)))
        comparison_list.add(with_saved_results(entry_of(name, PRESETS.get(name, {}))))

    with st.container(horizontal=True, vertical_alignment="bottom"):
        inputs.draw(ADD)
        st.button(message("comparison.add"), key=inputs.key("add_it"), on_click=add, disabled=comparison_list.full())
        listed = limit("plans_listed")
        put_several(inputs, message("comparison.saved"), lambda: plan_store().find(per_page=listed).plans)
        sentences = file_of_plans(inputs)
    for line in sentences:
        show.error(line)
    if comparison_list.full():
        show.note(text.full())


def _nothing_yet(inputs: Inputs) -> None:
    """What this is for, and plans to begin with."""
    most = float(limit("compared_plans"))
    show.answer(message("comparison.empty"), message("comparison.empty_detail", most=most))

    def begin() -> None:
        comparison_list.put(with_saved_results(example) for example in examples())
        choose(inputs, next(iter(comparison_list.held())))

    with st.container(horizontal=True):
        st.button(
            message("comparison.examples"),
            key=inputs.key("examples"),
            type="primary",
            on_click=begin,
        )


def _table(plans: Sequence[ComparedPlan], base: int) -> None:
    """Results and differing inputs, a plan a column."""
    differences = differing_fields([plan.reading for plan in plans])
    names = [text.plan_name(plan) for plan in plans]
    names[base] = message("comparison.table.base", plan=plans[base].short_name)
    rows = [*text.result_rows(plans, base), *text.input_rows(differences)]
    links = [show.link(COMPUTE.title, COMPUTE, link_texts(plan.reading.texts)) for plan in plans]
    with st.container(key="compare_table"):
        show.small_table(
            [show.Column("", whole=True), *names],
            [[label, *(show.remarked(*cell) for cell in cells)] for label, cells in rows],
            caption=message("comparison.table.caption"),
            foot=[message("comparison.table.open"), *links],
        )


def _comparison(inputs: Inputs, plans: Mapping[int, ComparedPlan]) -> None:
    """The sentence, the pictures, the columns and the table."""
    plans_shown = tuple(plans.values())
    base = min(inputs.reading.values[BASE.id], len(plans_shown)) - 1
    with show.guarded(message("common.answer")):
        show.answer(" ".join(text.answer(plans_shown, base)))
        for notice in text.notices(plans_shown):
            show.note(notice)
        checks = [check for plan in plans_shown for check in plan.limits]
        which = plan_sidebar.way_to_decide(inputs, checks)
        if which and all(all_met(plan.limits) is False for plan in plans_shown):
            show.note(which)
    with show.guarded(message("common.chart")):
        show.chart(bars(plans_shown, base, TOKENS), alt=plain(text.bars_alt(plans_shown, base)), key="compare:bars")
        columns(inputs, plans, base)
        _more_plans(inputs)
        _table(plans_shown, base)
    saving_all(inputs, [plan.entry for plan in plans_shown])
    with inputs.panel(DOWNLOADS.id, DOWNLOADS.label) as panel:
        if panel.open:
            files([plan.entry for plan in plans_shown], inputs, base)
    show.how_each(
        lambda: [
            show.DerivationPart(str(i + 1), plan.name, plan_text.headline(plan.answer), plan.answer.explain())
            for i, plan in enumerate(plans_shown)
            if plan.answer
        ],
        key="compare:how",
    )


def page(inputs: Inputs) -> None:
    """The comparison, or how to begin one."""
    follow(inputs)
    with plan_sidebar.question():
        where(comparison_list.held())
    plan_sidebar.draw_actions(inputs.reading.texts)
    entries = comparison_list.held()
    plans = dict(zip(entries, compare_plans(tuple(entries.values())), strict=True))
    if plans:
        _comparison(inputs, plans)
    else:
        _nothing_yet(inputs)
        _more_plans(inputs)
    show.input_errors(inputs)
    show.footer(inputs)


plan_sidebar.draw_page(page)
