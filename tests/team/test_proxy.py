"""deploy/nginx.conf.template before stand-ins of replicas: who is let in, to what, where, and under which headers."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.patience import PATIENCE_S, until
from tests.team.fakes import POLICY, Fake, fakes
from tests.team.topology import TEMPLATE, nginx, nginx_command, nginx_settings, rendered


class Visitor:
    """A browser's cookie jar and its requests, each over a connection of its own."""

    def __init__(self, url: str) -> None:
        self.address = urlsplit(url).netloc
        self.cookies = SimpleCookie()

    def ask(self, path: str = "/", method: str = "GET", body: bytes | None = None) -> http.client.HTTPResponse:
        """Send one request and keep the cookie that comes back; what was read of the body is in ``text``."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        jar = {"Cookie": "; ".join(f"{name}={one.value}" for name, one in self.cookies.items())}
        connection.request(method, path, body, jar if self.cookies else {})
        answer = connection.getresponse()
        answer.text = answer.read().decode()  # type: ignore[attr-defined]
        for line in answer.headers.get_all("Set-Cookie", []):
            self.cookies.load(line)
        connection.close()
        return answer

    def where(self, path: str = "/") -> str:
        """The name of the replica that answers."""
        return self.ask(path).text  # type: ignore[attr-defined]


@pytest.fixture
def pair() -> Iterator[list[Fake]]:
    with fakes("one", "two") as made:
        yield made


@pytest.fixture
def url(pair: list[Fake], tmp_path: Path) -> Iterator[str]:
    with nginx(tmp_path, [one.port for one in pair], patience="1s") as base:
        yield base


def visitors(url: str, count: int) -> list[tuple[Visitor, str]]:
    """Visitors who have opened a page, and the replica that answered."""
    made = [Visitor(url) for _ in range(count)]
    return [(one, one.where()) for one in made]


def test_nginx_accepts_the_template_as_it_is_filled_in(tmp_path: Path) -> None:
    checked = [*nginx_command(tmp_path, nginx_settings(tmp_path, "127.0.0.1:1", [2, 3])), "-t"]
    done = subprocess.run(checked, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr


def test_envsubst_and_this_agree_on_what_is_filled_in() -> None:
    settings = nginx_settings(Path("/scratch"), "1", [2])
    left = rendered(TEMPLATE.read_text(encoding="utf-8"), settings)
    assert "NAPKIN_" not in re.sub(r"#.*", "", left)
    assert "$request_id" in left  # nginx's own variables stay
    with pytest.raises(KeyError):
        rendered("${NAPKIN_OTHER}", settings)


@pytest.mark.parametrize("path", ["/", "/compute-budget?p_n=8B", "/_stcore/health"])
def test_the_policy_of_a_replica_reaches_the_browser(url: str, path: str) -> None:
    seen = Visitor(url).ask(path).headers
    assert seen.get_all("Content-Security-Policy") == [POLICY]
    assert seen["Server"] == "nginx"  # without its version
    assert {"HttpOnly", "SameSite=Lax"} <= set(seen["Set-Cookie"].split("; "))


@pytest.mark.parametrize(
    "path",
    [
        "/_stcore/metrics",
        "/_stcore/metrics/",
        "//_stcore//metrics",
        "/_stcore/health/../metrics",
        "/%5Fstcore/metrics",
        "/_stcore%2Fmetrics",
        "/x/..%2F_stcore/metrics",
        "/measure/_stcore/metrics",
        "/_stcore/script-health-check",
        "/_stcore/agent/interact",
        "/_stcore/agent/openapi.json",
        "/_stcore/",
        "/_stcore",
        "/_stcore/streams",
    ],
)
def test_internals_never_reach_a_replica(url: str, pair: list[Fake], path: str) -> None:
    assert Visitor(url).ask(path).status == 404
    assert not pair[0].asked + pair[1].asked


@pytest.mark.parametrize(
    "path",
    ["/", "/measure", "/_stcore/health", "/_stcore/host-config", "/_stcore/stream", "/_stcore/upload_file/a/b",
     "/static/js/a.js", "/app/static/fonts/a.woff2", "/media/a.csv", "/oauth2callback?state=a"],
)  # fmt: skip
def test_what_a_browser_needs_does(url: str, pair: list[Fake], path: str) -> None:
    assert Visitor(url).ask(path).status == 200
    assert pair[0].asked + pair[1].asked == [path]


def test_a_visitor_stays_at_one_replica_and_visitors_spread_over_both(url: str) -> None:
    seen = visitors(url, 40)
    for one, first in seen:
        assert {one.where(path) for path in ("/", "/_stcore/stream", "/media/a.csv", "/_stcore/health")} == {first}
    counts = [sum(where == name for _, where in seen) for name in ("one", "two")]
    assert min(counts) >= 5, counts  # of 40 fair coins fewer than five heads is one in 10 million


def test_a_cookie_of_anybodys_making_is_replaced(url: str) -> None:
    one = Visitor(url)
    one.cookies["napkin_at"] = "x" * 32
    assert one.ask().headers["Set-Cookie"]
    assert re.fullmatch(r"[0-9a-f]{32}", one.cookies["napkin_at"].value)
    assert not one.ask().headers["Set-Cookie"]


def test_visitors_of_a_dead_replica_go_on_at_the_other(url: str, pair: list[Fake]) -> None:
    seen = visitors(url, 20)
    pair[0].shutdown()
    pair[0].server_close()
    assert {one.where() for one, _ in seen} == {"two"}
    assert {one.ask("/_stcore/health").status for one, _ in seen} == {200}


def test_who_asks_a_full_replica_for_room_is_sent_to_the_other(url: str, pair: list[Fake]) -> None:
    seen = visitors(url, 12)
    pair[0].full = True
    for one, before in seen:
        asked = [one.ask("/_stcore/health").status for _ in range(40)]
        assert asked[-1] == 200
        assert asked == sorted(asked, reverse=True)  # once there is room, it stays
        assert (503 in asked) == (before == "one")
        assert one.where() == "two"


def test_uploads_are_capped(url: str, pair: list[Fake]) -> None:
    one = Visitor(url)
    assert one.ask("/_stcore/upload_file/a/b", "PUT", b"x" * (4 << 20)).status == 200
    pair[0].asked.clear()
    pair[1].asked.clear()
    with socket.create_connection(one.address.split(":"), timeout=PATIENCE_S) as raw:
        raw.sendall(b"PUT /_stcore/upload_file/a/b HTTP/1.1\r\nHost: a\r\nContent-Length: 6000000\r\n\r\n")
        assert raw.recv(12) == b"HTTP/1.1 413"
    assert not pair[0].asked + pair[1].asked


def test_a_link_with_a_long_text_in_it_opens_and_is_not_logged(url: str, tmp_path: Path) -> None:
    assert Visitor(url).ask("/tensor-views?t_x=" + "%E2" * 20_000).status == 200
    assert Visitor(url).ask("/tensor-views?t_x=" + "%E2" * 30_000).status == 414
    log = tmp_path / "nginx.log"
    until(lambda: '"GET /tensor-views" 200' in log.read_text(), "the line")  # written after the answer is sent
    assert "%E2" not in log.read_text()


@pytest.mark.parametrize(
    "half",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ",
        b"",
        b"PUT /_stcore/upload_file/a/b HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhalf",
    ],
    ids=["header", "silence", "body"],
)
def test_half_open_connections_are_dropped_while_others_are_served(url: str, pair: list[Fake], half: bytes) -> None:
    one = Visitor(url)
    address = one.address.split(":")
    held = [socket.create_connection(address, timeout=PATIENCE_S) for _ in range(50)]
    for connection in held:
        connection.sendall(half)
    assert one.ask().status == 200
    for connection in held:
        with connection:
            try:
                said = connection.recv(1000)  # a timeout here, in seconds far beyond nginx's patience, is a failure
            except ConnectionResetError:
                said = b""
            assert said == b"" or said.startswith(b"HTTP/1.1 408")
    assert pair[0].asked + pair[1].asked == ["/"]
