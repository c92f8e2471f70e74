"""The runner keeps its promises whatever its process does: crash, hang, babble, or get cancelled."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from core.limits import limit
from core.measure import report
from core.measure.events import DeviceFacts, Done, Progress, Refusal, Result, Started, encode
from core.measure.jobs import Runner, Snapshot, worker_command
from core.measure.lines import LineReader, Tail
from core.measure.process import KEPT_JOBS
from core.measure.spec import METHOD, Spec

ROOT = Path(__file__).parents[2]
SPEC = Spec("cpu", 128, 0.2)
RESULT = Result("fp32", 128, 1e-3, 9e-4, 9.5e-4, 1.2e-3, 100, 0.2, 1e-7)
REFUSAL = Refusal("fp16", "refused", "RuntimeError: not here")
START = [Started(METHOD, "2.13.0"), DeviceFacts("A processor", "", 2, 1e9, None)]


def line(event: object) -> str:
    return f"print({encode(event)!r}, flush=True)"  # type: ignore[arg-type]


def runner(body: str) -> Runner:
    """A runner whose worker is the Python program ``body``."""
    code = "import os, sys, time, subprocess\n" + textwrap.dedent(body)
    return Runner(lambda spec: [sys.executable, "-S", "-c", code])


def wait(run: Runner, job_id: str, until: Callable[[Snapshot], bool], seconds: float = 60.0) -> Snapshot:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        now = run.poll(job_id)
        assert now is not None
        if until(now):
            return now
        time.sleep(0.01)
    raise AssertionError(f"still {run.poll(job_id)}")


def finish(run: Runner, spec: Spec = SPEC) -> Snapshot:
    job, mine = run.start(spec)
    assert mine
    return wait(run, job.id, lambda now: not now.running)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    """Whether the process ends within a minute: a kill is sent at once, and takes effect when the process next runs."""
    deadline = time.monotonic() + 60
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def test_a_job_runs_to_its_end() -> None:
    events = [*START, Progress("fp32", "timing", 0.5), RESULT, REFUSAL, Done(1.0)]
    ended = finish(runner("\n".join(line(event) for event in events)))
    assert (ended.state, ended.message, ended.stderr, ended.ignored_lines) == ("finished", "", "", 0)
    assert ended.outcomes == (RESULT, REFUSAL)
    assert ended.results == (RESULT,)
    assert (ended.method, ended.torch, ended.facts) == (METHOD, "2.13.0", START[1])
    assert (ended.progress, ended.left_s, ended.fraction) == (None, 0.0, 1.0)


def test_progress_is_seen_while_it_runs() -> None:
    body = [*(line(event) for event in [*START, RESULT, Progress("fp16", "timing", 0.5)]), "time.sleep(600)"]
    run = runner("\n".join(body))
    job, _ = run.start(SPEC)
    now = wait(run, job.id, lambda now: now.progress is not None)
    assert now.running
    assert now.progress == Progress("fp16", "timing", 0.5)
    assert now.left_s == pytest.approx(1.5 * SPEC.dtype_s)
    assert 0 < now.fraction < 1
    assert run.latest() is not None
    assert run.cancel(job.id)


def test_a_crash_keeps_results_and_shows_the_last_words() -> None:
    body = f"{line(RESULT)}\nprint('noise', file=sys.stderr)\nraise RuntimeError('boom')"
    ended = finish(runner(body))
    assert ended.state == "failed"
    assert ended.outcomes == (RESULT,)
    assert "exit code 1" in ended.message
    assert ended.message.endswith("RuntimeError: boom")
    assert "Traceback" in ended.stderr


def test_a_killed_process_says_by_what() -> None:
    ended = finish(runner("os.kill(os.getpid(), 9)"))
    assert ended.state == "failed"
    assert "SIGKILL" in ended.message
    assert "memory" in ended.message


def test_ending_early_without_an_error_is_a_failure() -> None:
    ended = finish(runner(line(RESULT)))
    assert ended.state == "failed"
    assert "before it was done" in ended.message
    assert ended.outcomes == (RESULT,)


def test_trouble_after_the_last_event_concerns_no_result() -> None:
    assert finish(runner(f"{line(RESULT)}\n{line(Done(1.0))}\nos.abort()")).state == "finished"


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
        print({encode(RESULT)!r}, flush=True)
        p = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        open({str(child)!r}, "w").write(str(p.pid))
        {hang}
    """
    run = runner(body)
    job, _ = run.start(SPEC)
    wait(run, job.id, lambda now: bool(now.outcomes) and child.exists() and child.read_text() != "")
    monkeypatch.setattr(run, "_timeout_s", 0.01)  # only now, so that a slow start is not taken for hanging
    ended = wait(run, job.id, lambda now: not now.running)
    assert ended.state == "failed"
    assert "stopped after 0.01 s" in ended.message
    assert ended.outcomes == (RESULT,)
    assert gone(int(child.read_text()))


