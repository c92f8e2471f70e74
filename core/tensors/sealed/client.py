"""Runs programs in sealed processes, several at once, and collects what each reports until it ends.

A report is text from a stranger's process: whoever reads it checks every value. On Linux a helper forks the
processes. Elsewhere there is no seal, and a process of its own runs what users type on their own computer.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from core.jobs.child import Command, kill, spawn
from core.limits import limit
from core.tensors.sealed.helper import FAULT, OUT_OF_MEMORY, UNSEALED

_LOG = logging.getLogger(__name__)

How: TypeAlias = Literal["done", "wall", "time", "memory", "output", "killed", "unavailable"]

RECORDER = "core.tensors.sealed.recorder"
LINUX = sys.platform == "linux"

_START_S = 60.0
_AGAIN_S = 60.0
_PATIENCE_S = 2.0
_PACE_S = 0.002
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
_ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}
"""One thread, no device, and the same order of sets in every run. Nothing of the server's that may be secret."""

_SEALING_FAILED = "Code does not run on this server, because it cannot be isolated: {}."
_NO_SEAL = "Code runs only on Linux here, where it can be isolated."
_GONE = "The process that runs code ended. Try again in a few seconds."
_CRASHED = "The process crashed ({})."
_NOT_ALLOWED = "Stopped: it asked the system for a connection, another process, or a thread. None of them exist here."


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. message: why, for users; empty if done. line, column: of what was refused, or 0."""

    how: How
    message: str = ""
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """What a program's process reported, one dictionary of JSON values for each event. Nothing in it is checked."""

    events: tuple[dict[str, Any], ...]
    ended: Ended


class HelperGoneError(Exception):
    """The helper ended before it took the program."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A program's process. report: descriptor of what it reports. stop: kills it. wait: returns its exit code, or
    minus the signal that ended it; None if nobody knows."""

    report: int
    stop: Callable[[], None]
    wait: Callable[[], int | None]


class ProgramPool:
    """Runs programs in processes of their own, as many at once as may; the others wait. Methods are thread-safe.

    recorder: the module that runs a program in its process. sealed: whether a helper forks sealed processes, as on
    Linux. command: starts Python with a module.
    """

    def __init__(self, recorder: str = RECORDER, *, sealed: bool = LINUX, command: tuple[str, ...] = ()) -> None:
        self._command = (*(command or (sys.executable, "-m", "core.tensors.sealed.helper")),)
        self._recorder = recorder
        self._starter = _Helper(self._start) if sealed else _Spare(self._start)
        self._slots = threading.BoundedSemaphore(limit("programs_at_once"))
        self._waiting = 0

    def _start(self, where: str, *inherited: int) -> subprocess.Popen[bytes]:
        variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return spawn(Command((*self._command, where, self._recorder), None, variables | _ENVIRONMENT), inherited)

    def warm(self) -> str:
        """Start what takes seconds. Return why no program can run, empty if programs can."""
        try:
            return self._starter.warm()
        except (OSError, HelperGoneError) as problem:
            return str(problem)

    @property
    def pid(self) -> int:
        """The process that programs come from, 0 before there is one."""
        return self._starter.pid

    def run(self, source: str) -> ProgramReport:
        """Run a program and return its report, at most a few seconds later."""
        text = source.encode(errors="replace")
        if len(text) > limit("program_bytes"):
            return _refused("wall", f"The program has {len(text):,} bytes; at most {limit('program_bytes'):,} run.")
        if self._waiting >= limit("programs_waiting") or not self._take_slot():
            return _refused("unavailable", "Too many programs are running. Try again in a few seconds.")
        try:
            for _ in range(2):  # a helper that died is started anew, once
                with suppress(HelperGoneError):
                    if why := self._starter.warm():
                        return _refused("unavailable", why)
                    return self._follow(self._starter.begin(text))
            return _refused("unavailable", _GONE)
        except OSError as problem:
            _LOG.warning("A program could not be run: %s", problem)
            return _refused("unavailable", _SEALING_FAILED.format(problem.strerror or problem))
        finally:
            self._slots.release()

    def close(self) -> None:
        """End all processes. The next run starts them again."""
        self._starter.close()

    def _take_slot(self) -> bool:
        self._waiting += 1
        try:
            return self._slots.acquire(timeout=limit("program_wait_seconds"))
        finally:
            self._waiting -= 1

    def _follow(self, run: _Run) -> ProgramReport:
        late, ended = threading.Event(), threading.Event()

        def watch() -> None:
            if not ended.wait(limit("program_milliseconds") / 1000):
                late.set()
                run.stop()
                if not ended.wait(_PATIENCE_S):
                    self.close()  # kills the helper, and the kernel kills its children

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        data, lines, over = bytearray(), 0, False
        try:
            while not over and (chunk := os.read(run.report, 1 << 20)):
                data += chunk
                lines += chunk.count(b"\n")
                over = len(data) > limit("program_report_bytes") or lines > limit("program_events")
                time.sleep(_PACE_S)  # reading each event as it comes would cost the server more than the program
            if over:
                run.stop()
            code = run.wait()
        finally:
            ended.set()
            os.close(run.report)
            watcher.join()
        return _concluded(_events(bytes(data)), code, late=late.is_set(), over=over)


