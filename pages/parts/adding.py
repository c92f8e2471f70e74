"""The button that puts the plan on screen into the comparison, with how many are in it and the way there."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.limits import limit
from core.planning.compare.compared import as_kept
from core.planning.compare.entry import entry_of
from core.planning.compare.naming import suggested
from core.planning.compare.words import already_in, full
from pages.parts import show, tray
from pages.parts.registry import COMPARE, PageSpec


def add_to_comparison(page: PageSpec, texts: Mapping[str, str]) -> None:
    """One row: add the plan of ``texts``, by id, and open Compare."""
    said = ""
    with st.container(horizontal=True, vertical_alignment="center"):
        # The plan is taken where it is drawn: a callback would have that of before a field just changed.
        if st.button("Add to comparison", key=f"{page.prefix}_add", icon=":material/add:"):
            said = _add(texts)
        count = len(tray.held())
        if count:
            label = f"{count} of {limit('compared_plans')} in the comparison · open Compare"
            st.page_link(COMPARE.path, label=label, width="content")
    if said:
        show.error(said)


def _add(texts: Mapping[str, str]) -> str:
    """Put the plan into the tray; what is to be said where it is not."""
    plans = tray.plans()
    entry = entry_of(suggested(texts, plans), texts)
    if there := tray.same(entry):
        return already_in(there)
    return "" if tray.add(as_kept(entry)) else full()
