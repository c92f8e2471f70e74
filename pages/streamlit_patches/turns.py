"""Runs of scripts come one after the other, in the order in which they were asked for: each is the sooner done."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

LONGEST_S = 0.1
"""How long the next run waits for one that has begun; then both go on beside each other."""


class Turns:
    """Those who wait for their turn, each for the one before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.last = threading.Event(), threading.Event()
        for event in self.last:
            event.set()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until the previous run has ended, or for a limited time."""
        begun, over = mine = threading.Event(), threading.Event()
        with self._lock:
            (before_begun, before_over), self.last = self.last, mine
        before_begun.wait()
        before_over.wait(LONGEST_S)
        begun.set()
        try:
            yield
        finally:
            over.set()


def patch() -> None:
    """Put this in place, for all sessions."""
    own, line = ScriptRunner._run_script, Turns()

    def in_turn(self: ScriptRunner, rerun_data: RerunData) -> None:
        with line.turn():
            own(self, rerun_data)

    ScriptRunner._run_script = in_turn  # type: ignore[method-assign]