def test_a_child_left_behind_is_killed_and_not_waited_for(tmp_path: Path) -> None:
    """It inherits the pipes, so waiting for their end would wait for it."""
    child = tmp_path / "child"
    body = f"""
        p = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        open({str(child)!r}, "w").write(str(p.pid))
        {line(Done(1.0))}
    """
    assert finish(runner(body)).state == "finished"
    assert gone(int(child.read_text()))


def test_lines_that_are_no_events_are_counted_and_ignored() -> None:
    garbage = ["hello", "{", "[]", '{"event": "nonsense"}', '{"event": "done"}', "[" * 5000, '{"event": NaN}', "\\x00"]
    body = "\n".join([line(RESULT), *(f"print('{text}')" for text in garbage), "print()", line(Done(1.0))])
    ended = finish(runner(body))
    assert ended.state == "finished"
    assert ended.outcomes == (RESULT,)
    assert ended.ignored_lines == len(garbage)


def test_a_line_beyond_the_cap_is_dropped_and_the_next_one_counts() -> None:
    body = f"print('x' * {3 * limit('worker_line_bytes')})\n{line(RESULT)}\n{line(Done(1.0))}"
    ended = finish(runner(body))
    assert ended.state == "finished"
    assert ended.outcomes == (RESULT,)
    assert ended.ignored_lines == 1


def test_a_babbling_process_is_stopped() -> None:
    ended = finish(runner("while True: print('more')"))
    assert ended.state == "failed"
    assert f"more than {limit('worker_lines'):,} lines" in ended.message


def test_only_the_tail_of_the_errors_is_kept() -> None:
    ended = finish(runner("sys.stderr.write('y' * 100_000 + '\\nthe end\\n'); sys.exit(4)"))
    assert len(ended.stderr) <= limit("worker_stderr_bytes")
    assert ended.message.endswith("the end")


