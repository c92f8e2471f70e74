"""Runs programs in sealed processes, several at once, and collects what each reports until it ends.

A report is text from a stranger's process: whoever reads it checks every value. On Linux a helper forks the
processes. Elsewhere there is no seal, and a process of its own runs what users type on their own computer.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from core.jobs.child import Command, kill, spawn
from core.limits import limit
from core.messages import Message, message, pick_message
from core.tensors.sealed.helper import FAULT, OUT_OF_MEMORY, OWN_EVENTS, UNSEALED

_LOG = logging.getLogger(__name__)

How: TypeAlias = Literal["done", "wall", "time", "memory", "output", "killed", "unavailable"]

RECORDER = "core.tensors.sealed.recorder"
LINUX = sys.platform == "linux"

_START_S = 60.0
_AGAIN_S = 60.0
_PATIENCE_S = 10.0
_PACE_S = 0.002
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
_ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}
"""One thread, no device, and the same order of sets in every run. Nothing of the server's that may be secret."""

WALL_MESSAGES = {
    "name": "sealed.wall.name",
    "private": "sealed.wall.private",
    "import": "sealed.wall.import",
    "near": "sealed.wall.near",
}
"""Kinds of `WallRefusal` → what users read."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. message: why, for users; empty if done. line, column: of what was rejected, or 0."""

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
    """Runs programs in separate processes, up to a maximum at once; the others wait. Methods are thread-safe.

    recorder: module that runs a program in its process. sealed: whether a helper forks sealed processes, as on Linux.
    command: starts Python with a module.
    """

    def __init__(self, recorder: str = RECORDER, *, sealed: bool = LINUX, command: tuple[str, ...] = ()) -> None:
        self._command = command or (sys.executable, "-m", "core.tensors.sealed.helper")
        self._recorder = recorder
        self._starter = _Helper(self._start) if sealed else _Spare(self._start)
        self._slots = threading.BoundedSemaphore(limit("programs_at_once"))

    def _start(self, where: str, *inherited: int) -> subprocess.Popen[bytes]:
        variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return spawn(Command((*self._command, where, self._recorder), None, variables | _ENVIRONMENT), inherited)

    def warm(self) -> str:
        """Start what takes seconds. Return why no program can run, empty if programs can."""
        try:
            return self._starter.warm()
        except OSError as problem:
            return _cannot_seal(problem)

    @property
    def pid(self) -> int:
        """The process that programs come from, 0 before there is one."""
        return self._starter.pid

    def run(self, source: str) -> ProgramReport:
        """Run a program and return its report, at most a few seconds later."""
        text = source.encode(errors="replace")
        if len(text) > limit("program_bytes"):
            most = float(limit("program_bytes"))
            return _refused("wall", message("sealed.ended.long", size=float(len(text)), most=most))
        if not self._slots.acquire(timeout=limit("program_wait_seconds")):
            return _refused("unavailable", message("sealed.ended.busy"))
        try:
            for _ in range(2):  # a helper that died is started anew, once
                with suppress(HelperGoneError):
                    if why := self._starter.warm():
                        return _refused("unavailable", why)
                    return self._follow(self._starter.begin(text))
            return _refused("unavailable", message("sealed.ended.gone"))
        except OSError as problem:
            _LOG.warning("A program could not be run: %s", problem)
            return _refused("unavailable", _cannot_seal(problem))
        finally:
            self._slots.release()

    def close(self) -> None:
        """End all processes. The next run starts them again."""
        self._starter.close()

    def _follow(self, run: _Run) -> ProgramReport:
        late, ended = threading.Event(), threading.Event()

        def watch() -> None:
            if not ended.wait(limit("program_seconds")):
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
        events = _events(bytes(data))
        told = next((event for event in events if event.get("event") in OWN_EVENTS), dict[str, Any]())
        kept = tuple(event for event in events if event.get("event") not in OWN_EVENTS)
        return ProgramReport(kept, _ended(told, code, late=late.is_set(), over=over))


