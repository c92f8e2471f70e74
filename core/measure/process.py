"""One job per process: start it, watch it, cancel it; what it has found is never lost.

The runner is shared by every session of a server. Sessions see frozen snapshots and address a job by its id, so a
second browser watches the same job and may cancel it. A job's process leads a process group of its own, which is
killed as a whole on cancel, on timeout, and when the job has ended.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar
from uuid import uuid4

from core.limits import limit
from core.measure.lines import LineReader, Tail

State: TypeAlias = Literal["running", "finished", "cancelled", "failed"]

Asked = TypeVar("Asked")
Seen = TypeVar("Seen")

KEPT_JOBS = 8
"""Ended jobs that can still be looked up by id."""

_ROOT = Path(__file__).parents[2]
_TICK_S = 0.1
_KILL_PATIENCE_S = 10.0


@dataclass
class Job(Generic[Asked, Seen]):
    """The mutable side of a job; only touched under the runner's lock.

    spec: what was asked for. started: seconds since the epoch. message: why it failed or was cancelled, empty
    otherwise. ignored_lines: output that was no event. done: whether the process has said that it is.
    """

    spec: Asked
    started: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.monotonic)
    process: subprocess.Popen[bytes] | None = None
    id: str = field(default_factory=lambda: uuid4().hex[:12])
    state: State = "running"
    elapsed_s: float = 0.0
    message: str = ""
    stderr: str = ""
    ignored_lines: int = 0
    done: bool = False
    cancelled: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds(self) -> float:
        """How long it has been running, or took."""
        return time.monotonic() - self.clock if self.state == "running" else self.elapsed_s

    @property
    @abstractmethod
    def found(self) -> bool:
        """Whether it has results."""

    @abstractmethod
    def take(self, line: bytes) -> None:
        """Apply one line of the process's output."""

    @abstractmethod
    def snapshot(self) -> Seen:
        """The job as it is now."""


