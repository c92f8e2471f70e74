"""What would make a plan fit, each change with its button."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.planning.memory_estimate import MemoryEstimate
from core.planning.memory_fixes import ORDER, fewest_accelerators, fixes, larger_accelerators
from core.planning.sensitivity import made_own
from core.views.plan import text_fixes
from pages.common import show
from pages.common.inputs import Inputs


def draw_fixes(inputs: Inputs, h: MemoryEstimate) -> None:
    """What fills an accelerator most, and the changes."""
    result, more = fixes(h), fewest_accelerators(h)
    show.takeaway(text_fixes.why(h, result, more, larger_accelerators(h) if h.lacks else ()))

    def apply(texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            inputs.put(name, text)

    own = made_own(h.plan, h.layout)
    ways = [({**own, **fix.texts}, text_fixes.priced(h, fix)) for fix in result]
    ways += [({"count": f"{more:,}"}, text_fixes.on_more(h, more))] if more else []
    for i, (texts, said) in enumerate(ways):
        button, place = st.columns([1, 8], vertical_alignment="center")
        button.button("Apply", key=inputs.key(f"fix{i}"), on_click=apply, args=(texts,))
        with place:
            show.note(said)
    if result:
        show.note(ORDER)