def test_cancel_keeps_what_there_is(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    body = f"""
        open({str(pid)!r}, "w").write(str(os.getpid()))
        {line(RESULT)}
        time.sleep(600)
    """
    run = runner(body)
    job, _ = run.start(SPEC)
    wait(run, job.id, lambda now: bool(now.outcomes))
    assert run.cancel(job.id)
    ended = run.poll(job.id)
    assert ended is not None
    assert ended.state == "cancelled"
    assert ended.outcomes == (RESULT,)
    assert "cancelled" in ended.message
    assert gone(int(pid.read_text()))
    assert not run.cancel(job.id)
    assert not run.cancel("no such job")


def test_two_starters_at_once_share_one_job() -> None:
    run = runner("time.sleep(600)")
    gate = threading.Barrier(8)
    starts: list[tuple[Snapshot, bool]] = []

    def start() -> None:
        gate.wait()
        starts.append(run.start(SPEC))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(mine for _, mine in starts) == 1
    assert len({job.id for job, _ in starts}) == 1
    assert run.cancel(starts[0][0].id)
    _, mine = run.start(SPEC)
    assert mine
    latest = run.latest()
    assert latest is not None
    assert run.cancel(latest.id)


def test_a_command_that_does_not_exist_is_a_failed_job() -> None:
    run = Runner(lambda spec: ["/nowhere/to/be/found"])
    job, mine = run.start(SPEC)
    assert mine
    assert job.state == "failed"
    assert "did not start" in job.message
    assert not run.cancel(job.id)


def test_a_later_failure_does_not_hide_the_last_results() -> None:
    programs = iter([f"{line(RESULT)}\n{line(Done(1.0))}", *["import sys; sys.exit(1)"] * (KEPT_JOBS + 2)])

    def command(spec: Spec) -> Sequence[str]:
        return [sys.executable, "-S", "-c", next(programs)]

    run = Runner(command)
    assert run.latest() is None
    assert run.latest_with_results() is None
    good = finish(run)
    ids = [finish(run).id for _ in range(KEPT_JOBS + 2)]
    latest, best = run.latest(), run.latest_with_results()
    assert latest is not None
    assert best is not None
    assert latest.id == ids[-1]
    assert best.id == good.id
    assert run.poll(ids[0]) is None, "old jobs are forgotten"


def test_the_real_worker_measures_and_ends_by_itself() -> None:
    ended = finish(Runner(), Spec("cpu", 64, 0.2))
    assert (ended.state, ended.message, ended.stderr) == ("finished", "", "")
    assert ended.method == METHOD
    assert ended.facts is not None
    assert ended.facts.threads > 0
    assert [outcome.dtype for outcome in ended.outcomes] == ["fp32", "fp16", "bf16"]
    for result in ended.results:
        assert result.runs >= 5
        assert result.rate <= result.best_rate


def test_a_job_recorded_on_an_h200_reads_as_it_was_measured() -> None:
    """What the worker printed on a real GPU, told by a process that repeats it."""
    recorded = ROOT / "tests" / "data" / "measured_h200.jsonl"
    repeat = [sys.executable, "-c", f"print(open({str(recorded)!r}).read())"]
    ended = finish(Runner(lambda _: repeat), Spec("cuda", 8192, 2.0))
    assert (ended.state, ended.ignored_lines) == ("finished", 0)
    sentence, detail = report.answer(ended)
    assert sentence == (
        "This NVIDIA H200 reached **681 TFLOP/s** in bf16, **69 %** of its datasheet peak; "
        "fp32 is **about 13 times slower** than bf16."
    )
    assert "Peaks are the dense datasheet rates of H200 SXM." in detail
    assert [row.share for row in report.rows(ended)] == ["76.4 %", "72 %", "65.7 %", "68.8 %"]
    assert "The clock fell to" in report.remarks(ended)[0]


def test_the_worker_without_a_usable_gpu_fails_in_the_librarys_words() -> None:
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    code = "import sys\nfrom core.measure.worker import main\nmain(sys.argv[1:])"
    options = ["--device", "cuda", "--n", "64", "--seconds", "0.2"]
    command = [sys.executable, "-c", code, *options]
    done = subprocess.run(command, cwd=ROOT, env=hidden, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "Error" in done.stderr.splitlines()[-1]
    assert '"event": "result"' not in done.stdout


def test_the_worker_ends_when_its_parent_is_gone() -> None:
    """Closed standard input is what a dead server looks like from there."""
    command = worker_command(Spec("cpu", 4096, 60.0))
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode == 3


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_lines_come_out_whole_whatever_the_chunks(size: int) -> None:
    data = b"one\n\nthree and more\n" + b"z" * 40 + b"\nlast\nunfinished"
    reader = LineReader(cap=20)
    found = [found for i in range(0, len(data), size) for found in reader.feed(data[i : i + size])]
    assert found == [b"one", b"", b"three and more", b"last"]
    assert reader.oversize == 1


def test_tail_keeps_the_end() -> None:
    tail = Tail(cap=5)
    for chunk in (b"abc", b"defg", b"h"):
        tail.feed(chunk)
    assert tail.text() == "defgh"
