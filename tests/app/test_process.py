"""The one-time preparation of the server process."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.common.registry import PAGES
from pages.common.server.log import OncePer
from pages.common.server.process import send_at_once, spare_the_log
from tests.loops import run
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


@pytest.fixture
def spared() -> Iterator[None]:
    """The log as a server has it, for one test."""
    before, loggers = logging.getLoggerClass(), [logging.root, *logging.root.manager.loggerDict.values()]
    kept = [(logger, logger.filters[:]) for logger in loggers if isinstance(logger, logging.Logger)]
    spare_the_log()
    yield
    logging.setLoggerClass(before)
    for logger in [logging.root, *logging.root.manager.loggerDict.values()]:
        if isinstance(logger, logging.Logger):
            logger.filters[:] = [f for f in logger.filters if not isinstance(f, OncePer)]
    for logger, filters in kept:
        logger.filters[:] = filters


def test_a_server_out_of_descriptors_says_so_once(spared: None, caplog: pytest.LogCaptureFixture) -> None:
    async def refuse() -> None:
        # What asyncio does when accept() fails for want of descriptors.
        loop = asyncio.get_running_loop()
        for _ in range(50):
            problem = OSError(errno.EMFILE, "Too many open files")
            loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": problem})

    run(refuse())
    assert sum("out of system resource" in record.getMessage() for record in caplog.records) == 1


def test_loggers_there_are_and_loggers_to_come_are_spared(spared: None, caplog: pytest.LogCaptureFixture) -> None:
    spare_the_log()  # a second time changes nothing
    later = logging.getLogger(f"{__name__}.{uuid.uuid4()}")
    for logger in (logging.root, logging.getLogger("asyncio"), later):
        caplog.clear()
        for _ in range(5):
            logger.error("the same again")
        logger.error("another thing")
        assert [record.getMessage() for record in caplog.records] == ["the same again", "another thing"]


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


@pytest.mark.process
def test_a_replica_has_imported_what_its_pages_do_before_it_serves() -> None:
    code = (
        "import sys\nfrom pages.common.server.process import import_pages\nimport_pages()\n"
        "print(*(name for name in sys.modules if name.startswith('pages.')), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT)
    *imported, torch = done.stdout.split()
    own = {f"pages.{page.id}.{path.stem}" for page in PAGES for path in (ROOT / "pages" / page.id).glob("*.py")}
    left = {name for name in own - {*imported} if not name.endswith((".page", ".__init__"))}
    assert not left
    assert torch == "False"
