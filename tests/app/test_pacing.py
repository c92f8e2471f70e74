"""Messages of a connection come at a limited pace: none is lost, others have their turn between any two."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from typing import Any

import pytest

from core.limits import limit
from pages.common.server import pacing
from pages.common.server.pacing import LONG, Pacing
from tests.loops import run

RATE, AT_ONCE, LATE = limit("messages_per_second"), limit("messages_at_once"), limit("messages_late")


own_sleep = asyncio.sleep


class Clock:
    """Seconds that pass while somebody sleeps, and only then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0

        async def sleep(seconds: float) -> None:
            self.now += seconds
            await own_sleep(0)

        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(pacing.asyncio, "sleep", sleep)


def received(
    sent: list[bytes], kind: str = "websocket", *, waits: bool = False
) -> tuple[list[bytes], list[dict[str, Any]], int]:
    """What an app gets of what was ``sent`` at once, what goes back, and how many turns others have had.

    waits: each is sent when the one before has been answered.
    """
    got, back, turns, numbers = list[bytes](), list[dict[str, Any]](), 0, count()

    async def receive() -> dict[str, Any]:
        number = next(numbers)
        if waits:
            await own_sleep(0)
            await own_sleep(0)
        more = number < len(sent)
        return {"type": "websocket.receive", "bytes": sent[number]} if more else {"type": "websocket.disconnect"}

    async def send(message: Any) -> None:
        back.append(message)

    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        while (message := await receive())["type"] == "websocket.receive":
            got.append(message["bytes"])

    async def beside() -> None:
        nonlocal turns
        while True:
            turns += 1
            await own_sleep(0)

    async def both() -> None:
        other = asyncio.create_task(beside())
        await Pacing(app)({"type": kind}, receive, send)
        other.cancel()

    run(both())
    return got, back, turns


def test_what_comes_at_once_waits_for_its_time_and_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sent = Clock(monkeypatch), [b"%d" % i for i in range(AT_ONCE + LATE // 2)]
    got, back, turns = received(sent)
    assert (got, back) == (sent, [])
    assert clock.now == pytest.approx((len(sent) - AT_ONCE) / RATE, rel=0.05)
    assert turns >= len(sent)


def test_what_a_person_sends_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    received([b"x"] * (AT_ONCE - 1))
    assert clock.now == pytest.approx(0, abs=0.001)


def test_a_long_message_counts_as_several(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    received([b"x" * LONG] * AT_ONCE)
    assert clock.now == pytest.approx(AT_ONCE / RATE, rel=0.05)


def test_a_flood_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    got, back, _ = received([b"x"] * 10 * (AT_ONCE + LATE))
    assert AT_ONCE < len(got) <= AT_ONCE + LATE + 1
    assert back == [{"type": "websocket.close", "code": 1008}]


def test_who_waits_for_each_answer_is_slowed_and_never_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sent = Clock(monkeypatch), [b"x"] * 10 * (AT_ONCE + LATE)
    assert received(sent, waits=True)[:2] == (sent, [])
    assert clock.now == pytest.approx((len(sent) - AT_ONCE) / RATE, rel=0.05)


def test_other_requests_keep_their_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sent = Clock(monkeypatch), [b"x"] * 2 * (AT_ONCE + LATE)
    assert received(sent, "http")[:2] == (sent, [])
    assert clock.now == 0
