"""What would make a plan fit, each change with its button."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.messages import message
from core.planning.memory_estimate import MemoryEstimate
from core.planning.memory_fixes import fewest_accelerators, fixes, larger_accelerators
from core.planning.sensitivity import made_own
from core.views.plan import text_fixes
from pages.common import show
from pages.common.inputs import Inputs

_OTHERS = 2


def draw_fixes(inputs: Inputs, h: MemoryEstimate) -> None:
    """Draw what uses most of the memory, and the changes."""
    result, more = fixes(h), fewest_accelerators(h)
    show.takeaway(" ".join(text_fixes.why(h, result)))

    def apply(texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            inputs.put(name, text)

    own = made_own(h.plan, h.layout)
    ways = [({**own, **fix.texts}, text_fixes.priced(h, fix)) for fix in result]
    ways += [({"count": f"{more:,}"}, text_fixes.on_more(h, more))] if more else []
    for i, (texts, said) in enumerate(ways):
        button, place = st.columns([1, 8], vertical_alignment="center")
        button.button(message("memory.fix.apply"), key=inputs.key(f"fix{i}"), on_click=apply, args=(texts,))
        with place:
            show.note(" ".join(said))
    for other in larger_accelerators(h)[:_OTHERS] if h.lacks else ():
        show.note(" ".join(text_fixes.elsewhere(h, other)))
    if result:
        show.note(message("memory.fix.order"))