def _refused(how: How, why: str) -> ProgramReport:
    return ProgramReport((), Ended(how, why))


def _cannot_seal(why: object) -> Message:
    return message("sealed.ended.unavailable", why=str(why))


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


def _ended(told: Mapping[str, Any], code: int | None, *, late: bool, over: bool) -> Ended:
    """Return how a program ended. told: the event of the process about itself, which the program may have forged."""
    why = str(told.get("message", ""))[: limit("expression_chars")]
    if over:
        return Ended("output", message("sealed.ended.output"))
    if late:
        return Ended("time", message("sealed.ended.clock", seconds=float(limit("program_seconds"))))
    if code == 0:
        if told.get("event") != "wall" or (kind := str(told.get("kind"))) not in WALL_MESSAGES:
            return Ended("done")
        name, near = (str(told.get(part, ""))[:80] for part in ("name", "near"))
        place = [value if isinstance(value := told.get(part), int) else 0 for part in ("line", "column")]
        return Ended("wall", pick_message(WALL_MESSAGES[kind], name=name, near=near), *place)
    if code == UNSEALED:
        return Ended("unavailable", _cannot_seal(why))
    if code == FAULT:
        _LOG.warning("The recorder failed: %r", why)
    how, said = _ENDS.get(code, ("killed", "sealed.ended.crash"))
    seconds, memory = float(limit("program_cpu_seconds")), float(limit("program_memory"))
    return Ended(how, pick_message(said, code=str(code), seconds=seconds, bytes=memory))


def _number(name: str) -> int:
    """Return the number of a signal; of one that the system lacks none that a process could end with."""
    return int(getattr(signal, name, 1 << 10))


_ENDS: Mapping[int | None, tuple[How, str]] = {
    None: ("killed", "sealed.ended.gone"),
    FAULT: ("killed", "sealed.ended.fault"),
    OUT_OF_MEMORY: ("memory", "sealed.ended.memory"),
    -_number("SIGKILL"): ("memory", "sealed.ended.memory"),
    -_number("SIGXCPU"): ("time", "sealed.ended.cpu"),
    -_number("SIGSYS"): ("killed", "sealed.ended.system"),
}
"""Exit codes → how a program ended, and what is said of it."""


class _Starter(ABC):
    """What programs come from. start: starts a Python process with an argument and inherited descriptors."""

    def __init__(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    @abstractmethod
    def warm(self) -> str:
        """Start what takes seconds. Return why no program can run, or an empty text."""

    @abstractmethod
    def begin(self, source: bytes) -> _Run:
        """Give a program to a process. Raises `HelperGoneError`."""

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
            return _cannot_seal(why) if why else ""
        end_process(self._process, told := bytearray())
        _LOG.warning("The helper does not start: %s", told.decode(errors="replace"))
        return message("sealed.ended.start")

    def begin(self, source: bytes) -> _Run:
        control = self._control
        ours, theirs = socket.socketpair()
        ours.settimeout(_START_S)
        descriptors: list[int] = []
        with theirs, suppress(OSError):
            if control:
                socket.send_fds(control, [b"run"], [theirs.fileno()])
                theirs.close()
                descriptors = socket.recv_fds(ours, 16, 2)[1]
        if not descriptors:
            ours.close()
            with self._lock:
                if self._control is control:  # nobody else has started another
                    self._end()
            raise HelperGoneError
        request, report = descriptors
        with socket.socket(fileno=request) as child, suppress(OSError):  # a child that has died is found to have ended
            child.sendall(source)
            child.shutdown(socket.SHUT_WR)

        def stop() -> None:
            with suppress(OSError):
                ours.shutdown(socket.SHUT_WR)  # which the helper takes for the wish to end it

        def wait() -> int | None:
            with ours, suppress(OSError, ValueError):
                return int(ours.recv(16))
            return None

        return _Run(report, stop, wait)

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
    """Kill a process and its children, wait for it, and close its pipes. errors: receives its error output."""
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


POOL = ProgramPool()
"""The pool of this server, which starts nothing before it is asked to."""

atexit.register(POOL.close)
