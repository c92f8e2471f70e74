"""A gate for searches that try many layouts: few run at once, so that others' short ones stay fast."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import BoundedSemaphore

from core.limits import limit

WAITING: ContextVar[Callable[[], AbstractContextManager[object]]] = ContextVar("WAITING", default=nullcontext)
"""What is shown while a search waits, as a context. Pages set it."""

_PLACES = BoundedSemaphore(limit("searches_at_once"))
_INSIDE: ContextVar[bool] = ContextVar("_INSIDE", default=False)
_PATIENCE_S = 0.2
"""Seconds after which a search that waits looks whether its thread is to stop."""


@contextmanager
def turn(tried: int) -> Generator[None]:
    """Wait for a place where so many layouts are tried that the search is a heavy one; one inside another has its."""
    if _INSIDE.get() or tried <= limit("light_search"):
        yield
        return
    held, inside = False, _INSIDE.set(True)
    try:
        held = _PLACES.acquire(blocking=False)
        if not held:
            with WAITING.get()():
                while not held:
                    held = _PLACES.acquire(timeout=_PATIENCE_S)
        yield
    finally:
        _INSIDE.reset(inside)
        if held:
            _PLACES.release()
