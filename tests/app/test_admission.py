"""Descriptors: the limit is raised, and a server that runs out of them says so while it still can."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pages.common.server.admission import HEALTH, SPARE, Admission, has_capacity, raise_limit
from tests.loops import run
from tests.perf.client import Session, spawned, until_up

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]


@contextmanager
def free_descriptors(count: int) -> Iterator[None]:
    """Lower this process's soft limit so that it can open ``count`` files and no more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    top = max(int(name) for name in os.listdir("/dev/fd"))
    while taken[-1] < top:  # close the holes below
        taken.append(os.dup(taken[0]))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in taken:
            os.close(descriptor)


def answered(kind: str, path: str = HEALTH) -> list[dict[str, Any]]:
    """What goes back to the client for one request to a doorkeeper whose app says 200 to everything."""
    sent: list[dict[str, Any]] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "let in", "status": 200})

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    run(Admission(app)({"type": kind, "path": path, "method": "GET", "headers": []}, receive, send))
    return sent


@pytest.mark.process
def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    code = (
        "import resource as r; from pages.common.server.admission import raise_limit\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (100, 300)); assert raise_limit() == 300; assert raise_limit() == 300"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_limit_that_cannot_be_raised_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError

    before = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_limit() == before
    monkeypatch.setattr("pages.common.server.admission.resource", None)
    assert raise_limit() is None


@pytest.mark.parametrize("free", [1, 3, 20])
def test_room_is_what_can_be_opened_and_nothing_stays_open(free: int) -> None:
    with free_descriptors(free):
        for _ in range(3):
            assert has_capacity(free)
            assert not has_capacity(free + 1)


@pytest.mark.parametrize(("free", "visitor", "file"), [(SPARE + 8, 1, 1), (SPARE - 8, 0, 1), (20, 0, 0)])
def test_who_is_turned_away_when(free: int, visitor: int, file: int) -> None:
    with free_descriptors(free):  # some of them are for asyncio's own loop
        assert (answered("websocket")[0]["type"] == "let in") == visitor
        assert (answered("http")[0]["status"] == 200) == visitor
        assert (answered("http", "/static/js/main.js")[0]["status"] == 200) == file


def test_a_refusal_closes_the_connection() -> None:
    with free_descriptors(20):
        assert answered("lifespan") == [{"type": "let in", "status": 200}]
        start, _ = answered("http")
        assert start["status"] == 503
        assert (b"connection", b"close") in start["headers"]


LEFT = """
import os, sys, time
from types import SimpleNamespace
import streamlit as st
from pages.common.server.admission import close_expired_sessions

app = st.App(os.path.abspath("app.py"))
storage = app._create_runtime()._session_mgr._session_storage
now = time.monotonic()
storage._cache._timer, storage._cache._ttl = lambda: now, 180
closed = []
for name in "abc":
    session = SimpleNamespace(id=name, shutdown=lambda name=name: closed.append(name))
    storage.save(SimpleNamespace(session=session))
    now += 50
# The first left 150 s ago, with 180 allowed.
assert close_expired_sessions() == 0 and not closed and len(storage.list()) == 3, closed
now += 50
assert close_expired_sessions() == 1 and closed == ["a"], closed
now += 500
assert close_expired_sessions() == 2 and closed == ["a", "b", "c"] and not storage.list(), closed
"""


@pytest.mark.process
def test_who_does_not_come_back_is_let_go() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_a_full_server_fails_its_health_check_and_recovers() -> None:
    def health(port: int) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{HEALTH}", timeout=20) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            return refused.code

    with spawned(ROOT, limits=("-Sn 100", "-Hn 140")) as (port, _):
        run(until_up(port))
        assert health(port) == 200
        with ExitStack() as crowd:
            while health(port) == 200:  # ends: there are 140 and no more
                crowd.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert health(port) == 503

            async def visit() -> None:
                async with Session(port):
                    pass

            with pytest.raises(Exception, match="403"):
                run(visit())
        for _ in range(100):
            if health(port) == 200:
                break
        assert health(port) == 200