def _refused(how: How, message: str) -> ProgramReport:
    return ProgramReport((), Ended(how, message))


def _events(data: bytes) -> list[dict[str, Any]]:
    """Read the lines of a report, without those that are no objects or would take much more memory than text."""
    found: list[dict[str, Any]] = []
    left = limit("program_report_values")
    for line in data.split(b"\n", limit("program_events"))[: limit("program_events")]:
        left -= line.count(b"{") + line.count(b"[")
        if left < 0:
            break
        with suppress(ValueError, RecursionError):
            event: Any = json.loads(line) if line else None
            if isinstance(event, dict):
                found.append(cast("dict[str, Any]", event))
    return found


def _concluded(events: list[dict[str, Any]], code: int | None, *, late: bool, over: bool) -> ProgramReport:
    own = {"wall", "unsealed", "fault"}
    told = next((event for event in events if event.get("event") in own), dict[str, Any]())
    kept = tuple(event for event in events if event.get("event") not in own)
    return ProgramReport(kept, _ended(told, code, late=late, over=over))


def _ended(told: Mapping[str, Any], code: int | None, *, late: bool, over: bool) -> Ended:
    seconds = limit("program_milliseconds") / 1000
    message = str(told.get("message", ""))[: limit("expression_chars")]
    if over:
        return Ended("output", "Stopped: too many results.")
    if late or code == -_number("SIGXCPU"):
        return Ended("time", f"Stopped after {seconds:g} seconds.")
    if code is None:
        return Ended("killed", _GONE)
    if code == UNSEALED:
        return Ended("unavailable", _SEALING_FAILED.format(message))
    if code == OUT_OF_MEMORY or code == -_number("SIGKILL"):
        return Ended("memory", f"Stopped: the program has {limit('program_memory') >> 20} MiB of memory.")
    if code == -_number("SIGSYS"):
        return Ended("killed", _NOT_ALLOWED)
    if code == FAULT:
        _LOG.warning("The recorder failed: %s", message)
        return Ended("killed", "Napkin could not follow this program.")
    if code:
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Ended("killed", _CRASHED.format(name))
    if told.get("event") == "wall":
        return Ended("wall", message, *(_whole(told.get(name)) for name in ("line", "column")))
    return Ended("done")


def _number(name: str) -> int:
    """The number of a signal; of one that the system lacks none that a process could end with."""
    return int(getattr(signal, name, 1 << 10))


