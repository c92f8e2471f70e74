"""Saved plans: the list with its search, and the selected plan."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.messages import message
from core.store.locations import plan_store
from core.store.plans import SavedPlan
from core.views.common.markup import markdown_text
from core.views.common.rows import row_label
from core.views.store import text as store_text
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import COMPUTE, DECIDE, MEMORY, PARALLEL, SAVED, PageSpec
from pages.common.saving import link_to, put_several, refusals
from pages.saved.form import ARCHIVED, FORM, PAGE, PER_PAGE, PLAN, SEARCH, TAGS
from pages.saved.plan import about, draw_messages

_COLUMNS = (
    row_label("days"),
    row_label("dollars"),
    row_label("accelerators"),
    show.Column(message("saved.field.tags")),
    show.Column(message("saved.heading.owner")),
    show.Column(message("saved.heading.changed"), whole=True),
)


def _ask(inputs: Inputs, tags: Sequence[str]) -> None:
    """Draw the search, the tags in use, and the archive's switch."""

    def again() -> None:
        inputs.put(PAGE.id, PAGE.default)

    cells = st.columns([4, 1], vertical_alignment="bottom")
    with cells[0]:
        inputs.draw(SEARCH, changed=again)
    with cells[1]:
        inputs.draw(ARCHIVED, changed=again)
    if tags:
        key = inputs.key("narrow")
        st.session_state[key] = [tag for tag in inputs.reading.values[TAGS.id] if tag in tags]

        def narrow() -> None:
            inputs.put(TAGS.id, ", ".join(st.session_state[key]))
            again()

        st.pills(
            message("saved.field.tags"),
            tags,
            selection_mode="multi",
            format_func=markdown_text,
            key=key,
            on_change=narrow,
            label_visibility="collapsed",
        )


def _list(plans: Sequence[SavedPlan], heading: str, page: PageSpec, caption: str) -> None:
    """Draw the plans of this page of the list, or the last decisions. page: where a name opens."""

    def result(plan: SavedPlan, name: str) -> show.Html:
        now = {} if plan.entry.kind == "decision" else store_text.changes_since(plan)
        remark = message("saved.now", value=now[name][1]) if name in now else ""
        return show.typed(store_text.result_text(plan, name), remark)

    show.small_table(
        (heading, *_COLUMNS),
        [
            [
                show.Html(link_to(page, plan, plan.entry.name) + show.typed("", store_text.remark_text(plan))),
                *(result(plan, item) for item in ("days", "dollars", "accelerators")),
                show.typed(", ".join(plan.tags)),
                show.typed(plan.owner),
                store_text.moment_text(plan.changed),
            ]
            for plan in plans
        ],
        caption=caption,
    )


def _turn(inputs: Inputs, total: int) -> None:
    """Draw which page of the list, and the ways to the others."""
    pages = -(-total // PER_PAGE)
    here = min(int(inputs.reading.values[PAGE.id]), pages)
    if pages < 2:
        return

    def go(to: int) -> None:
        inputs.put(PAGE.id, str(to))

    with st.container(horizontal=True, vertical_alignment="center"):
        newer, older = message("saved.newer"), message("saved.older")
        st.button(newer, key=inputs.key("newer"), disabled=here == 1, on_click=go, args=(here - 1,))
        st.button(older, key=inputs.key("older"), disabled=here == pages, on_click=go, args=(here + 1,))
        show.note(message("saved.page", page=float(here), pages=float(pages)))


def _choose(inputs: Inputs, plans: Sequence[SavedPlan]) -> None:
    """Draw which plan is looked at, one of the list or the one of a link, and all about it."""
    wanted = inputs.reading.values[PLAN.id]
    known = {plan.id: plan for plan in plans}
    if wanted and wanted not in known:
        with refusals():
            known = {wanted: plan_store().get(wanted), **known}
    if not known:
        return
    key = inputs.key("chosen")
    st.session_state[key] = wanted if wanted in known else next(iter(known))
    st.selectbox(
        message("saved.select"),
        list(known),
        key=key,
        format_func=lambda item: known[item].entry.name if item in known else item,
        on_change=lambda: inputs.put(PLAN.id, st.session_state[key]),
    )
    about(inputs, known[st.session_state[key]])


def _nothing_yet() -> None:
    show.answer(message("saved.none"), message("saved.none_detail"))
    for page in (COMPUTE, MEMORY, PARALLEL):
        show.next_page(page.title, page, {})


def _answer(inputs: Inputs) -> None:
    """Draw what was found, the plan that is looked at, and where all of them lie."""
    v, store = inputs.reading.values, plan_store()
    text, tags, archived = v[SEARCH.id], v[TAGS.id], v[ARCHIVED.id]
    result = store.find(text, tags, archived=archived, page=int(v[PAGE.id]), per_page=PER_PAGE)
    decisions = store.find(text, tags, archived=archived, kind="decision", per_page=PER_PAGE).plans
    if not result.total and not text.strip() and not tags and not archived and not decisions:
        _nothing_yet()
    else:
        show.answer(store_text.count_text(result, searched=bool(text.strip() or tags), archived=archived))
    if result.plans:
        with st.container(key="saved_list"), show.guarded(message("saved.several")):
            _list(result.plans, message("saved.heading.plan"), COMPUTE, message("saved.caption.plans"))
        _turn(inputs, result.total)
        if len(result.plans) > 1:
            put_several(inputs, message("saved.compare_several"), lambda: result.plans)
    if decisions:
        with show.guarded(message("saved.heading.decision")):
            _list(decisions, message("saved.heading.decision"), DECIDE, message("saved.caption.decisions"))
    if result.plans or decisions or v[PLAN.id]:
        _choose(inputs, [*result.plans, *decisions])
    show.note(message("saved.database", database=store.name))


def page() -> None:
    """Draw the search, the list, and the plan that is looked at."""
    inputs = Inputs(SAVED, FORM)
    draw_messages(inputs)
    tags: Sequence[str] | None = None
    with refusals():
        tags = plan_store().tags(archived=inputs.reading.values[ARCHIVED.id])
    _ask(inputs, tags or ())
    show.input_errors(inputs)
    if tags is not None:
        with refusals():
            _answer(inputs)
    show.footer(inputs)


show.draw_page(page)
