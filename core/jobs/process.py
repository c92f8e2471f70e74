"""One job per process, one process at a time: start it, watch it, cancel it; what it has found is never lost.

The runner is shared by every session of a server. Sessions see frozen snapshots and address a job by its id, so a
second browser watches the same job and may cancel it. Who comes while a job runs waits in line. Where one job at a time
may run on the machine (`core.jobs.lock`), it begins when that of another server has ended. A job's process leads a
process group of its own, which is killed as a whole on cancel, on timeout, and when the job has ended.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar
from uuid import uuid4

from core.jobs import child
from core.jobs.child import Command
from core.jobs.lines import Tail
from core.jobs.lock import try_lock
from core.limits import limit
from core.messages import message, pick_message

LOG = logging.getLogger(__name__)

State: TypeAlias = Literal["queued", "running", "finished", "cancelled", "failed"]

Spec = TypeVar("Spec")
Snapshot = TypeVar("Snapshot")

TURN_S = 0.25
"""How often a job that waits for one of another server looks whether that has ended."""


class NotStartedError(Exception):
    """Nothing was started, and nothing waits. The message says why, and what helps."""


@dataclass
class Job(Generic[Spec, Snapshot]):
    """Mutable state of a job, which may only be touched under the runner's lock.

    spec: the request. who: the user who made it. place: place in the queue, 1 for the next; 0 if it is not in the
    queue. lock: descriptor of the machine's lock, or None. begun: whether a thread follows the process. started: start
    in seconds since the epoch; for a queued job, the time of the request. message: reason why it failed or was
    cancelled, else empty. done: whether the process has reported its end.
    """

    spec: Spec
    who: str = ""
    place: int = 0
    lock: int | None = None
    begun: bool = False
    started: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.monotonic)
    process: subprocess.Popen[bytes] | None = None
    id: str = field(default_factory=lambda: uuid4().hex[:12])
    state: State = "queued"
    elapsed_s: float = 0.0
    message: str = ""
    stderr: str = ""
    done: bool = False
    cancelled: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds(self) -> float:
        """How long it has been running, or took; 0 in the queue."""
        return time.monotonic() - self.clock if self.state == "running" else self.elapsed_s

    @property
    def open(self) -> bool:
        """Whether the job is running or queued."""
        return self.state in ("queued", "running")

    @property
    @abstractmethod
    def found(self) -> bool:
        """Whether it has results."""

    @abstractmethod
    def take(self, line: bytes) -> None:
        """Apply one line of the process's output."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Return the job's state as of now."""

    def unlock(self) -> None:
        """Give up the lock of the machine."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def close(self, state: State, message: str) -> None:
        """End it without a process: it was cancelled in the queue, or could not begin."""
        self.state, self.place, self.message = state, 0, message
        self.unlock()
        self.ended.set()


