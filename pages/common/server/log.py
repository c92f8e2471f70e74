"""A log that a fault which comes back with every visitor cannot fill: one record of a kind in a while, with a count."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType

from core.limits import limit

_VARIES = re.compile(r"0x[0-9a-fA-F]+|\d+")
"""What differs between two records of a kind whose text was put together before it was logged."""


class OncePer(logging.Filter):
    """Lets a record through, and others of its kind at most once per ``seconds``, telling how many it held back.

    A kind: logger, message before its arguments are filled in (numbers in it aside), type of the exception, and the
    line that raised it. Give every logger or handler a filter of its own: asked twice about one record, it would take
    the second time for a repetition. clock: seconds that never go back.
    """

    def __init__(self, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[str, ...], tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log ``record``. If others were suppressed since the last one, its message says how many."""
        kind = _kind(record)
        with self._lock:
            now = self._clock()
            last, number = self._seen.get(kind, (None, 0))
            passes = last is None or now - last >= self._seconds
            self._seen[kind] = (now, 0) if last is None or passes else (last, number + 1)
            self._seen.move_to_end(kind)
            if len(self._seen) > limit("faults_kept"):  # the kind seen longest ago counts as new when it comes back
                self._seen.popitem(last=False)
        if passes and number:
            record.msg = f"{record.getMessage()} ({number} more like it in the {now - (last or now):.0f} s before)"
            record.args = ()
        return passes


def _kind(record: logging.LogRecord) -> tuple[str, ...]:
    raised, _, trace = record.exc_info or (None, None, None)
    message = _VARIES.sub("#", str(record.msg)[:400])
    return record.name, message, raised.__qualname__ if raised else "", _place(trace)


def _place(trace: TracebackType | None) -> str:
    """Return file and line that raised, where there is a traceback."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
