"""Stand-ins for replicas: they answer with their name, and remember what reached them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Fake(ThreadingHTTPServer):
    """A server on the loopback that answers every request with its name; ``full`` makes its health check say 503."""

    daemon_threads = True

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.name = name
        self.full = False
        self.asked: list[str] = []

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])


POLICY = "default-src 'none'"
"""What they ask of browsers, in place of Napkin's own."""


class _Handler(BaseHTTPRequestHandler):
    server: Fake

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(self.path)
        self.send_response(503 if self.server.full and self.path == "/_stcore/health" else 200)
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(self.server.name.encode())

    do_GET = do_POST = do_PUT = _answer  # noqa: N815, names of http.server

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def fakes(*names: str) -> Iterator[list[Fake]]:
    """Stand-ins under these names, each served by a thread."""
    with ExitStack() as stack:
        made = [stack.enter_context(Fake(name)) for name in names]
        for one in made:
            threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
            stack.callback(one.shutdown)
        yield made
