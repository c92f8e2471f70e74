"""Training memory, why not: what fills an accelerator, and the cheapest changes that make the plan fit."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.planning.answer import words_memory
from core.planning.answer.fixing import ORDER, fewest, fixes
from core.planning.answer.holding import Held
from core.training.device.figures import device_bars
from core.wording import plain
from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.theme import TOKENS


def why(inputs: Inputs, h: Held) -> None:
    """The panel's content."""
    found = fixes(h)
    said = words_memory.why(h, found, fewest(h) if h.fits == "over" else None)
    show.says(said)
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
    show.chart(
        device_bars(words_memory.fix_rows(h, found), h.usable, TOKENS),
        alt=f"One accelerator as it is and after each change. {plain(said)}",
        key="memory:fixes",
    )
    show.note(ORDER)
