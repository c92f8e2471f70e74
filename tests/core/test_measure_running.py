"""What the measuring process says is checked, and its runner keeps its promises: crash, hang, babble, or cancel."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.benchmark.points import Refusal, State
from core.benchmark.programme import METHOD, Programme
from core.benchmark.running.events import DeviceFound, Done, Event, Progress, Started, Tried, decode, encode
from core.benchmark.running.jobs import Runner, Snapshot, worker_command
from core.benchmark.timing import kinds
from core.jobs.lines import LineReader
from core.limits import limit
from tests.core import measure_cases as cases
from tests.core.measure_cases import AMOUNT, DEVICES, OUTCOMES, TEXT
from tests.core.measured_cases import CPU, point
from tests.every import every
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
PROGRAMME = Programme(device="cpu", kinds=("matmul",), dtypes=("fp32", "fp16"), sizes=(128,), seconds=0.05)
ITEMS = kinds.items(PROGRAMME)
POINT = point(ITEMS[0], 2e-3, flop=2.0 * 128**3, relative_error=1e-7, after=State(power_w=600.0), note="a note")
REFUSAL = Refusal(item=ITEMS[1], why="refused", text="RuntimeError: not here")
START = [Started(method=METHOD, torch="2.13.0"), DeviceFound(facts=CPU, in_use="2 other processes")]
FOUND, REFUSED, DONE = Tried(outcome=POINT), Tried(outcome=REFUSAL), Done(elapsed_s=1.0)
HALF_WAY = Progress(item=ITEMS[1], fraction=0.5)

# ------------------------------------------------------------------------------------------ lines

EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Started, method=TEXT, torch=TEXT),
    st.builds(DeviceFound, facts=DEVICES),
    st.builds(Progress, item=cases.ITEMS, fraction=st.floats(0, 1)),
    st.builds(Tried, outcome=OUTCOMES),
    st.builds(Done, elapsed_s=AMOUNT),
)


@given(EVENTS)
def test_events_survive_the_pipe(event: Event) -> None:
    line = encode(event)
    assert "\n" not in line
    assert decode(line.encode()) == event


def changed(**changes: Any) -> bytes:
    """A point with other fields."""
    said = json.loads(encode(FOUND))
    said["outcome"].update(changes)
    return json.dumps(said).encode()


@every(
    "line",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"event": "done", "elapsed_s": NaN}',
        b'{"event": "done", "elapsed_s": 1e999}',
        b'{"event": "done", "elapsed_s": true}',
        b'{"event": "done", "elapsed_s": "1"}',
        b'{"event": "done", "elapsed_s": -1}',
        b'{"event": "done", "elapsed_s": 1, "more": 2}',
        b'{"event": ["done"], "elapsed_s": 1}',
        b"[" * 100_000,
        encode(HALF_WAY).replace("0.5", "1.5").encode(),
        encode(REFUSED).replace('"refused"', '"eaten"').encode(),
        changed(item={"kind": "sorcery"}),
        changed(shape=[10.5]),
        changed(runs=2**63),
        changed(best_s=3e-3),
        changed(p90_s=1e-3),
        changed(relative_error=float("nan")),
        changed(note="x" * (limit("measure_text_chars") + 1)),
    ],
)
def test_anything_else_is_no_event(line: bytes) -> None:
    assert decode(line) is None


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_lines_come_out_whole_whatever_the_chunks(size: int) -> None:
    data = b"one\n\nthree and more\n" + b"z" * 40 + b"\nlast\nunfinished"
    reader = LineReader(cap=20)
    found = [found for i in range(0, len(data), size) for found in reader.feed(data[i : i + size])]
    assert found == [b"one", b"", b"three and more", b"last"]
    assert reader.oversize == 1


# ------------------------------------------------------------------------------------------ jobs


def line(event: Event) -> str:
    return f"print({encode(event)!r}, flush=True)"


def runner(body: str) -> Runner:
    """A runner whose worker is the Python program ``body``."""
    code = "import os, sys, time, subprocess\n" + textwrap.dedent(body)
    return Runner(lambda programme: [sys.executable, "-S", "-c", code])


def wait(run: Runner, job_id: str, wanted: Callable[[Snapshot], bool]) -> Snapshot:
    def now() -> Snapshot | None:
        seen = run.poll(job_id)
        assert seen is not None
        return seen if wanted(seen) else None

    return until(now)


def finish(run: Runner, programme: Programme = PROGRAMME) -> Snapshot:
    job, mine = run.start(programme)
    assert mine
    return wait(run, job.id, lambda now: not now.running)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    """Whether the process ends: a kill is sent at once, and takes effect when the process next runs."""
    return until(lambda: not alive(pid), f"the end of {pid}")


def test_a_job_runs_to_its_end() -> None:
    ended = finish(runner("\n".join(line(event) for event in [*START, HALF_WAY, FOUND, REFUSED, DONE])))
    record = ended.record
    assert (record.stage, record.message, ended.stderr) == ("finished", "", "")
    assert (record.id, record.programme) == (ended.id, PROGRAMME)
    assert record.outcomes == (POINT, REFUSAL)
    assert (record.points, record.refusals) == ((POINT,), (REFUSAL,))
    assert (record.method, record.torch, record.facts) == (METHOD, "2.13.0", CPU)
    assert record.in_use == "2 other processes"
    assert (ended.progress, ended.left_s, ended.fraction) == (None, 0.0, 1.0)


def test_progress_is_seen_while_it_runs() -> None:
    body = [*(line(event) for event in [*START, FOUND, HALF_WAY]), "time.sleep(600)"]
    run = runner("\n".join(body))
    job, _ = run.start(PROGRAMME)
    assert 0 < job.left_s <= kinds.expected_s(PROGRAMME)
    now = wait(run, job.id, lambda now: now.progress is not None)
    assert now.running
    assert now.progress == HALF_WAY
    assert now.left_s == pytest.approx(0.5 * kinds.item_s(PROGRAMME, ITEMS[1]))
    assert 0 < now.fraction < 1
    assert run.latest() is not None
    assert run.cancel(job.id)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("os.kill(os.getpid(), 9)", "memory"),
        ("", "before it was done"),
    ],
)
def test_a_process_that_ends_early_keeps_its_results_and_says_how(end: str, message: str) -> None:
    ended = finish(runner(f"{line(FOUND)}\n{end}"))
    assert (ended.record.stage, ended.record.outcomes) == ("failed", (POINT,))
    assert message in ended.record.message


def test_trouble_after_the_last_event_concerns_no_result() -> None:
    assert finish(runner(f"{line(FOUND)}\n{line(DONE)}\nos.abort()")).record.stage == "finished"


@pytest.mark.parametrize(
    "hang",
    [
        "time.sleep(600)",
        "os.close(1); os.close(2); time.sleep(600)",
        "import signal; signal.signal(15, 1); time.sleep(600)",
    ],
    ids=["silent", "with closed output", "ignoring SIGTERM"],
)
def test_a_hanging_process_is_killed_with_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hang: str) -> None:
    child = tmp_path / "child"
    body = f"""
        print({encode(FOUND)!r}, flush=True)
        p = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        open({str(child)!r}, "w").write(str(p.pid))
        {hang}
    """
    run = runner(body)
    job, _ = run.start(PROGRAMME)
    wait(run, job.id, lambda now: bool(now.record.outcomes) and child.exists() and child.read_text() != "")
    monkeypatch.setattr(run, "_timeout_s", 0.01)  # only now, so that a slow start is not taken for hanging
    ended = wait(run, job.id, lambda now: not now.running)
    assert ended.record.stage == "failed"
    assert "10 ms" in ended.record.message
    assert ended.record.outcomes == (POINT,)
    assert gone(int(child.read_text()))


def test_a_child_left_behind_is_killed_and_not_waited_for(tmp_path: Path) -> None:
    """It inherits the pipes, so waiting for their end would wait for it."""
    child = tmp_path / "child"
    body = f"""
        p = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        open({str(child)!r}, "w").write(str(p.pid))
        {line(DONE)}
    """
    assert finish(runner(body)).record.stage == "finished"
    assert gone(int(child.read_text()))


def test_lines_that_are_no_events_are_ignored() -> None:
    garbage = ["hello", "{", "[]", '{"event": "nonsense"}', '{"event": "done"}', "[" * 5000, '{"event": NaN}', "\\x00"]
    ended = finish(runner("\n".join([line(FOUND), *(f"print('{text}')" for text in garbage), "print()", line(DONE)])))
    assert ended.record.stage == "finished"
    assert ended.record.outcomes == (POINT,)


def test_no_process_says_more_than_a_record_holds() -> None:
    most = limit("measure_outcomes")
    ended = finish(runner(f"for _ in range({most + 3}): {line(REFUSED)}\n{line(DONE)}"))
    assert (ended.record.stage, len(ended.record.outcomes)) == ("finished", most)
    assert ended.left_s == 0


def test_a_line_beyond_the_cap_is_dropped_and_the_next_one_counts() -> None:
    ended = finish(runner(f"print('x' * {3 * limit('worker_line_bytes')})\n{line(FOUND)}\n{line(DONE)}"))
    assert ended.record.stage == "finished"
    assert ended.record.outcomes == (POINT,)


def test_a_babbling_process_is_stopped() -> None:
    ended = finish(runner("while True: print('more')"))
    assert ended.record.stage == "failed"
    assert f"more than {limit('worker_lines'):,} lines" in ended.record.message


def test_only_the_tail_of_the_errors_is_kept() -> None:
    ended = finish(runner("sys.stderr.write('y' * 100_000 + '\\nthe end\\n'); sys.exit(4)"))
    assert len(ended.stderr) <= limit("worker_stderr_bytes")
    assert ended.record.message.endswith("the end")


def test_cancel_keeps_what_there_is(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    body = f"""
        open({str(pid)!r}, "w").write(str(os.getpid()))
        {line(FOUND)}
        time.sleep(600)
    """
    run = runner(body)
    job, _ = run.start(PROGRAMME)
    wait(run, job.id, lambda now: bool(now.record.outcomes))
    assert run.cancel(job.id, PATIENCE_S)
    ended = run.poll(job.id)
    assert ended is not None
    assert ended.record.stage == "cancelled"
    assert ended.record.outcomes == (POINT,)
    assert "cancelled" in ended.record.message
    assert gone(int(pid.read_text()))
    assert not run.cancel(job.id)
    assert not run.cancel("no such job")


def test_a_command_that_does_not_exist_is_a_failed_job() -> None:
    run = Runner(lambda programme: ["/nowhere/to/be/found"])
    job, mine = run.start(PROGRAMME)
    assert mine
    assert job.record.stage == "failed"
    assert "did not start" in job.record.message
    assert not run.cancel(job.id)


def test_a_later_failure_does_not_hide_the_last_results() -> None:
    programs = iter([f"{line(FOUND)}\n{line(DONE)}", *["import sys; sys.exit(1)"] * (limit("jobs_kept") + 2)])

    def command(programme: Programme) -> Sequence[str]:
        return [sys.executable, "-S", "-c", next(programs)]

    run = Runner(command)
    assert run.latest() is None
    assert run.latest_with_results() is None
    good = finish(run)
    ids = [finish(run).id for _ in range(limit("jobs_kept") + 2)]
    latest, best = run.latest(), run.latest_with_results()
    assert latest is not None
    assert best is not None
    assert latest.id == ids[-1]
    assert best.id == good.id
    assert run.poll(ids[0]) is None, "old jobs are forgotten"


@pytest.mark.long
def test_the_real_worker_measures_and_ends_by_itself() -> None:
    ended = finish(Runner())
    assert (ended.record.stage, ended.record.message, ended.stderr) == ("finished", "", "")
    assert ended.record.method == METHOD
    assert ended.record.facts is not None
    assert ended.record.facts.threads > 0
    assert [one.item for one in ended.record.outcomes] == list(ITEMS)


def test_the_worker_ends_when_its_parent_is_gone() -> None:
    """Closed standard input is what a dead server looks like from there."""
    long = PROGRAMME.model_copy(update={"seconds": 60.0})
    done = subprocess.run(
        worker_command(long), cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S
    )
    assert done.returncode == 3
