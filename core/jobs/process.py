"""One job per process, one process at a time: start it, watch it, cancel it; what it has found is never lost.

The runner is shared by every session of a server. Sessions see frozen snapshots and address a job by its id, so a
second browser watches the same job and may cancel it. Who comes while a job runs waits in line. A job's process leads
a process group of its own, which is killed as a whole on cancel, on timeout, and when the job has ended.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import subprocess
import threading
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar
from uuid import uuid4

from core.jobs import child
from core.jobs.lines import Tail
from core.limits import limit

LOG = logging.getLogger(__name__)

State: TypeAlias = Literal["queued", "running", "finished", "cancelled", "failed"]

Asked = TypeVar("Asked")
Seen = TypeVar("Seen")

KEPT_JOBS = 8
"""Ended jobs that can still be looked up by id."""


class NotStartedError(Exception):
    """Nothing was started, and nothing waits. The message says why, and what helps.

    seconds: how long to wait before trying again, 0 where nobody knows.
    """

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass
class Job(Generic[Asked, Seen]):
    """The mutable side of a job; only touched under the runner's lock.

    spec: what was asked for. who: the visitor who asked. place: 1 for the next in line, 0 when it is not in line.
    started: seconds since the epoch; of a job in line, when it was asked for. message: why it failed or was cancelled,
    empty otherwise. ignored_lines: output that was no event. done: whether the process has said that it is.
    """

    spec: Asked
    who: str = ""
    place: int = 0
    started: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.monotonic)
    process: subprocess.Popen[bytes] | None = None
    id: str = field(default_factory=lambda: uuid4().hex[:12])
    state: State = "queued"
    elapsed_s: float = 0.0
    message: str = ""
    stderr: str = ""
    ignored_lines: int = 0
    done: bool = False
    cancelled: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds(self) -> float:
        """How long it has been running, or took; 0 in line."""
        return time.monotonic() - self.clock if self.state == "running" else self.elapsed_s

    @property
    def open(self) -> bool:
        """Whether it runs or waits."""
        return self.state in ("queued", "running")

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
    """Runs one job at a time, the others in the order in which they came. All methods may be called from any thread;
    none waits for a job to finish.

    command: the process to run for what is asked. job: the job that takes its output. timeout_s: the most it may
    take. noun: what a job is called in sentences. listener: told of a job when it begins, after each batch of lines,
    and at its end, in order and outside the lock; what it raises is logged once and harms no job.

    A visitor has one job, running or in line; pressing again finds it. Where nothing runs, a visitor's next job begins
    a pause after the end of the last one that ran, so that somebody else can come between. Who waits in line behind
    others has let them come between, and begins when the turn comes. Who has no name (a library's user) waits for no
    pause.
    """

    def __init__(
        self,
        command: Callable[[Asked], Sequence[str]],
        job: Callable[[Asked], Job[Asked, Seen]],
        timeout_s: float,
        noun: str,
        listener: Callable[[Seen], None] | None = None,
        pause_s: float | None = None,
    ) -> None:
        self._command = command
        self._job = job
        self._timeout_s = timeout_s
        self._noun = noun
        self._listener = listener
        self._pause_s = float(limit("job_pause")) if pause_s is None else pause_s
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job[Asked, Seen]] = OrderedDict()
        """In the order in which they began; then those in line."""
        self._last: dict[str, float] = {}
        """Visitor → when the last job that ran for them ended; older than a pause, it is forgotten."""
        self._complained = False

    def start(self, spec: Asked, who: str = "") -> tuple[Seen, bool]:
        """Start a job, or put it in line, or find the visitor's own. Gives its snapshot, and whether it is new.

        Raises `NotStartedError` where the line is full, or the visitor's pause is not over.
        """
        with self._lock:
            own = next((job for job in self._jobs.values() if job.open and job.who == who), None)
            if own is not None:
                return own.snapshot(), False
            busy = any(job.open for job in self._jobs.values())
            if not busy:
                self._pause(who)
            elif len(self._line()) >= limit("job_queue"):
                raise NotStartedError(
                    f"{limit('job_queue')} {self._noun}s wait for this machine already, as many as may. Try again when "
                    "one of them has ended."
                )
            job = self._job(spec)
            job.who = who
            self._jobs[job.id] = job
            self._forget()
            if busy:
                self._number()
            else:
                self._begin(job)
            seen = job.snapshot()
        if job.ended.is_set():
            self._tell(seen)
        return seen, True

    def cancel(self, job_id: str, wait_s: float = 2.0) -> bool:
        """Stop a running job and keep what it has, or take one out of the line. False when there is no such job or it
        has ended.

        Waits up to ``wait_s`` for the process to be gone, so that what is shown next is the cancelled job.
        """
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or not job.open:
                return False
            job.cancelled = True
            if job.process is None:
                job.state, job.place, job.message = "cancelled", 0, f"The {self._noun} was cancelled before it began."
                job.ended.set()
                self._number()
                return True
            # Safe: the process is reaped under this lock only, after which the state is no longer running.
            child.kill(job.process)
        job.ended.wait(wait_s)
        return True

    # ------------------------------------------------------------------------------------------ looking

    def poll(self, job_id: str) -> Seen | None:
        """The job ``job_id`` now; None when it is unknown or long forgotten."""
        with self._lock:
            job = self._jobs.get(job_id)
            return job.snapshot() if job else None

    def latest(self) -> Seen | None:
        """The job that began last, running or ended; None before the first."""
        with self._lock:
            return self._newest(lambda job: job.process is not None or job.state == "failed")

    def latest_with_results(self) -> Seen | None:
        """The latest job that found something, so that a failure does not hide what was there before."""
        with self._lock:
            return self._newest(lambda job: job.found)

    def own(self, who: str) -> Seen | None:
        """The visitor's last job, in line, running or ended; None where there is none or it is long forgotten."""
        with self._lock:
            return self._newest(lambda job: job.who == who)

    def line(self) -> tuple[Seen, ...]:
        """The jobs in line, the next one first."""
        with self._lock:
            return tuple(job.snapshot() for job in self._line())

    # ------------------------------------------------------------------------------------------ under the lock

    def _newest(self, wanted: Callable[[Job[Asked, Seen]], bool]) -> Seen | None:
        job = next((job for job in reversed(self._jobs.values()) if wanted(job)), None)
        return job.snapshot() if job else None

    def _line(self) -> list[Job[Asked, Seen]]:
        return [job for job in self._jobs.values() if job.state == "queued"]

    def _number(self) -> None:
        for place, job in enumerate(self._line(), 1):
            job.place = place

    def _pause(self, who: str) -> None:
        """Raise `NotStartedError` where the pause after the visitor's last job is not over."""
        now = time.monotonic()
        self._last = {text: ended for text, ended in self._last.items() if now - ended < self._pause_s}
        if who and who in self._last:
            left = math.ceil(self._last[who] + self._pause_s - now)
            raise NotStartedError(
                f"Your last {self._noun} has just ended. You can start the next one in {left} s: until then somebody "
                "else can.",
                left,
            )

    def _forget(self) -> None:
        """Drop the oldest jobs, those first that never began; but never one that is open, nor the newest that has
        results."""
        keep = next((job.id for job in reversed(self._jobs.values()) if job.found), None)
        old = [job for job in self._jobs.values() if not job.open and job.id != keep]
        old.sort(key=lambda job: job.process is not None)
        number = KEPT_JOBS - (keep is not None)
        for job in old[: max(len(old) - number, 0)]:
            del self._jobs[job.id]

    def _begin(self, job: Job[Asked, Seen]) -> None:
        """Start a job's process, and a thread that follows it."""
        job.place, job.started, job.clock = 0, time.time(), time.monotonic()
        try:
            job.process = child.spawn(self._command(job.spec))
        except OSError as problem:
            job.state, job.message = "failed", f"The process of the {self._noun} did not start: {problem}"
            job.ended.set()
            return
        job.state = "running"
        threading.Thread(target=self._follow, args=(job, job.process), daemon=True).start()

    def _next(self) -> list[Seen]:
        """Begin the next job in line that can be begun; gives those that could not."""
        failed: list[Seen] = []
        for job in self._line():
            self._begin(job)
            if job.state == "running":
                break
            failed.append(job.snapshot())
        self._number()
        return failed

    # ------------------------------------------------------------------------------------------ in a thread of its own

    def _follow(self, job: Job[Asked, Seen], process: subprocess.Popen[bytes]) -> None:
        """Read the process to its end, and begin the next one in line."""
        errors = Tail(limit("worker_stderr_bytes"))
        reason = ""

        def take(lines: list[bytes], dropped: int) -> None:
            with self._lock:
                job.ignored_lines += dropped
                for line in lines:
                    job.take(line)
                seen = job.snapshot()
            if lines:
                self._tell(seen)

        def over() -> str:
            late = time.monotonic() - job.clock > self._timeout_s
            return f"It was stopped after {self._timeout_s:g} s, the most one {self._noun} may take." if late else ""

        try:
            self._tell(self._seen(job))
            reason = child.read(process, take, errors, over)
        finally:
            child.kill(process)
            gone = child.wait_until_ended(process)
            with self._lock:
                # Reaped under the lock, so that `cancel` never signals a process id that is no longer ours.
                code = process.wait() if gone else None
                for pipe in (process.stdin, process.stdout, process.stderr):
                    if pipe is not None:
                        pipe.close()
                job.elapsed_s = time.monotonic() - job.clock
                job.stderr = errors.text()
                job.state, job.message = _verdict(job, self._noun, code, reason)
                self._last[job.who] = time.monotonic()
                results = [job.snapshot(), *self._next()]
            job.ended.set()
            for seen in results:
                self._tell(seen)

    def _seen(self, job: Job[Asked, Seen]) -> Seen:
        with self._lock:
            return job.snapshot()

    def _tell(self, seen: Seen) -> None:
        if self._listener is None:
            return
        try:
            self._listener(seen)
        except Exception:
            if not self._complained:
                self._complained = True
                LOG.exception("Who listens to a %s failed; the %s goes on", self._noun, self._noun)


def _verdict(job: Job[Asked, Seen], noun: str, code: int | None, reason: str) -> tuple[State, str]:
    """How a job ended, and the sentence that says so. code: None when the process could not be killed."""
    if job.done and code is not None and not reason:
        return "finished", ""  # whatever happened after the last event concerns no result
    if job.cancelled and code is not None:
        return "cancelled", f"The {noun} was cancelled."
    last = job.stderr.splitlines()[-1] if job.stderr else ""
    text = f" Its last words: {last}" if last else ""
    if code is None:
        return "failed", f"The process of the {noun} cannot be killed; its device may be stuck.{text}"
    if reason:
        return "failed", f"{reason}{text}"
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        hint = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
        return "failed", f"The process of the {noun} was killed by {name}{hint}.{text}"
    if code:
        return "failed", f"The process of the {noun} ended with exit code {code}.{text}"
    return "failed", f"The process of the {noun} ended before it was done.{text}"


def end_with_parent() -> None:
    """In a thread of the process itself: end it when its standard input closes, as it does when its parent is gone."""
    # Straight from the descriptor: a thread inside sys.stdin would hold its lock and abort a normal exit.
    while os.read(0, 4096):
        pass
    # Nobody reads the results any more: stop in the middle of whatever runs.
    os._exit(3)
