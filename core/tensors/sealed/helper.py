"""The helper: ``python -m core.tensors.sealed.helper``, a process with torch loaded that forks sealed children.

It keeps one child forked and sealed in advance. For each program it hands the client both ends of that child, and forks
the next one. It never sees a program, or the next children would have it in their memory. It ends with its client.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NoReturn, TypeAlias

from core.limits import limit
from core.tensors.sealed.seal import REPORT, REQUEST, seal
from core.tensors.sealed.wall import MODULES, refusal

if sys.platform != "win32":
    import resource

Emit: TypeAlias = Callable[[dict[str, Any]], None]
Work: TypeAlias = Callable[[str, Emit], None]

UNSEALED, OUT_OF_MEMORY, FAULT = 71, 72, 73
"""Exit codes of a child: it could not be sealed, its memory was used up, or the recorder failed."""

OWN_EVENTS = ("wall", "unsealed", "fault")
"""Kinds of events that the process reports of itself."""

_DESCRIPTORS = 256
"""As many as a helper may have; a child closes all of them."""


@dataclass(frozen=True, slots=True)
class _Child:
    """A forked process. request: where its program is written. report: where its report is read."""

    pid: int
    request: socket.socket
    report: int

    @property
    def has_ended(self) -> bool:
        """Whether it has, not yet waited for."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self) -> int:
        """Kill it, and return its exit code, or minus the signal that ended it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.request.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def work_of(recorder: str) -> Work:
    """Import the module ``recorder`` with all that it needs, and return what a child does with a program."""
    module = importlib.import_module(recorder)
    module.warm_up()
    for name in MODULES:  # a sealed process opens no file, so what programs import has been imported
        importlib.import_module(name)

    def work(source: str, emit: Emit) -> None:
        _, split, program = source.partition(f"{module.SPLIT}\n")  # after what Napkin puts before it
        refused = refusal(program if split else source)
        if refused:
            emit({"event": "wall", **asdict(refused)})
        else:
            module.record(source, emit)

    return work


def run(work: Work, report: int, source: str) -> int:
    """Do the work of a child that has its program, and return its exit code."""
    sys.stdin = sys.stdout = sys.stderr = None  # type: ignore[assignment]  # what nobody reads is not written
    random.seed(0)

    def emit(event: Mapping[str, Any]) -> None:
        line = memoryview(json.dumps(event).encode() + b"\n")
        while line:  # at once, so that what was done before an endless operation is known
            line = line[os.write(report, line) :]

    try:
        work(source, emit)
    except MemoryError:
        return OUT_OF_MEMORY
    except BaseException as problem:  # whatever it is, the process ends here
        with suppress(Exception):
            emit({"event": "fault", "message": f"{type(problem).__name__}: {problem}"[:2_000]})
        return FAULT
    return 0


def fork(work: Work) -> _Child:
    """Fork a sealed child that waits for its program."""
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        _be_child(work, theirs.fileno(), write)
    theirs.close()
    os.close(write)
    return _Child(pid, ours, read)


def _be_child(work: Work, request: int, report: int) -> NoReturn:
    code = FAULT
    try:
        os.dup2(request, REQUEST)
        os.dup2(report, REPORT)
        os.closerange(REPORT + 1, _DESCRIPTORS)
        gc.enable()
        seal()
        source = b"".join(iter(lambda: os.read(REQUEST, 65_536), b""))
        code = run(work, REPORT, source.decode(errors="replace"))
    except Exception as problem:  # whatever it is, there is no seal
        code = UNSEALED
        os.write(REPORT, json.dumps({"event": "unsealed", "message": str(problem)}).encode() + b"\n")
    finally:
        os._exit(code)


def why_unsealed() -> str:
    """Return why children cannot be sealed, empty if they can: one tries what ends a sealed process."""
    child = fork(lambda _source, _emit: socket.socketpair() and None)
    child.request.shutdown(socket.SHUT_WR)
    with os.fdopen(child.report, "rb") as report:
        told = report.read()
    code = child.end()
    if code == -signal.SIGSYS:
        return ""
    with suppress(ValueError, KeyError):
        return str(json.loads(told)["message"])
    return f"a process that opens a connection is not stopped ({code})"


def serve(control: socket.socket, work: Work) -> None:
    """Run programs for the client at the other end of ``control``, until it is gone."""
    why = why_unsealed()
    control.send(json.dumps({"why": why}).encode())
    if why:
        return
    gc.freeze()
    running: dict[socket.socket, tuple[_Child, socket.socket]] = {}  # both ends of a run, each with its run
    spare = fork(work)
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                ready = key.fileobj
                assert isinstance(ready, socket.socket)  # noqa: S101 - nothing else is registered
                if ready is control:
                    _, descriptors, _, _ = socket.recv_fds(control, 16, 1)
                    if not descriptors:  # the client is gone, and what it has asked for is of no use
                        return
                    reply = socket.socket(fileno=descriptors[0])
                    if spare.has_ended:  # the first to go where the machine runs out of memory
                        os.close(spare.report)
                        spare.end()
                        spare = fork(work)
                    with suppress(OSError):  # the client is told nothing, and finds the process ended
                        socket.send_fds(reply, [b"child"], [spare.request.fileno(), spare.report])
                    os.close(spare.report)
                    for end in (spare.request, reply):
                        running[end] = spare, reply
                        selector.register(end, selectors.EVENT_READ)
                    spare = fork(work)
                elif ready in running:  # either the child has ended, or the client wants no more of it
                    child, reply = running[ready]
                    for end in (child.request, reply):
                        selector.unregister(end)
                        del running[end]
                    code = child.end()
                    with suppress(OSError), reply:
                        reply.send(str(code).encode())


def main() -> None:
    """Read the command line, ``DESCRIPTOR RECORDER`` or ``typed RECORDER``, and run."""
    where, recorder = sys.argv[1:]
    work = work_of(recorder)
    if where == "typed":
        run_typed(work)
    else:
        serve(take_descriptor(int(where)), work)


def take_descriptor(number: int) -> socket.socket:
    """Return the inherited socket ``number`` under a low number, and see to it that no descriptor has a high one."""
    low = os.open(os.devnull, os.O_RDWR)
    os.dup2(number, low)
    for other in {number} - {low}:
        os.close(other)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_DESCRIPTORS, most), min(_DESCRIPTORS, most)))
    return socket.socket(fileno=low)


def run_typed(work: Work) -> None:
    """Run one program from the standard input without a seal, with what limits the system has."""
    report = os.dup(sys.stdout.fileno())
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    os.write(report, b"\n")  # ready
    source = sys.stdin.buffer.read().decode(errors="replace")
    with suppress(NameError, OSError, ValueError):  # Windows has no such limits
        seconds = limit("program_cpu_seconds")
        spent = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
        resource.setrlimit(resource.RLIMIT_CPU, (spent + seconds, spent + seconds + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os._exit(run(work, report, source))


if __name__ == "__main__":
    main()
