"""What Napkin asks of browsers stands in every answer, whatever becomes of a request."""

from __future__ import annotations

import http.client
import re
from pathlib import Path
from typing import Any

import pytest
import streamlit

from pages.common.server.policy import Policy, headers
from tests.loops import run
from tests.patience import PATIENCE_S
from tests.perf.client import spawned, until_up

ROOT = Path(__file__).parents[2]


def test_nothing_comes_from_elsewhere() -> None:
    policy = dict(rule.split(" ", 1) for rule in headers()["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in policy["script-src"]
    assert "http" not in headers()["Content-Security-Policy"]
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    assert policy["script-src"].count("'sha256-") == len(re.findall("<script>", page)) > 0


def test_a_websocket_is_left_alone() -> None:
    sent: list[dict[str, Any]] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})

    async def receive() -> dict[str, Any]:
        return {}

    async def send(message: Any) -> None:
        sent.append(message)

    run(Policy(app)({"type": "websocket"}, receive, send))
    assert sent == [{"type": "websocket.accept"}]


@pytest.mark.process
def test_every_answer_of_the_server_has_the_headers() -> None:
    """The page, what the server says of itself, files, and what there is not."""
    with spawned(ROOT) as (port, _):
        run(until_up(port))
        for path in ("/", "/compute-budget?p_n=8B", "/_stcore/health", "/app/static/icon.svg", "/media/none.html"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
            connection.request("GET", path)
            seen = connection.getresponse().headers
            connection.close()
            assert {name: seen.get_all(name) for name in headers()} == {n: [text] for n, text in headers().items()}, (
                path
            )
