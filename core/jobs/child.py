"""A process of one's own: started at the head of a group, read with caps, and ended with all that it has started."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from core.jobs.lines import LineReader, Tail
from core.limits import limit
from core.messages import message

_ROOT = Path(__file__).parents[2]
_TICK_S = 0.1
_KILL_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Command:
    """A process to run. request: its standard input; None for a pipe that stays open until its parent is gone.
    environment: all its variables; None for those of the server."""

    words: Sequence[str]
    request: bytes | None = None
    environment: Mapping[str, str] | None = None


def spawn(command: Command, locks: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own, with pipes. locks: descriptors that it inherits. Raises ``OSError``."""
    with contextlib.ExitStack() as stack:
        stdin: IO[bytes] | int = subprocess.PIPE
        if command.request is not None:  # a file, because a pipe that nobody reads would stop who writes
            stdin = stack.enter_context(tempfile.TemporaryFile())
            stdin.write(command.request)
            stdin.seek(0)
        return subprocess.Popen(  # noqa: S603 - our own command, no shell
            command.words,
            cwd=_ROOT,
            env=command.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=locks,
        )


def read(
    process: subprocess.Popen[bytes], take: Callable[[list[bytes]], None], errors: Tail, over: Callable[[], str]
) -> str:  # fmt: skip
    """Read the output until the process ends. Gives why it has to be stopped, or empty when it ended itself.

    take: called with each batch of lines, without those that were too long to be read. over: why it has had
    its time, empty while it has not.
    """
    assert process.stdout is not None  # noqa: S101 - both were asked for as pipes
    assert process.stderr is not None  # noqa: S101
    reader = LineReader(limit("worker_line_bytes"))
    lines = 0
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            selector.register(pipe, selectors.EVENT_READ)
        while True:
            if why := over():
                return why
            # Once the process has ended, whatever its pipes still hold is read, without waiting for more.
            ended = has_ended(process)
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
                    batch = reader.feed(chunk)
                    lines += len(batch) + reader.oversize - before
                    if lines > limit("worker_lines"):
                        return message("jobs.failed.lines", lines=float(limit("worker_lines")))
                    take(batch)


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process has ended, without reaping it: until then its id, and its group's, cannot be
    reused."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def wait_until_ended(process: subprocess.Popen[bytes]) -> bool:
    """Wait for a killed process; False when it is still there, as one stuck in a driver call can be."""
    deadline = time.monotonic() + _KILL_PATIENCE_S
    while not has_ended(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and everything in its group."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