def _whole(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < limit("program_bytes") else 0


class _Starter:
    """What programs come from. start: starts a Python process with an argument and inherited descriptors."""

    def __init__(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def warm(self) -> str:
        raise NotImplementedError

    def begin(self, source: bytes) -> _Run:
        raise NotImplementedError

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._process:
            end_process(self._process)
            self._process = None


class _Helper(_Starter):
    """The process that forks sealed children, and the socket to it."""

    _control: socket.socket | None = None
    _why = ""
    _again = 0.0

    def warm(self) -> str:
        with self._lock:
            if self._why and time.monotonic() < self._again:
                return self._why
            if self._control is None or self._process is None or self._process.poll() is not None:
                self._end()
                self._why = self._begin()
                if self._why:
                    self._end()
                    self._again = time.monotonic() + _AGAIN_S
            return self._why

    def _begin(self) -> str:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process, self._control = self._start(str(theirs.fileno()), theirs.fileno()), ours
        ours.settimeout(_START_S)
        with suppress(OSError, ValueError, KeyError):
            why = str(json.loads(ours.recv(4_096))["why"])
            ours.settimeout(None)
            return _SEALING_FAILED.format(why) if why else ""
        end_process(self._process, told := bytearray())
        _LOG.warning("The helper does not start: %s", told.decode(errors="replace"))
        return _SEALING_FAILED.format("the process that runs it does not start")

    def begin(self, source: bytes) -> _Run:
        control = self._control
        ours, theirs = socket.socketpair()
        ours.settimeout(_START_S)
        descriptors: list[int] = []
        with theirs, suppress(OSError):
            if control:
                socket.send_fds(control, [source], [theirs.fileno()])
                theirs.close()
                descriptors = socket.recv_fds(ours, 16, 1)[1]
        if not descriptors:
            ours.close()
            with self._lock:
                if self._control is control:  # nobody else has started another
                    self._end()
            raise HelperGoneError

        def stop() -> None:
            with suppress(OSError):
                ours.shutdown(socket.SHUT_WR)  # which the helper takes for the wish to end it

        def wait() -> int | None:
            with ours, suppress(OSError, ValueError):
                return int(ours.recv(16))
            return None

        return _Run(descriptors[0], stop, wait)

    def _end(self) -> None:
        super()._end()
        if self._control:
            self._control.close()
            self._control = None


class _Spare(_Starter):
    """A process started in advance that has torch loaded and waits for one program, which it runs without a seal."""

    def warm(self) -> str:
        with self._lock:
            if self._process is None:
                self._process = self._start("typed")
        return ""

    def begin(self, source: bytes) -> _Run:
        with self._lock:
            process, self._process = self._process or self._start("typed"), self._start("typed")
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - asked for as pipes
        if process.stdout.read(1) != b"\n":
            end_process(process)
            raise HelperGoneError
        with suppress(OSError), process.stdin:
            process.stdin.write(source)

        def wait() -> int | None:
            code = process.wait()
            end_process(process)
            return code

        return _Run(os.dup(process.stdout.fileno()), lambda: end_process(process), wait)


def end_process(process: subprocess.Popen[bytes], errors: bytearray | None = None) -> None:
    """Kill a process with all that it started, wait for it, and close its pipes. errors: takes what it complained."""
    if sys.platform == "win32":
        process.kill()
    else:
        kill(process)
    process.wait()
    if errors is not None and process.stderr:
        errors += process.stderr.read()[-limit("worker_stderr_bytes") :]
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            with suppress(OSError):
                pipe.close()


_POOL: list[ProgramPool] = []
_POOL_LOCK = threading.Lock()


def program_pool() -> ProgramPool:
    """Return the pool of this server."""
    with _POOL_LOCK:
        if not _POOL:
            _POOL.append(ProgramPool())
        return _POOL[0]


def run_sealed(source: str, *, typed_here: bool = False) -> ProgramReport:
    """Run a program in the pool of this server.

    Args:
        source: Python code.
        typed_here: Whether the user typed it in a browser on the computer that runs it. Without a seal, as on macOS
            and Windows, nothing else runs.
    """
    if not LINUX and not typed_here:
        return _refused("unavailable", _NO_SEAL)
    return program_pool().run(source)
