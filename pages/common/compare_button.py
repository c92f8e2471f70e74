"""The button that puts the plan on screen into the comparison, with how many are in it and the way there."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.limits import limit
from core.planning.comparison.comparison import with_saved_results
from core.planning.comparison.entry import Entry, entry_of
from core.planning.comparison.names import suggested
from core.views.comparison.text import already_in, full
from pages.common import comparison_list, show
from pages.common.registry import COMPARE, PageSpec


def add_to_comparison(page: PageSpec, texts: Mapping[str, str]) -> None:
    """One row: add the plan of ``texts``, by id, and open Compare."""
    text = ""
    with st.container(horizontal=True, vertical_alignment="center"):
        # The plan is taken where it is drawn: a callback would have that of before a field just changed.
        if st.button("Add to comparison", key=f"{page.prefix}_add", icon=":material/add:"):
            text = put(with_saved_results(entry_of(suggested(texts, comparison_list.plans()), texts)))
        open_comparison()
    if text:
        show.error(text)


def open_comparison() -> None:
    """The way to Compare, once there is something in it."""
    if count := len(comparison_list.held()):
        label = f"{count} of {limit('compared_plans')} in the comparison · open Compare"
        st.page_link(COMPARE.path, label=label, width="content")


def put(entry: Entry) -> str:
    """Put a plan into the comparison list; what is to be said where it is not."""
    if there := comparison_list.same(entry):
        return already_in(there)
    return "" if comparison_list.add(entry) else full()
