"""A run of a page that takes too long is ended from outside, whatever it is at; `pages.common.guard` says so."""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from streamlit import runtime
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner.exec_code import exec_func_with_error_handling

from core.limits import limit
from pages.streamlit_patches import OverdueError

LOG = logging.getLogger(__name__)

BUSY_S = 1.0
"""A run that has worked for less than this in all its time only waits, which costs nobody anything."""

AGAIN_S = 5.0
"""What has not ended after this long, because something swallowed the exception, is ended once more."""


class Watch:
    """The runs under way: of each thread, whose its run is, when it began and how long the thread had worked before.

    A run is overdue sooner when its user has left.

    `OverdueError` is raised between any two steps of Python. On its way out it releases locks and rolls back
    transactions as every exception does. A save that it strikes is not confirmed; a change that it leaves half done is
    of this user's session alone. What remains is the moment between taking a lock and being inside its ``with``, which
    is far less likely than that a server is slow until a user restarts it. A long step outside Python ends first.
    """

    def __init__(self, is_here: Callable[[str], bool]) -> None:
        self._is_here, self._lock = is_here, threading.Lock()
        self._runs = dict[threading.Thread, tuple[str, float, float]]()

    def begin(self, session: str) -> None:
        """Note that a run begins in this thread."""
        with self._lock:
            self._runs[threading.current_thread()] = session, time.monotonic(), time.thread_time()

    def end(self) -> None:
        """Note that the run has ended, and drop an error that would otherwise end the next one."""
        with self._lock:
            self._runs.pop(threading.current_thread(), None)
            _raise_in(threading.current_thread(), None)

    def look(self) -> None:
        """End the runs that are overdue."""
        with self._lock:  # none of them leaves meanwhile
            for thread, (session, begun, before) in self._runs.items():
                most = limit("run_seconds") if self._is_here(session) else limit("left_run_seconds")
                if time.monotonic() > begun + most and thread.is_alive() and _worked(thread) > before + BUSY_S:
                    frame = sys._current_frames()[thread.ident or 0]
                    LOG.warning("A run took too long, stopped at %s:%d", frame.f_code.co_filename, frame.f_lineno)
                    self._runs[thread] = session, time.monotonic() + AGAIN_S - most, before
                    _raise_in(thread, OverdueError)


def _worked(thread: threading.Thread) -> float:
    """Return the seconds of processor time of a thread that lives; infinite if the system does not tell."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return float("inf")
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))


def _raise_in(thread: threading.Thread, problem: type[BaseException] | None) -> None:
    wanted = None if problem is None else ctypes.py_object(problem)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), wanted)


def patch() -> None:
    """Put this in place, for all sessions."""
    watch = Watch(lambda session: runtime.get_instance().is_active_session(session))

    def in_time(func: Callable[[], Any], ctx: Any) -> tuple[Any, ...]:
        try:
            watch.begin(ctx.session_id)
            try:
                return exec_func_with_error_handling(func, ctx)
            finally:
                watch.end()
        except OverdueError:  # it came when the script was at its end
            watch.end()
            return None, True, None, True, None

    def look() -> None:
        while True:
            time.sleep(1)
            watch.look()

    script_runner.exec_func_with_error_handling = in_time  # type: ignore[assignment]
    threading.Thread(target=look, name="overdue", daemon=True).start()
