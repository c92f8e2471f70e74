"""One job at a time, the others in line: who comes first is served first, and nobody holds the machine for ever."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.jobs import child
from core.jobs.process import NotStartedError
from core.limits import limit
from tests.core import measure_cases as cases
from tests.core.measure_cases import DONE, SLEEPS, SPEC, Runner, Seen, program, says
from tests.patience import PATIENCE_S, until

WORKS = program(says(cases.point()), end=SLEEPS)
ENDS = program(says(cases.point()), DONE)
VISITORS = ["Ada", "Bo", "Cy"]


def ids(line: tuple[Seen, ...]) -> list[str]:
    return [one.record.id for one in line]


def stop(runner: Runner) -> None:
    for one in reversed(runner.line()):
        runner.cancel(one.record.id)
    if latest := runner.latest():
        runner.cancel(latest.record.id)


@pytest.mark.process
def test_who_comes_while_a_job_runs_waits_in_line_and_is_served_in_turn() -> None:
    runner = Runner(lambda _: WORKS)
    first, second, third = (runner.start(SPEC, who)[0] for who in VISITORS)
    assert [(one.state, one.place) for one in (first, second, third)] == [("running", 0), ("queued", 1), ("queued", 2)]
    assert runner.start(SPEC, "Cy") == (third, False)
    assert runner.own("Cy") == third
    latest = runner.latest()
    assert latest is not None
    assert latest.record.id == first.record.id
    assert ids(runner.line()) == ids((second, third))
    assert runner.cancel(second.record.id)
    gone = runner.poll(second.record.id)
    assert gone is not None
    assert (gone.state, gone.place) == ("cancelled", 0)
    assert "before it began" in gone.record.message
    assert not runner.cancel(second.record.id)
    assert [one.place for one in runner.line()] == [1]
    assert runner.cancel(first.record.id)
    until(lambda: (now := runner.poll(third.record.id)) and now.state == "running" and now.record.outcomes)
    assert runner.line() == ()
    stop(runner)


@pytest.mark.process
def test_a_full_line_says_so_and_has_room_again_later() -> None:
    runner = Runner(lambda _: WORKS)
    jobs = [runner.start(SPEC, f"{i}")[0] for i in range(limit("job_queue") + 1)]
    with pytest.raises(NotStartedError, match=f"{limit('job_queue')} measurements wait"):
        runner.start(SPEC, "one more")
    assert len(runner.line()) == limit("job_queue")
    assert runner.own("one more") is None
    assert runner.start(SPEC, "3") == (runner.poll(jobs[3].record.id), False)
    assert runner.cancel(jobs[-1].record.id)
    assert runner.start(SPEC, "one more")[0].place == limit("job_queue")
    stop(runner)


@pytest.mark.process
def test_one_visitor_cannot_start_job_after_job() -> None:
    runner = Runner(lambda _: ENDS, pause_s=1e6)
    cases.ended(runner, runner.start(SPEC, "Ada")[0])
    with pytest.raises(NotStartedError, match=r"in 1000000 s") as raised:
        runner.start(SPEC, "Ada")
    assert raised.value.seconds == 1e6
    assert cases.ended(runner, runner.start(SPEC, "Bo")[0]).state == "finished"
    for _ in range(3):  # a library's user is no visitor
        assert runner.start(SPEC)[1]
        until(lambda: runner.own("").state == "finished")  # type: ignore[union-attr]
    assert Runner(lambda _: ENDS)._pause_s == limit("job_pause")


@pytest.mark.process
def test_who_waited_in_line_needs_no_pause_and_it_ends_by_itself() -> None:
    runner = Runner(lambda spec: WORKS, pause_s=1e6)
    first = runner.start(SPEC, "Ada")[0]
    assert runner.cancel(first.record.id)
    other = runner.start(SPEC, "Bo")[0]
    again = runner.start(SPEC, "Ada")[0]
    assert again.place == 1
    assert runner.cancel(other.record.id)
    assert runner.poll(again.record.id).state == "running"  # type: ignore[union-attr]
    stop(runner)
    runner = Runner(lambda spec: ENDS, pause_s=0)
    cases.ended(runner, runner.start(SPEC, "Ada")[0])
    assert runner.start(SPEC, "Ada")[1]


@pytest.mark.process
def test_a_job_that_cannot_begin_does_not_hold_up_the_line() -> None:
    told: list[Seen] = []
    commands = iter([WORKS, ["/nowhere/to/be/found"], WORKS])
    runner = Runner(lambda _: next(commands), told.append)
    jobs = [runner.start(SPEC, who)[0] for who in VISITORS]
    assert runner.cancel(jobs[0].record.id)
    states = [runner.poll(one.record.id).state for one in jobs]  # type: ignore[union-attr]
    assert states == ["cancelled", "failed", "running"]
    stop(runner)
    until(lambda: {one.record.id for one in told if one.state in ("cancelled", "failed")} == set(ids(tuple(jobs))))


@pytest.mark.process
def test_who_listens_hears_each_job_in_order_to_its_end() -> None:
    told: list[Seen] = []
    runner = Runner(lambda _: ENDS, told.append)
    for _ in range(2):
        job = cases.ended(runner, runner.start(SPEC)[0])
        heard = until(lambda: told if told and told[-1].state == "finished" else None)
        assert heard[0].record.id == job.record.id
        assert heard[0].state == "running"
        assert heard[-1] == job
        found = [len(one.record.outcomes) for one in heard]
        assert found == sorted(found)
        told.clear()


@pytest.mark.process
def test_who_listens_may_fail_and_may_ask_the_runner(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[Seen | None] = []

    def listen(_: Seen) -> None:
        asked.append(runner.latest())  # a lock held here would stand still
        raise RuntimeError("no ear")

    runner = Runner(lambda _: ENDS, listen)
    for _ in range(2):
        assert cases.ended(runner, runner.start(SPEC)[0]).state == "finished"
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
        seen.append((who, runner.start(SPEC, who)[0].record.id))

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
        runner = Runner(lambda _: [], pause_s=0)
        for what, which in steps:
            _press(runner, wishes, what, which)
            running = [one for one in (runner.latest(),) if one and one.state == "running"]
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
        assert fresh == (seen.record.id not in wishes)
        wishes += [seen.record.id] if fresh else []
    elif wishes and what == "end":
        job = runner._jobs[wishes.pop(0)]
        job.process.over.set()  # type: ignore[union-attr]
        assert job.ended.wait(PATIENCE_S)
    elif wishes:
        assert runner.cancel(wishes.pop(which % len(wishes)))
