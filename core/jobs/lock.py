"""A lock of the whole machine, for jobs of which one at a time may run, in whatever server."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def try_lock(file: Path) -> int | None:
    """Return a descriptor that holds the lock of ``file``; None while another process holds it.

    The kernel takes the lock away once every process that has the descriptor has ended, however it ends. Raises
    ``OSError`` for a file that cannot be made.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
