"""Training memory, see it on torch: one real step of a small model, what is counted beside what torch allocates."""

from __future__ import annotations

import streamlit as st

from core.benchmark.device import machine
from core.models.spec import TransformerSpec
from core.training.optimizers import Optimizer
from core.training.precision import PrecisionPolicy
from core.training.torch_check.step import TorchCheck, TorchCheckRunner, Trial, trial_of
from core.training.trained import EVERYTHING, Trained
from core.views.training import text_torch_check
from pages.common import show

_COLUMNS = (
    show.Column("Part", whole=True),
    *(show.Column(name, numeric=True) for name in ("Counted", "Measured", "Measured / counted")),
)
_MINE = "memory:torch_check:mine"


@st.cache_resource
def shared_torch_check() -> TorchCheckRunner:
    """The one runner of this process: every session sees the same step."""
    return TorchCheckRunner()


def start(runner: TorchCheckRunner, trial: Trial) -> None:
    """Start a step, or join the one that somebody else has started meanwhile."""
    job, started = runner.start(trial)
    if started:
        st.session_state[_MINE] = job.id


def cancel(runner: TorchCheckRunner, job_id: str) -> None:
    """In a callback: end the step."""
    runner.cancel(job_id)


def findings(done: TorchCheck) -> None:
    """What has been measured so far."""
    if text := text_torch_check.answer(done):
        show.takeaway(text)
    show.small_table(_COLUMNS, text_torch_check.rows(done), caption="Bytes of one step, counted and measured.")


def torch_check(
    spec: TransformerSpec | None, optimizer: Optimizer, policy: PrecisionPolicy, trained: Trained = EVERYTHING
) -> None:
    """The panel's content: the button, the running step or the latest one, and how it is measured.

    spec: the plan's model, None where only its size is known.
    """
    if why := text_torch_check.refused(optimizer):
        show.error(why)
        return
    runner = shared_torch_check()
    try:
        trial = trial_of(spec, optimizer.name, policy, machine().kind, trained)
    except ValueError as problem:
        show.error(f"No step of this plan on the small model. {problem}")
        return
    latest = runner.latest()
    running = latest is not None and latest.running
    show.note(text_torch_check.what_is_run(trial))
    for text in (text_torch_check.instead(policy, trial), text_torch_check.instead_trained(trained, trial)):
        if text:
            show.note(text)
    st.button("See it on torch", key="memory:torch_check:run", disabled=running, on_click=start, args=(runner, trial))

    @st.fragment(run_every=1 if running else None)
    def live(job_id: str) -> None:
        """The running step, looked at once a second until it has ended."""
        now = runner.poll(job_id)
        if now is None or not now.running:
            st.rerun()
        bar, stop = st.columns([5, 1], vertical_alignment="center")
        bar.progress(now.advance.fraction if now.advance else 0.0, text=text_torch_check.progress(now))
        stop.button("Cancel", key="memory:torch_check:cancel", on_click=cancel, args=(runner, job_id))
        with show.guarded("The bytes so far"):
            findings(now)

    if latest is not None and latest.running:
        if st.session_state.get(_MINE) != latest.id:
            show.note("Somebody else started this step; there is one at a time. You may cancel it.")
        live(latest.id)
        return
    if latest is not None and latest.message:
        (show.note if latest.state == "cancelled" else show.error)(latest.message)
    check = runner.latest_with_results()
    if check is not None:
        if check.spec != trial:
            show.note(text_torch_check.other(check))
        elif latest is not None and check.id != latest.id:
            show.note(text_torch_check.before(check))
        findings(check)
        show.note(text_torch_check.measured_with(check))
