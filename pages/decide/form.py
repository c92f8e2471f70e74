"""Fields of Decide, and its links: a saved decision by its id, any other in one compressed parameter."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.fields import VERSION
from core.planning.decide.decision import DECIDE_FORM, packed_texts
from core.planning.decide.record import RecordError, is_packed, unpack
from core.planning.form.plan_form import complete_presets
from core.planning.presets import DECISION_PRESETS
from core.store.errors import StoreError
from core.store.locations import plan_store
from pages.common.inputs import PACKED
from pages.common.saving import ID, REVISION, saved_as

PAGE_PRESETS = complete_presets(DECISION_PRESETS)

FORM = DECIDE_FORM


def packed(texts: Mapping[str, str]) -> str:
    """Return what a link says: the id of the saved decision that these texts are, or all of them."""
    return saved_as(texts, "decision") or packed_texts(texts)


def open_link() -> list[str]:
    """Spell out the fields of a link in the address, where the page reads them; return what is wrong with it."""
    text = st.query_params.get(PACKED, "")
    if not text:
        return []
    del st.query_params[PACKED]
    try:
        if is_packed(text):
            texts = unpack(text)
            version = texts.pop(VERSION, "")
            st.query_params.update({FORM.key(name): typed for name, typed in texts.items()} | {VERSION: version})
        else:
            saved = plan_store().get(text)
            texts = saved.entry.reading.texts
            changed = {FORM.key(name): texts[name] for name in texts if texts[name] != FORM[name].default}
            st.query_params.update({**changed, ID: saved.id, REVISION: str(saved.revision)})
            return [*filter(None, [saved.dropped])]
    except (RecordError, StoreError) as problem:
        return [str(problem)]
    return []
