"""The one device of this server: who measures on it, who waits, and what was measured."""

from __future__ import annotations

import streamlit as st

from core.benchmark.programme import Programme
from core.benchmark.running.jobs import Runner, Snapshot
from core.benchmark.timing.kinds import items
from core.jobs.process import NotStartedError
from core.jobs.queue import WaitingLine
from core.store.last_measured import keep
from core.store.locations import data_folder
from core.views.benchmark import charts, matmul, state
from pages.common import show
from pages.common.server.visitor import visitor
from pages.common.theme import TOKENS

_REFUSAL = "measure:refusal"


class Keeper:
    """Keeps what was measured in this process once it has ended. problem: why the last one is not kept."""

    problem = ""

    def __call__(self, seen: Snapshot) -> None:
        """Hear of a measurement."""
        if seen.record.points and seen.record.stage not in ("queued", "running"):
            self.problem = ""
            try:
                keep(seen.record)
            except OSError as problem:
                self.problem = (
                    f"This measurement cannot be kept ({problem.strerror}). It is lost when the server stops."
                )


@st.cache_resource
def shared_keeper() -> Keeper:
    """The one keeper of this process."""
    return Keeper()


@st.cache_resource
def shared_runner() -> Runner:
    """The one runner of this process: every session sees the same line."""
    return Runner(listener=shared_keeper(), line=WaitingLine(data_folder() / "measuring"))


def ask(runner: Runner, programme: Programme) -> None:
    """Begin a measurement, or get in line; why not is said where the page is drawn next."""
    try:
        runner.start(programme, visitor())
    except NotStartedError as problem:
        st.session_state[_REFUSAL] = str(problem)


def stop_it(runner: Runner, id: str) -> None:
    """Stop a measurement, or leave the line."""
    runner.cancel(id)


def say_why_not() -> None:
    """Why the last press began nothing, once."""
    if text := st.session_state.pop(_REFUSAL, ""):
        show.error(text)


def own_snapshot(runner: Runner) -> Snapshot | None:
    """This visitor's measurement, as long as it waits or runs."""
    own = runner.own(visitor())
    return own if _under_way(own) else None


def live(runner: Runner) -> bool:
    """The running measurement and the line before the device, looked at once a second. False where there is none.

    Where the watched one ends, the page is drawn anew.
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
            _running(runner, now, own=waiting is not None and waiting.id == now.id)
        if waiting is not None and waiting.record.stage == "queued":
            _waiting(runner, waiting, now)

    look()
    return True


def _under_way(*snapshots: Snapshot | None) -> set[str]:
    return {one.id for one in snapshots if one is not None and one.record.stage in ("queued", "running")}


def _running(runner: Runner, now: Snapshot, *, own: bool) -> None:
    record, programme_items = now.record, items(now.record.programme)
    if not own:
        show.note("Somebody else measures on this device; it does one thing at a time. You may cancel it.")
    place = len(record.outcomes) + 1
    at = now.progress
    bar, stop = st.columns([5, 1], vertical_alignment="center")
    text = state.progress_line(at.item if at else None, at.phase if at else "", place, len(programme_items), now.left_s)
    bar.progress(now.fraction, text=text)
    stop.button("Cancel", key="d:cancel", on_click=stop_it, args=(runner, now.id))
    with show.guarded("The rates so far"):
        if matmul.bests(record):
            doing = at.item.name if at and at.item.kind == "matmul" else ""
            show.chart(
                charts.rates(matmul.bars(record, doing=doing), TOKENS), alt=matmul.chart_alt(record), key="measure:live"
            )
            show.chart(charts.curves(record, TOKENS), alt=charts.curves_alt(record), key="measure:live:curves")


def _waiting(runner: Runner, own: Snapshot, now: Snapshot | None) -> None:
    left, stop = st.columns([5, 1], vertical_alignment="center")
    with left:
        show.note(state.waiting_line(own.place, now.left_s if now else 0.0))
    stop.button("Leave the line", key="d:leave", on_click=stop_it, args=(runner, own.id))


def ended(runner: Runner) -> None:
    """How this visitor's last measurement ended, where it did not finish."""
    own = runner.own(visitor())
    if own is None:
        return
    kind, text = state.ended(own.record, items(own.record.programme))
    if kind:
        (show.error if kind == "error" else show.note)(text)
