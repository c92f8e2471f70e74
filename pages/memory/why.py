"""Training memory, why not: what fills an accelerator, and the cheapest way down to what it has, change by change."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.planning.answer import words_memory
from core.planning.answer.fixing import ORDER, fewest, fixes, least, others, taken
from core.planning.answer.holding import Held
from core.training.device.figures_fall import waterfall
from core.wording import plain
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS


def why(inputs: Inputs, h: Held) -> None:
    """The panel's content."""
    found, near, over = fixes(h), least(h), h.fits == "over"
    show.says(words_memory.why(h, found, fewest(h) if over else None, others(h) if over else ()))
    way = found[0] if found else near
    if way is None:
        return
    steps = taken(h, way)
    show.note(words_memory.cheapest(h, way))
    show.chart(
        waterfall(
            h.one, [(words_memory.change(one), words_memory.costs(one), one.one) for one in steps], h.usable, TOKENS
        ),
        alt=f"What one accelerator holds, falling with each change. {plain(words_memory.fall(h, steps))}",
        key="memory:fall",
    )
    if not found:
        return

    def apply(texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            inputs.put(name, text)

    for i, fix in enumerate(found):
        button, place = st.columns([1, 8], vertical_alignment="center")
        button.button("Apply", key=inputs.key(f"fix{i}"), on_click=apply, args=(fix.texts,))
        with place:
            show.note(words_memory.priced(h, fix))
    show.note(ORDER)