class ProcessRunner(Generic[Asked, Seen]):
    """Runs at most one job at a time. All methods may be called from any thread; none waits for a job to finish.

    command: the process to run for what is asked. job: the job that takes its output. timeout_s: the most it may
    take. noun: what a job is called in sentences.
    """

    def __init__(
        self,
        command: Callable[[Asked], Sequence[str]],
        job: Callable[[Asked], Job[Asked, Seen]],
        timeout_s: float,
        noun: str,
    ) -> None:
        self._command = command
        self._job = job
        self._timeout_s = timeout_s
        self._noun = noun
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job[Asked, Seen]] = OrderedDict()

    def start(self, spec: Asked) -> tuple[Seen, bool]:
        """Start a job, or find the one that is running. Gives its snapshot, and whether this call started it."""
        with self._lock:
            running = next((job for job in self._jobs.values() if job.state == "running"), None)
            if running is not None:
                return running.snapshot(), False
            job = self._job(spec)
            self._jobs[job.id] = job
            self._forget()
            try:
                job.process = subprocess.Popen(  # noqa: S603 - our own command, no shell
                    self._command(spec),
                    cwd=_ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as problem:
                job.state, job.message = "failed", f"The process of the {self._noun} did not start: {problem}"
                return job.snapshot(), True
            threading.Thread(target=self._follow, args=(job, job.process), daemon=True).start()
            return job.snapshot(), True

    def cancel(self, job_id: str, wait_s: float = 2.0) -> bool:
        """Stop a running job and keep what it has. False when there is no such job or it has ended.

        Waits up to ``wait_s`` for the process to be gone, so that what is shown next is the cancelled job.
        """
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.state != "running" or job.process is None:
                return False
            job.cancelled = True
            # Safe: the process is reaped under this lock only, after which the state is no longer running.
            _kill(job.process)
        job.ended.wait(wait_s)
        return True

    def poll(self, job_id: str) -> Seen | None:
        """The job ``job_id`` now; None when it is unknown or long forgotten."""
        with self._lock:
            job = self._jobs.get(job_id)
            return job.snapshot() if job else None

    def latest(self) -> Seen | None:
        """The job started last, running or ended; None before the first."""
        with self._lock:
            return next(reversed(self._jobs.values())).snapshot() if self._jobs else None

    def latest_with_results(self) -> Seen | None:
        """The latest job that found something, so that a failure does not hide what was there before."""
        with self._lock:
            found = next((job for job in reversed(self._jobs.values()) if job.found), None)
            return found.snapshot() if found else None

    def _forget(self) -> None:
        """Drop the oldest jobs, but never the newest that has results."""
        keep = next((job.id for job in reversed(self._jobs.values()) if job.found), None)
        for job_id in list(self._jobs)[: max(len(self._jobs) - KEPT_JOBS, 0)]:
            if job_id != keep:
                del self._jobs[job_id]

    def _follow(self, job: Job[Asked, Seen], process: subprocess.Popen[bytes]) -> None:
        """Read the process to its end, in a thread of its own."""
        errors = Tail(limit("worker_stderr_bytes"))
        reason = ""
        try:
            reason = self._read(job, process, errors)
        finally:
            _kill(process)
            gone = _wait_until_ended(process)
            with self._lock:
                # Reaped under the lock, so that `cancel` never signals a process id that is no longer ours.
                code = process.wait() if gone else None
                for pipe in (process.stdin, process.stdout, process.stderr):
                    if pipe is not None:
                        pipe.close()
                job.elapsed_s = time.monotonic() - job.clock
                job.stderr = errors.text()
                job.state, job.message = _verdict(job, self._noun, code, reason)
            job.ended.set()

    def _read(self, job: Job[Asked, Seen], process: subprocess.Popen[bytes], errors: Tail) -> str:
        """Take the output until the process ends. Gives why it has to be stopped, or empty when it ended itself."""
        assert process.stdout is not None  # noqa: S101 - both were asked for as pipes
        assert process.stderr is not None  # noqa: S101
        reader = LineReader(limit("worker_line_bytes"))
        lines = 0
        with selectors.DefaultSelector() as selector:
            for pipe in (process.stdout, process.stderr):
                selector.register(pipe, selectors.EVENT_READ)
            while True:
                if time.monotonic() - job.clock > self._timeout_s:
                    return f"It was stopped after {self._timeout_s:g} s, the most one {self._noun} may take."
                # Once the process has ended, whatever its pipes still hold is read, without waiting for more.
                ended = _has_ended(process)
                if not selector.get_map():
                    if ended:
                        return ""
                    time.sleep(_TICK_S)
                    continue
                ready = selector.select(0 if ended else _TICK_S)
                if ended and not ready:
                    return ""
                for key, _ in ready:
                    chunk = os.read(key.fd, 65_536)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is process.stderr:
                        errors.feed(chunk)
                    else:
                        before = reader.oversize
                        found = reader.feed(chunk)
                        lines += len(found) + reader.oversize - before
                        if lines > limit("worker_lines"):
                            return f"It was stopped after printing more than {limit('worker_lines'):,} lines."
                        with self._lock:
                            job.ignored_lines += reader.oversize - before
                            for line in found:
                                job.take(line)


def _verdict(job: Job[Asked, Seen], noun: str, code: int | None, reason: str) -> tuple[State, str]:
    """How a job ended, and the sentence that says so. code: None when the process could not be killed."""
    if job.done and code is not None and not reason:
        return "finished", ""  # whatever happened after the last event concerns no result
    if job.cancelled and code is not None:
        return "cancelled", f"The {noun} was cancelled."
    last = job.stderr.splitlines()[-1] if job.stderr else ""
    said = f" Its last words: {last}" if last else ""
    if code is None:
        return "failed", f"The process of the {noun} cannot be killed; its device may be stuck.{said}"
    if reason:
        return "failed", f"{reason}{said}"
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        hint = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
        return "failed", f"The process of the {noun} was killed by {name}{hint}.{said}"
    if code:
        return "failed", f"The process of the {noun} ended with exit code {code}.{said}"
    return "failed", f"The process of the {noun} ended before it was done.{said}"


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has ended, without reaping it: until then its id, and its group's, cannot be reused."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _wait_until_ended(process: subprocess.Popen[bytes]) -> bool:
    """Wait for a killed process; False when it is still there, as one stuck in a driver call can be."""
    deadline = time.monotonic() + _KILL_PATIENCE_S
    while not _has_ended(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and everything in its group."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def end_with_parent() -> None:
    """In a thread of the process itself: end it when its standard input closes, as it does when its parent is gone."""
    # Straight from the descriptor: a thread inside sys.stdin would hold its lock and abort a normal exit.
    while os.read(0, 4096):
        pass
    # Nobody reads the results any more: stop in the middle of whatever runs.
    os._exit(3)
