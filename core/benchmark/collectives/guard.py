"""What ends a rank that would otherwise wait for ever: a signal, or a step that takes longer than it may.

A rank that waits inside a library for another that is gone comes back to no Python line, so neither an exception nor
Python's own handling of signals reaches it. A thread of its own waits for both and ends the process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from core.units import format_duration

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_S = 0.2

START_S = 300.0
"""What loading libraries and meeting the other ranks may take at least; a shared disk is slow when all nodes read."""


class Guard:
    """Watches the steps of one rank. keep: called once with why it ended, before the process is gone.

    Made before any other thread is, so that all of them leave the signals to it.
    """

    def __init__(self, name: str, timeout_s: float, keep: Callable[[str], None]) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._keep = keep
        self._ending = threading.Lock()
        self._what = "starting"
        self._allowed_s = max(timeout_s, START_S)
        self._since = time.monotonic()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        threading.Thread(target=self._watch, daemon=True).start()

    def step(self, what: str) -> None:
        """A step begins, and the one before it has ended."""
        self._since = time.monotonic()
        self._what, self._allowed_s = what, self._timeout_s

    def end(self, why: str) -> NoReturn:
        """Keep what there is, say why, and end the process, whatever its other threads wait for."""
        self._ending.acquire()  # never given back: the first reason counts
        text = f"{self._name} ended during “{self._what}”: {why}"
        try:
            self._keep(text)
        finally:
            print(text, file=sys.stderr, flush=True)
            os._exit(1)

    def _watch(self) -> None:
        while True:
            text = signal.sigtimedwait(_SIGNALS, _LOOK_S)
            if text is not None:
                name = signal.Signals(text.si_signo).name
                self.end(f"it was told to stop ({name}), as it is when another rank has ended")
            allowed = self._allowed_s
            if time.monotonic() - self._since > allowed:
                waited = format_duration(allowed, 2)
                self.end(f"nothing came of it within {waited}; another rank may have ended or hang")
