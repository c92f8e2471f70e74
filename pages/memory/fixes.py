"""Training memory, why not: what fills an accelerator, and changes that make it fit."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.planning.memory_estimate import MemoryEstimate
from core.planning.memory_fixes import ORDER, fewest_accelerators, fixes, larger_accelerators, smallest_fix
from core.planning.search_around import made_own
from core.views.plan import text_fixes
from pages.common import show
from pages.common.inputs import Inputs


def fixes_panel(inputs: Inputs, h: MemoryEstimate) -> None:
    """The panel's content."""
    result, near = fixes(h), smallest_fix(h)
    more, others = (fewest_accelerators(h), larger_accelerators(h)) if h.lacks else (None, ())
    show.takeaway(text_fixes.why(h, result, more, others))
    if near:
        show.note(text_fixes.closest(h, near))
    if not result:
        return

    def apply(texts: Mapping[str, str]) -> None:
        for name, text in {**made_own(h.plan, h.layout), **texts}.items():
            inputs.put(name, text)

    for i, fix in enumerate(result):
        button, place = st.columns([1, 8], vertical_alignment="center")
        button.button("Apply", key=inputs.key(f"fix{i}"), on_click=apply, args=(fix.texts,))
        with place:
            show.note(text_fixes.priced(h, fix))
    show.note(ORDER)
