"""What a change of one field of the plan changes in others.

What was entered for one accelerator, such as its price, does not follow the plan to another one, and returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import streamlit as st

from core.budget.equations import BudgetError
from core.messages import message
from core.planning.estimate import estimate
from core.planning.form.layout import BATCH, LAYING
from core.planning.form.plan_form import ACCELERATOR, ACCELERATOR_FIELDS
from core.planning.form.training import METHOD
from core.planning.form.whole_run import MEASURED_FIELDS, ORIGIN
from core.planning.plan import OWN_LAYOUT, Plan, begun_batch
from core.planning.sensitivity import made_own
from core.training.layout import LayoutError
from core.training.trained import EVERYTHING
from core.views.plan import text as plan_text
from pages.common import show
from pages.common.inputs import Inputs

_ENTERED = "plan:entered"
"""Where session state has, by accelerator, the texts that were entered for one that is not the plan's now."""

_BEGUN = "plan:batch"
"""Where session state has whether the last change of what is trained changed the batch."""

_SAID = "plan:set aside"
"""Where session state has the texts that came with the accelerator that was chosen last, and what to say of others."""


def set_aside(inputs: Inputs, before: str, after: str, *, restore: bool = True) -> None:
    """Set aside what was entered for the accelerator ``before``, and restore what was for ``after`` (callback)."""
    if before == after:
        return
    entered: dict[str, dict[str, str]] = st.session_state.setdefault(_ENTERED, {})
    back = entered.pop(after, {}) if restore else {}
    texts = {ACCELERATOR.id: after} | {field.id: back.get(field.id, field.default) for field in ACCELERATOR_FIELDS}
    old = {field.id: text for field in ACCELERATOR_FIELDS if (text := inputs.now(field.id)) != field.default}
    for name in texts.keys() - {ACCELERATOR.id}:
        inputs.put(name, texts[name])
    entered[before] = old or entered.get(before, {})  # which waits where a cell of a sweep brought its accelerator
    st.session_state[_SAID] = texts, plan_text.set_aside(before, after, old, back)


def changed(inputs: Inputs) -> None:
    """React to another accelerator in the plan's field (callback)."""
    set_aside(inputs, inputs.reading.texts[ACCELERATOR.id], inputs.now(ACCELERATOR.id))


def replaced(inputs: Inputs, texts: Mapping[str, str], *, whole: bool = False) -> None:
    """React to ``texts`` that will replace texts of the plan and may name another accelerator (callback).

    whole: whether they are a whole plan, so that nothing is said about the one before.
    """
    before = inputs.now(ACCELERATOR.id)
    set_aside(inputs, before, texts.get(ACCELERATOR.id, before), restore=whole)
    if whole:
        st.session_state.pop(_SAID, None)


def say(inputs: Inputs) -> None:
    """Say what does not apply to the accelerator that was chosen last, until it has entries of its own."""
    texts, sentence = st.session_state.get(_SAID, ({}, ""))
    if sentence and all(inputs.reading.texts[name] == text for name, text in texts.items()):
        show.note(show.typed(sentence))


def own_layout_from(inputs: Inputs, plan: Plan) -> None:
    """Start a custom layout from the plan's layout (callback)."""
    if inputs.now(LAYING.id) == OWN_LAYOUT:
        with suppress(BudgetError, LayoutError):
            for name, text in made_own(plan, estimate(plan).memory.layout).items():
                inputs.put(name, text)


def begin_batch(inputs: Inputs, plan: Plan) -> None:
    """Set the default batch of fine-tuning, or restore that of pre-training (callback). An entered batch stays."""
    everything, text = inputs.now(METHOD.id) == EVERYTHING.method, inputs.now(BATCH.id)
    if everything == plan.trained.everything or (everything and not st.session_state.get(_BEGUN, True)):
        return
    begun = begun_batch(text, everything=everything)
    st.session_state[_BEGUN] = begun != text
    inputs.put(BATCH.id, begun)


def choose_rates(inputs: Inputs, plan: Plan) -> None:
    """Let a user choose whose rates count: the datasheet's, the plan's, or the last measured of its device."""
    from core.benchmark.datasheet import datasheet_of  # all three take a while to import, and few open the box
    from core.planning.form.measured_rates import with_measured_rates
    from core.store.last_measured import last_measured

    datasheet = {field.id: "" for field in MEASURED_FIELDS}
    carried = {name: inputs.reading.texts[name] for name in datasheet}
    of_it = [one for one in last_measured()[0] if plan.accelerator in {row.name for row in datasheet_of(one).rows}]
    measured = filter(None, map(with_measured_rates, of_it))
    sets = [datasheet, carried, *({name: texts.get(name, "") for name in datasheet} for texts in measured)]
    choices: dict[str, Mapping[str, str]] = {}
    for texts in sets:  # of two with one name, what the plan carries stands, or what was measured last
        choices.setdefault(_rates_name(texts), texts)

    def put(texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            inputs.put(name, text)

    show.note(message("sidebar.rates"))
    with st.container(horizontal=True, gap="xxsmall"):
        for name, texts in choices.items():
            kind = "primary" if texts == carried else "secondary"
            st.button(name, key=inputs.key(f"rates {name}"), type=kind, on_click=put, args=(texts,))


def _rates_name(texts: Mapping[str, str]) -> str:
    if not any(texts.values()):
        return message("sidebar.rates_datasheet")
    device = texts[ORIGIN.id]
    return message("sidebar.rates_measured", device=device) if device else message("sidebar.rates_unnamed")
