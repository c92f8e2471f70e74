"""Reruns of many visitors take turns.

One interpreter runs one thread at a time. Scripts that share it end together, late; one after the other, most of them
end early, and the thread that sends what they drew contends with one of them and not with all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_S = 0.25
"""A rerun that has waited this long starts all the same: whoever has the turn may be at something slow."""

SWITCH_S = 0.001
"""How long a thread may hold the interpreter while another waits for it; Python's own 5 ms is a third of a rerun."""

_one = threading.Semaphore()  # wakes who has waited longest


@contextmanager
def turn() -> Iterator[None]:
    """Wait for the turn, and hold it."""
    mine = _one.acquire(timeout=PATIENCE_S)
    try:
        yield
    finally:
        if mine:
            _one.release()
