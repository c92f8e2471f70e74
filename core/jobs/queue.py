"""One line for all on this machine who wait for the same kind of job, in whatever processes: they share a folder.

Who waits has a file there, whose name is a number in the order of coming, and holds a lock on it that the kernel takes
away when the process ends, however it ends. Whoever is first has the turn. The process of the job inherits the lock, so
that one which outlives its server keeps the turn until it has ended too.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from core.messages import message

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the line. lock: a descriptor; as long as it is open, in whatever process, the place is taken."""

    file: Path
    lock: int

    @property
    def number(self) -> int:
        """Those with smaller ones are before it."""
        return int(self.file.name)

    def leave(self) -> None:
        """Give the place up. Once only."""
        with suppress(OSError):  # a file without a lock is no place either
            self.file.unlink()
        os.close(self.lock)


class WaitingLine:
    """The line in ``folder``, which is made when it is first needed. Methods raise ``OSError`` where it cannot be
    read or written, and may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def join(self, most: int) -> Place | None:
        """A place at the end; None where as many as ``most`` stand there already."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._alone():
            taken = self._taken()
            if len(taken) >= most:
                return None
            file = self.folder / str(max(taken, default=0) + 1)
            place = Place(file, os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            _lock(place.lock)
            return place

    def ahead(self, place: Place) -> int:
        """How many are before ``place``; at 0 it has the turn."""
        with self._alone():
            return sum(number < place.number for number in self._taken())

    def trouble(self, problem: OSError) -> str:
        """Return the message on a folder that cannot be used, and log its path."""
        _LOG.warning("The line of those who wait cannot be kept in %s: %s", self.folder, problem)
        return message("jobs.error.folder", reason=str(problem.strerror))

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Nobody else looks at the folder: a file that is not locked yet would be taken for one of the dead."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            _lock(folder)
            yield
        finally:
            os.close(folder)

    def _taken(self) -> list[int]:
        """The numbers of all places; those whose processes have ended are removed."""
        numbers: list[int] = []
        for name in filter(str.isdecimal, os.listdir(self.folder)):
            file = self.folder / name
            try:
                lock = os.open(file, os.O_RDWR)
            except FileNotFoundError:  # left just now
                continue
            try:
                _lock(lock, wait=False)
                file.unlink(missing_ok=True)
            except BlockingIOError:
                numbers.append(int(name))
            finally:
                os.close(lock)
        return numbers


def _lock(descriptor: int, *, wait: bool = True) -> None:
    """Lock what is open for whoever has the descriptor or inherits it; raises ``BlockingIOError`` where another has."""
    try:
        import fcntl
    except ModuleNotFoundError:  # on Windows
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
