"""The chips of a page of planning: each begins a whole new plan, and the one that was there can be had back."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.common.inputs import Inputs
from pages.common.saving import Held, held, hold


def plan_chips(inputs: Inputs, texts_by_preset: Mapping[str, Mapping[str, str]], *, into: DeltaGenerator) -> str | None:
    """One chip a preset, which names every field of a plan; the one that is lit.

    Pressing one lets go of the saved plan that the page shows, so that nobody saves over it what is another plan. A
    plan of one's own that it replaces comes back by a button, and the saved one with it.
    """
    page, former = inputs.page, f"{inputs.page.id}:former"

    def replaces(now: Mapping[str, str]) -> None:
        saved, begun = held(page), inputs.form.parse({}).texts
        chosen = any(preset.items() <= now.items() for preset in texts_by_preset.values())
        if saved or not (chosen or now.items() <= begun.items()):
            st.session_state[former] = (now, saved)
        hold(page, None)

    def back() -> None:
        plan_before: tuple[Mapping[str, str], Held] = st.session_state.pop(former)
        for name, text in plan_before[0].items():
            inputs.put(name, text)
        hold(page, plan_before[1])

    lit = inputs.presets("Stories", texts_by_preset, into=into, replaces=replaces)
    if former in st.session_state:
        label = "Back to the plan before"
        into.button(label, key=inputs.key("former"), icon=":material/undo:", type="tertiary", on_click=back)
    return lit
