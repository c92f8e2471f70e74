"""The one device of this server: who measures on it, who waits, and what was measured."""

from __future__ import annotations

import streamlit as st

from core.benchmark.best import best_squares
from core.benchmark.programme import Programme
from core.benchmark.running.jobs import Runner, Snapshot
from core.benchmark.timing.kinds import items
from core.jobs.process import NotStartedError
from core.messages import message
from core.store.last_measured import keep
from core.store.locations import data_folder
from core.views.benchmark import text
from pages.common import show
from pages.common.server.visitor import visitor
from pages.measure.sections import draw_rates, section_title

_REFUSAL = "measure:refusal"


class Keeper:
    """Saves a measurement of this process after it ends. problem: the reason why the last one was not saved."""

    problem = ""

    def __call__(self, seen: Snapshot) -> None:
        """Receive a measurement."""
        if seen.record.points and seen.record.stage not in ("queued", "running"):
            self.problem = ""
            try:
                keep(seen.record)
            except OSError as problem:
                self.problem = message("measure.not_saved", problem=problem.strerror or "")


@st.cache_resource
def shared_keeper() -> Keeper:
    """Return the one keeper of this process."""
    return Keeper()


@st.cache_resource
def shared_runner() -> Runner:
    """Return the one runner of this process: every session sees the same queue."""
    return Runner(listener=shared_keeper(), lock=data_folder() / "measuring.lock")


def ask(runner: Runner, programme: Programme) -> None:
    """Start a measurement, or join the queue. If neither is possible, the reason is shown when the page is drawn
    next."""
    try:
        runner.start(programme, visitor())
    except NotStartedError as problem:
        st.session_state[_REFUSAL] = str(problem)


def _cancel(runner: Runner, job: str) -> None:
    """Stop a measurement, or leave the queue (callback)."""
    runner.cancel(job)


def draw_refusal() -> None:
    """Say once why the last click started no measurement."""
    if reason := st.session_state.pop(_REFUSAL, ""):
        show.error(reason)


def own_snapshot(runner: Runner) -> Snapshot | None:
    """Return this user's measurement while it waits or runs."""
    own = runner.own(visitor())
    return own if _under_way(own) else None


def draw_live(runner: Runner) -> bool:
    """Draw the running measurement, or the queue, once a second. Return False if there is none.

    When the watched measurement ends, the page is drawn again.
    """
    running, own = runner.latest(), own_snapshot(runner)
    if (running is None or not running.running) and own is None:
        return False
    watched = _under_way(running, own)

    @st.fragment(run_every=1)
    def look() -> None:
        now, waiting = runner.latest(), own_snapshot(runner)
        if _under_way(now, waiting) != watched:
            st.rerun()
        if now is not None and now.running:
            _draw_running(runner, now, own=waiting is not None and waiting.id == now.id)
        if waiting is not None and waiting.record.stage == "queued":
            left, stop = st.columns([5, 1], vertical_alignment="center")
            with left:
                show.note(text.waiting_text(waiting.place, now.left_s if now else 0.0))
            stop.button(message("measure.button.leave"), key="d:leave", on_click=_cancel, args=(runner, waiting.id))

    look()
    return True


def _under_way(*snapshots: Snapshot | None) -> set[str]:
    return {one.id for one in snapshots if one is not None and one.record.stage in ("queued", "running")}


def _draw_running(runner: Runner, now: Snapshot, *, own: bool) -> None:
    record, at = now.record, now.progress
    if not own:
        show.note(message("measure.other_user"))
    bar, stop = st.columns([5, 1], vertical_alignment="center")
    place, count = len(record.outcomes) + 1, len(items(record.programme))
    lines = text.progress_text(at.item if at else None, place, count, now.left_s)
    bar.progress(now.fraction, text=" ".join(lines))
    stop.button(message("measure.button.cancel"), key="d:cancel", on_click=_cancel, args=(runner, now.id))
    with show.guarded(section_title("matmul")):
        if best_squares(record):
            draw_rates(record, at.item.name if at and at.item.kind == "matmul" else "", key="measure:live")


def draw_ended(runner: Runner) -> None:
    """Show how this user's last measurement ended if it did not complete."""
    own = runner.own(visitor())
    if own and (ended := text.ended_text(own.record, items(own.record.programme))):
        kind, lines = ended
        (show.error if kind == "error" else show.note)(" ".join(lines))
