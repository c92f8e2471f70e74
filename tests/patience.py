"""How long tests wait for what must come: one limit for all, far beyond what a loaded machine needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 240
"""What has not come after this long never will. Less than a test may take in all, so that the test says what it is."""


def until(met: Callable[[], T], what: str = "it") -> T:
    """What ``met()`` gives once that is true; raises ``AssertionError`` where it never is."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := met()):
        assert time.monotonic() < deadline, f"after {PATIENCE_S} s {what} has not come"
        time.sleep(0.01)
    return found
