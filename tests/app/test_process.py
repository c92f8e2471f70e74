"""The one-time preparation of the server process."""

from __future__ import annotations

import socket

from pages.parts.process import send_at_once


def test_listening_and_accepted_sockets_send_at_once() -> None:
    with socket.socket() as listener:  # like Streamlit's: no protocol named
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0
        assert send_at_once() >= 1
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_other_sockets_are_left_alone() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as datagram:
        before = datagram.getsockname()
        send_at_once()
        assert datagram.getsockname() == before
