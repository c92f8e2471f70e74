"""Room for another visitor: file descriptors, which run out before memory or cores do.

A visitor's session holds four descriptors, and a browser opens up to six connections beside its websocket. Three stay
for the two minutes in which a visitor whose connection broke may come back. A server without any left cannot even
accept the connection that asks for its health; so it says that it is full, and turns visitors away, while it still
has some.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime

from core.messages import message

try:
    import resource
except ModuleNotFoundError:  # Windows, which has no such limit
    resource = None

LOG = logging.getLogger(__name__)

HEALTH = "/_stcore/health"

SPARE = 64
"""Descriptors that must be free for a visitor to be let in: ten for the visitor, the rest for what arrives at once
(asyncio accepts all that wait before it serves the first), for a job of Measure, and for asking after health."""

LET_GO_EVERY_S = 20.0


def raise_limit() -> int | None:
    """Raise this process's soft limit of descriptors to the hard limit, and return it; ``None`` without limits."""
    if resource is None:
        return None
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS calls the hard limit infinite and refuses it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def has_capacity(descriptors: int = SPARE) -> bool:
    """Return whether this many descriptors can be had, found by taking and returning them: no limit is overlooked."""
    taken: list[int] = []
    try:
        taken.append(os.open(os.devnull, os.O_RDONLY))
        while len(taken) < descriptors:
            taken.append(os.dup(taken[0]))
    except OSError:
        return False
    finally:
        for descriptor in taken:
            os.close(descriptor)
    return True


async def clean_up_sessions() -> None:
    """Let go of what the gone have left, again and again."""
    while True:
        await asyncio.sleep(LET_GO_EVERY_S)
        try:
            close_expired_sessions()
        except Exception:  # of a Streamlit that keeps its sessions elsewhere: then they go when it lets them
            LOG.exception("Sessions whose visitors left could not be closed")


def close_expired_sessions() -> int:
    """Close the sessions whose users did not come back in time, and give their number.

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


class Admission:
    """ASGI middleware that serves every user while there is room; else it answers 503, to the health check as well.

    Only who asks for something new is turned away: sessions that are connected stay, and keep what they have.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through to the app, or turn it away."""
        asks = scope["type"] == "websocket" or (scope["type"] == "http" and scope["path"].endswith(HEALTH))
        if scope["type"] == "lifespan" or has_capacity(SPARE if asks else SPARE // 2):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1013})  # try again later
        else:
            full = PlainTextResponse(message("server.full"), 503)
            full.headers["Connection"] = "close"  # a connection kept open would hold one of the last
            full.headers["Cache-Control"] = "no-store"
            await full(scope, receive, send)
