"""Experiments as panels: the expectation at once, and what this machine measures when the panel opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from core.experiments.catalogue import Experiment, standing_on
from core.fields import Field, switch
from core.jobs.process import NotStartedError
from core.messages import message
from core.views.experiments import charts, text
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.theme import TOKENS

if TYPE_CHECKING:
    from core.experiments.runner import ExperimentRunner

_REFUSED = "experiment:refused"


def switches(page: str) -> tuple[Field, ...]:
    """Return the fields of a page's form that open its experiments."""
    return tuple(switch(one.id, one.title, False, part="panels") for one in standing_on(page))


def draw_experiments(inputs: Inputs) -> None:
    """Draw the panels of the page's experiments. Each runs once when it is opened."""
    for one in standing_on(inputs.page.id):
        with inputs.panel(one.id, one.title) as opened:
            if opened.open:
                experiment_panel(inputs, one)


@st.cache_resource
def shared_runner() -> ExperimentRunner:
    """Return the runner of this process, whose results every session sees."""
    from core.experiments.runner import ExperimentRunner  # what checks a process's words takes long to load

    return ExperimentRunner()


def _begin(runner: ExperimentRunner, one: Experiment) -> None:
    """Start the experiment, or keep the reason why it cannot start for the next draw."""
    try:
        runner.run(one.id)
    except NotStartedError as problem:
        st.session_state[_REFUSED] = str(problem)


def experiment_panel(inputs: Inputs, one: Experiment) -> None:
    """Draw the panel's content."""
    runner, words = shared_runner(), text.EXPERIMENT_TEXTS[one.id]
    show.takeaway(words.expected)
    if runner.last(one.id) is None:
        _begin(runner, one)
    if why := st.session_state.pop(_REFUSED, ""):
        show.note(why)
    now = runner.last(one.id)
    underway = now is not None and now.open

    @st.fragment(run_every=0.5 if underway else None)
    def live() -> None:
        """Draw the progress, twice a second until the experiment has ended."""
        seen = runner.last(one.id)
        if seen is None or not seen.open:
            st.rerun()
        show.note(text.waiting_text(seen.seconds, queued=seen.state == "queued"))
        key = f"{inputs.key(one.id)}:stop"
        st.button(message("experiments.cancel"), key=key, on_click=_cancel, args=(runner, seen.id))

    if underway:
        live()
    elif now is not None and now.message:
        (show.note if now.state == "cancelled" else show.error)(now.message)
    found = now.found if now is not None else None
    if found is not None:
        show.note(words.found(found))
        drawn = charts.picture(one.id, found, TOKENS)
        show.chart(drawn, alt=text.alt_text(one.title, words, found), key=f"{inputs.page.id}:{one.id}:chart")
    show.small_table(words.headings, words.rows(found), words=1 if words.has_numbers else None)
    if not underway:
        key = f"{inputs.key(one.id)}:again"
        st.button(message("experiments.run_again"), key=key, on_click=_begin, args=(runner, one))
    if explained := words.explanations():
        show.how(explained, key=f"{inputs.page.id}:{one.id}:how")


def _cancel(runner: ExperimentRunner, id: str) -> None:
    """Cancel the experiment (callback)."""
    runner.cancel(id)