class ProcessRunner(Generic[Spec, Snapshot]):
    """Runs one job at a time, the others in the order in which they came. All methods may be called from any thread;
    none waits for a job to finish.

    command: the process to run for what is asked. job: the job that takes its output. timeout_s: the most it may take.
    noun: what a job is called in sentences. listener: told of a job when it begins, after each batch of lines, and at
    its end, in order and outside the lock; what it raises is logged once and harms no job. lock: a file of all servers
    whose jobs run one at a time. kept: ended jobs that can still be looked up.

    A user has one job, running or in the queue; pressing again finds it. The next one joins the end of the line.
    """

    def __init__(
        self,
        command: Callable[[Spec], Sequence[str] | Command],
        job: Callable[[Spec], Job[Spec, Snapshot]],
        timeout_s: float,
        noun: str,
        listener: Callable[[Snapshot], None] | None = None,
        lock: Path | None = None,
        kept: int = limit("jobs_kept"),
    ) -> None:
        self._command = command
        self._job = job
        self._timeout_s = timeout_s
        self._noun = noun
        self._listener = listener
        self._machine = lock
        self._patience_s = timeout_s * (limit("build_queue") + 1)
        self._kept = kept
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job[Spec, Snapshot]] = OrderedDict()
        """In the order in which they began; then those in line."""
        self._complained = False

    def start(self, spec: Spec, who: str = "") -> tuple[Snapshot, bool]:
        """Start a job, queue it, or find the user's current one. Return its snapshot, and whether it is new.

        Raises `NotStartedError` if the queue is full.
        """
        with self._lock:
            own = next((job for job in self._jobs.values() if job.open and job.who == who), None)
            if own is not None:
                return own.snapshot(), False
            if any(job.open for job in self._jobs.values()) and len(self._line()) >= limit("job_queue"):
                most = float(limit("job_queue"))
                raise NotStartedError(message("jobs.error.queue", jobs=most, noun=self._noun))
            job = self._job(spec)
            job.who = who
            self._add(job)
            seen = job.snapshot()
        if job.ended.is_set():
            self._tell(seen)
        return seen, True

    def cancel(self, job_id: str, wait_s: float = 2.0) -> bool:
        """Stop a running job and keep its results, or remove one from the queue. False if there is no such job, or it
        has ended.

        Waits up to ``wait_s`` seconds for the process to end, so that the cancelled job is shown next.
        """
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or not job.open:
                return False
            job.cancelled = True
            if job.process is None:
                job.close("cancelled", message("jobs.cancelled_waiting", noun=self._noun))
                self._number()
                return True
            # Safe: the process is reaped under this lock only, after which the state is no longer running.
            child.kill(job.process)
        job.ended.wait(wait_s)
        return True

    # ------------------------------------------------------------------------------------------ looking

    def poll(self, job_id: str) -> Snapshot | None:
        """Return the job ``job_id`` now; None when it is unknown or long forgotten."""
        with self._lock:
            job = self._jobs.get(job_id)
            return job.snapshot() if job else None

    def latest(self) -> Snapshot | None:
        """Return the job that began last, running or ended; None before the first."""
        with self._lock:
            return self._newest(lambda job: job.process is not None or job.state == "failed")

    def latest_with_results(self) -> Snapshot | None:
        """Return the latest job that found something, so that a failure does not hide what was there before."""
        with self._lock:
            return self._newest(lambda job: job.found)

    def own(self, who: str) -> Snapshot | None:
        """Return the user's last job, queued, running, or ended; None if there is none or it is no longer kept."""
        with self._lock:
            return self._newest(lambda job: job.who == who)

    def line(self) -> tuple[Snapshot, ...]:
        """Return the jobs in the queue, the next one first."""
        with self._lock:
            return tuple(job.snapshot() for job in self._line())

    # ------------------------------------------------------------------------------------------ under the lock

    def _newest(self, wanted: Callable[[Job[Spec, Snapshot]], bool]) -> Snapshot | None:
        job = next((job for job in reversed(self._jobs.values()) if wanted(job)), None)
        return job.snapshot() if job else None

    def _line(self) -> list[Job[Spec, Snapshot]]:
        return [job for job in self._jobs.values() if job.state == "queued" and not job.begun]

    def _add(self, job: Job[Spec, Snapshot]) -> None:
        """Begin a new job, or put it in the queue; one that has ended already is only remembered."""
        busy = any(other.open for other in self._jobs.values())
        self._jobs[job.id] = job
        self._forget()
        if busy:
            self._number()
        elif job.open:
            self._begin(job)

    def _number(self) -> None:
        for place, job in enumerate(self._line(), 1):
            job.place = place

    def _forget(self) -> None:
        """Drop the oldest jobs, those first that never began; but never one that is open, nor the newest that has
        results."""
        keep = next((job.id for job in reversed(self._jobs.values()) if job.found), None)
        old = [job for job in self._jobs.values() if not job.open and job.id != keep]
        old.sort(key=lambda job: job.process is not None)
        number = self._kept - (keep is not None)
        for job in old[: max(len(old) - number, 0)]:
            del self._jobs[job.id]

    def _begin(self, job: Job[Spec, Snapshot]) -> None:
        """Start a job's process, now or when its turn comes, and a thread that follows it."""
        job.begun, job.place = True, 0
        if self._machine is not None:
            threading.Thread(target=self._follow_in_turn, args=(job, self._machine), daemon=True).start()
        elif process := self._spawn(job):
            threading.Thread(target=self._follow, args=(job, process), daemon=True).start()

    def _spawn(self, job: Job[Spec, Snapshot]) -> subprocess.Popen[bytes] | None:
        """Start a job's process; None if there is none, which the job then says."""
        job.started, job.clock = time.time(), time.monotonic()
        command = self._command(job.spec)
        locks = () if job.lock is None else (job.lock,)
        try:
            job.process = child.spawn(command if isinstance(command, Command) else Command(command), locks)
        except OSError as problem:
            job.close("failed", message("jobs.failed.start", noun=self._noun, problem=str(problem)))
            return None
        job.state = "running"
        return job.process

    def _next(self) -> list[Snapshot]:
        """Begin the next job in the queue that can be begun, unless one is begun; gives those that could not."""
        failed: list[Snapshot] = []
        if any(job.open and job.begun for job in self._jobs.values()):
            return failed
        for job in self._line():
            self._begin(job)
            if job.open:
                break
            failed.append(job.snapshot())
        self._number()
        return failed

    # ------------------------------------------------------------------------------------------ in a thread of its own

    def _follow_in_turn(self, job: Job[Spec, Snapshot], file: Path) -> None:
        """Wait for the lock of the machine, and follow a job then; where it never comes, begin the next one. A lock
        that cannot be made keeps no job from running."""
        until, why = time.monotonic() + self._patience_s, ""
        while job.open and not why:
            try:
                lock = try_lock(file)
            except OSError as problem:
                LOG.warning("The lock of the machine cannot be made: %s", problem)
                break
            with self._lock:
                job.lock = lock
            if lock is not None:
                break
            if time.monotonic() > until:
                why = message("jobs.failed.waiting", noun=self._noun, waited=self._patience_s)
            time.sleep(TURN_S)
        with self._lock:
            if why and job.open:
                job.close("failed", why)
            process = self._spawn(job) if job.open else None
            if not process:
                job.unlock()
            over = [] if process else [job.snapshot(), *self._next()]
        if process:
            self._follow(job, process)
        for snapshot in over:
            self._tell(snapshot)

    def _follow(self, job: Job[Spec, Snapshot], process: subprocess.Popen[bytes]) -> None:
        """Read the process to its end, and begin the next one in the queue."""
        errors = Tail(limit("worker_stderr_bytes"))
        reason = ""

        def take(lines: list[bytes]) -> None:
            with self._lock:
                for line in lines:
                    job.take(line)
                seen = job.snapshot()
            if lines:
                self._tell(seen)

        def over() -> str:
            late = time.monotonic() - job.clock > self._timeout_s
            return message("jobs.failed.time", noun=self._noun, most=self._timeout_s) if late else ""

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
                job.unlock()
                snapshots = [job.snapshot(), *self._next()]
            job.ended.set()
            for seen in snapshots:
                self._tell(seen)

    def _seen(self, job: Job[Spec, Snapshot]) -> Snapshot:
        with self._lock:
            return job.snapshot()

    def _tell(self, seen: Snapshot) -> None:
        if self._listener is None:
            return
        try:
            self._listener(seen)
        except Exception:
            if not self._complained:
                self._complained = True
                LOG.exception("Who listens to a %s failed; the %s goes on", self._noun, self._noun)


