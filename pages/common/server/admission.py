"""File descriptors, which run out before memory or cores do.

A visitor's session holds four descriptors, and a browser opens up to six connections beside its websocket. Three stay
for the two minutes in which a visitor whose connection broke may come back.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging

from streamlit import runtime

try:
    import resource
except ModuleNotFoundError:  # Windows, which has no such limit
    resource = None

LOG = logging.getLogger(__name__)

LET_GO_EVERY_S = 20.0


def raise_limit() -> int | None:
    """Raise this process's soft limit of descriptors to its hard one, and give it; ``None`` where there is none."""
    if resource is None:
        return None
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS calls the hard limit infinite and refuses it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


async def clean_up_sessions() -> None:
    """Let go of what the gone have left, again and again."""
    while True:
        await asyncio.sleep(LET_GO_EVERY_S)
        try:
            close_expired_sessions()
        except Exception:  # of a Streamlit that keeps its sessions elsewhere: then they go when it lets them
            LOG.exception("Sessions whose visitors left could not be closed")


def close_expired_sessions() -> int:
    """Close the sessions whose visitors did not come back in time, and give their number.

    Streamlit 1.67 notices that a session's time is over when the next one leaves, which may be never, and leaves its
    descriptors to the garbage collector, which without a collection after every rerun may take its time.
    """
    left = runtime.get_instance()._session_mgr._session_storage._cache  # type: ignore[attr-defined]
    gone = left.expire()
    for _, info in gone:
        info.session.shutdown()
    if gone or len(left) >= left.maxsize:  # a full store has dropped the oldest to make room
        gc.collect()
    return len(gone)
