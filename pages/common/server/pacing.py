"""A pace for each connection: what one browser sends never keeps the event loop, and so everybody else, waiting."""

from __future__ import annotations

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.limits import limit

LONG = 100_000
"""Bytes that count as one more message: they take about as long to read as an answer takes to send."""


class Pacing:
    """ASGI middleware that takes the messages of each websocket at a limited rate, in turn with those of the others.

    What comes faster waits, first in a queue of one chunk that was read, then with its sender, because nobody reads on:
    nothing is lost. A connection whose messages wait for a long time is no person's and is closed, because its queue
    would keep its session at work long after it has gone.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; of a websocket, message by message."""
        rate, most = limit("messages_per_second"), limit("messages_at_once")
        left, late, before = float(most), 0, time.monotonic()

        async def paced() -> Message:
            nonlocal left, late, before
            turn = asyncio.Event()
            asyncio.get_running_loop().call_soon(turn.set)  # not before the next message is there, if it waits already
            message, now = await receive(), time.monotonic()
            left, before = min(most, left + rate * (now - before)), now
            left -= 1 + len(message.get("bytes") or b"") / LONG
            late = late + 1 if left < 0 and not turn.is_set() else max(0, late - 1)
            if late > limit("messages_late") and message["type"] == "websocket.receive":
                await send({"type": "websocket.close", "code": 1008})
                return {"type": "websocket.disconnect", "code": 1008}
            await asyncio.sleep(max(0.0, -left / rate))
            return message

        await self.app(scope, paced if scope["type"] == "websocket" else receive, send)