_SIGNALS: Mapping[int, str] = {signal.SIGKILL: "jobs.failed.memory", signal.SIGXCPU: "jobs.failed.processor"}


def _verdict(job: Job[Spec, Snapshot], noun: str, code: int | None, reason: str) -> tuple[State, str]:
    """Return how a job ended, and the message on it. code: None if the process could not be killed."""
    if job.done and code is not None and not reason:
        return "finished", ""  # whatever happened after the last event concerns no result
    if job.cancelled and code is not None:
        return "cancelled", message("jobs.cancelled", noun=noun)
    if code is None:
        failure = message("jobs.failed.stuck", noun=noun)
    elif code < 0 and not reason:
        failure = pick_message(_SIGNALS.get(-code, "jobs.failed.signal"), noun=noun, code=-float(code))
    else:
        failure = pick_message("jobs.failed.code" if code else "jobs.failed.early", noun=noun, code=float(code))
    failure = reason or failure
    lines = job.stderr.splitlines()
    return "failed", message("jobs.failed.output", failure=failure, line=lines[-1]) if lines else failure


def end_with_parent() -> None:
    """End this process when its standard input closes, as it does when its parent has ended. Runs in a thread."""
    # Straight from the descriptor: a thread inside sys.stdin would hold its lock and abort a normal exit.
    while os.read(0, 4096):
        pass
    # Nobody reads the results any more: stop in the middle of whatever runs.
    os._exit(3)
