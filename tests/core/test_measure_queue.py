"""One job at a time, the others in line: who comes first is served first, and nobody holds the machine for ever."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.benchmark.programme import Programme
from core.benchmark.running.events import Done, Event, Tried, encode
from core.benchmark.running.jobs import Runner as MeasurementRunner
from core.benchmark.running.jobs import Snapshot
from core.jobs import child
from core.jobs.process import TURN_S, NotStartedError
from core.limits import limit
from tests.core.measured_cases import square
from tests.patience import PATIENCE_S, until

SPEC = Programme(device="cpu", kinds=("matmul",), dtypes=("fp32",), sizes=(128, 256), seconds=0.1)
VISITORS = ["Ada", "Bo", "Cy"]


class Runner(MeasurementRunner):
    """The runner, whose `cancel` waits until the process is gone."""

    def cancel(self, job_id: str, wait_s: float = PATIENCE_S) -> bool:
        return super().cancel(job_id, wait_s)


def program(*events: Event, end: str = "") -> list[str]:
    """A process that says each event and then does what ``end`` says."""
    says = [f"print({encode(event)!r}, flush=True)" for event in events]
    return [sys.executable, "-S", "-c", "\n".join(["import os, sys", *says, end])]


FOUND = Tried(outcome=square("fp32", 128, 1e9))
WORKS = program(FOUND, end="sys.stdin.read(); os._exit(3)")
ENDS = program(FOUND, Done(elapsed_s=1.0))


def wait(runner: Runner, seen: Snapshot) -> Snapshot:
    """The job once it has ended."""

    def now() -> Snapshot | None:
        found = runner.poll(seen.id)
        assert found is not None
        return found if found.record.stage not in ("queued", "running") else None

    return until(now)


def ids(line: tuple[Snapshot, ...]) -> list[str]:
    return [one.id for one in line]


def stop(runner: Runner) -> None:
    for one in reversed(runner.line()):
        runner.cancel(one.id)
    if latest := runner.latest():
        runner.cancel(latest.id)


@pytest.mark.process
def test_a_full_line_says_so_and_has_room_again_later() -> None:
    runner = Runner(lambda _: WORKS)
    jobs = [runner.start(SPEC, f"{i}")[0] for i in range(limit("job_queue") + 1)]
    with pytest.raises(NotStartedError, match=f"{limit('job_queue')} measurements are"):
        runner.start(SPEC, "one more")
    assert len(runner.line()) == limit("job_queue")
    assert runner.own("one more") is None
    assert runner.start(SPEC, "3") == (runner.poll(jobs[3].id), False)
    assert runner.cancel(jobs[-1].id)
    assert runner.start(SPEC, "one more")[0].place == limit("job_queue")
    stop(runner)


@pytest.mark.process
@pytest.mark.parametrize("command", [ENDS, WORKS], ids=["finished", "cancelled"])
def test_the_next_job_of_a_visitor_begins_at_once(command: list[str]) -> None:
    runner = Runner(lambda _: command)
    for who in ("Ada", "Ada", "Bo", "Ada"):
        job, fresh = runner.start(SPEC, who)
        assert (fresh, job.record.stage) == (True, "running")
        assert command == ENDS or runner.cancel(job.id)
        assert wait(runner, job).record.stage == ("finished" if command == ENDS else "cancelled")


@pytest.mark.process
def test_two_servers_of_a_machine_measure_one_after_the_other(tmp_path: Path) -> None:
    here, there = (Runner(lambda _: WORKS, lock=tmp_path / "measuring.lock") for _ in range(2))
    first, _ = here.start(SPEC, "Ada")
    until(lambda: here.poll(first.id).running)  # type: ignore[union-attr]
    second, _ = there.start(SPEC, "Bo")
    time.sleep(3 * TURN_S)
    waiting = there.own("Bo")
    assert waiting is not None
    assert (waiting.record.stage, waiting.place) == ("queued", 0)
    assert here.cancel(first.id)
    until(lambda: there.poll(second.id).running)  # type: ignore[union-attr]
    stop(there)


@pytest.mark.process
def test_a_lock_that_cannot_be_made_keeps_nobody_from_measuring(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    runner = Runner(lambda _: ENDS, lock=tmp_path / "file" / "measuring.lock")
    assert wait(runner, runner.start(SPEC, "Ada")[0]).record.stage == "finished"


@pytest.mark.process
def test_a_job_that_cannot_begin_does_not_hold_up_the_line() -> None:
    told: list[Snapshot] = []
    commands = iter([WORKS, ["/nowhere/to/be/found"], WORKS])
    runner = Runner(lambda _: next(commands), listener=told.append)
    jobs = [runner.start(SPEC, who)[0] for who in VISITORS]
    assert runner.cancel(jobs[0].id)
    states = [runner.poll(one.id).record.stage for one in jobs]  # type: ignore[union-attr]
    assert states == ["cancelled", "failed", "running"]
    stop(runner)
    until(lambda: {one.id for one in told if one.record.stage in ("cancelled", "failed")} == set(ids(tuple(jobs))))


@pytest.mark.process
def test_who_listens_hears_each_job_in_order_to_its_end() -> None:
    told: list[Snapshot] = []
    runner = Runner(lambda _: ENDS, listener=told.append)
    for _ in range(2):
        job = wait(runner, runner.start(SPEC)[0])
        heard = until(lambda: told if told and told[-1].record.stage == "finished" else None)
        assert heard[0].id == job.id
        assert heard[0].record.stage == "running"
        assert heard[-1] == job
        found = [len(one.record.outcomes) for one in heard]
        assert found == sorted(found)
        told.clear()


@pytest.mark.process
def test_who_listens_may_fail_and_may_ask_the_runner(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[Snapshot | None] = []

    def listen(_: Snapshot) -> None:
        asked.append(runner.latest())  # a lock held here would stand still
        raise RuntimeError("no ear")

    runner = Runner(lambda _: ENDS, listener=listen)
    for _ in range(2):
        assert wait(runner, runner.start(SPEC)[0]).record.stage == "finished"
    until(lambda: len(asked) >= 4)
    assert [one.getMessage() for one in caplog.records] == [
        "Who listens to a measurement failed; the measurement goes on"
    ]


@pytest.mark.process
def test_many_who_start_at_once_have_one_job_each() -> None:
    runner = Runner(lambda _: WORKS)
    gate, seen = threading.Barrier(12), list[tuple[str, str]]()

    def start(who: str) -> None:
        gate.wait()
        seen.append((who, runner.start(SPEC, who)[0].id))

    threads = [threading.Thread(target=start, args=(VISITORS[i % 3],)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == len({who for who, _ in seen}) == len({one for _, one in seen}) == 3
    assert [one.place for one in runner.line()] == [1, 2]
    stop(runner)


# ------------------------------------------------------------------------------------------ any sequence of presses


class _Process:
    """Stands for a process that runs until it is told to end."""

    pid, stdin, stdout, stderr, returncode = 0, None, None, None, None

    def __init__(self) -> None:
        self.over = threading.Event()

    def wait(self) -> int:
        return 0


def _works(process: _Process, *_: object) -> str:
    assert process.over.wait(PATIENCE_S)
    return ""


STEP = st.tuples(st.sampled_from(["start", "start", "cancel", "end"]), st.integers(0, 11))


@settings(max_examples=50)
@given(st.lists(STEP, max_size=40))
def test_whatever_is_pressed_the_line_moves_on(steps: list[tuple[str, int]]) -> None:
    """One job runs whenever somebody wants one, nobody has two, the oldest wish is next, and places count from one."""
    wishes = list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "spawn", lambda *_: _Process())
        patch.setattr(child, "kill", lambda process: process.over.set())
        patch.setattr(child, "read", _works)
        patch.setattr(child, "wait_until_ended", lambda _: True)
        runner = Runner(lambda _: [])
        for what, which in steps:
            _press(runner, wishes, what, which)
            running = [one for one in (runner.latest(),) if one and one.record.stage == "running"]
            assert ids((*running, *runner.line())) == wishes
            assert [one.place for one in runner.line()] == list(range(1, len(wishes[1:]) + 1))
        stop(runner)


def _press(runner: Runner, wishes: list[str], what: str, which: int) -> None:
    if what == "start":
        try:
            seen, fresh = runner.start(SPEC, f"{which}")
        except NotStartedError:
            assert len(wishes) == limit("job_queue") + 1
            return
        assert fresh == (seen.id not in wishes)
        wishes += [seen.id] if fresh else []
    elif wishes and what == "end":
        job = runner._jobs[wishes.pop(0)]
        job.process.over.set()  # type: ignore[union-attr]
        assert job.ended.wait(PATIENCE_S)
    elif wishes:
        assert runner.cancel(wishes.pop(which % len(wishes)))
