"""Ports of the loopback for the servers that tests start."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def free_port() -> Iterator[int]:
    """A port for one server, and for nobody else while this is open, whether the server is up yet or was killed.

    It stays bound and never listens. Linux gives such a port to nobody who asks for any, and lets a server that asks
    for this one, with SO_REUSEADDR as all of ours do, listen on it; elsewhere it is only chosen.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = int(held.getsockname()[1])
        if sys.platform != "linux":
            held.close()
        yield port
