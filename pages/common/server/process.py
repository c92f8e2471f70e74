"""What the server process needs once: its pages known before the first visitor, no pauses in Python or the network."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import gc
import importlib
import logging
import os
import socket
import stat
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

from streamlit.runtime.pages_manager import PagesManager

from pages.common.server.admission import clean_up_sessions, raise_limit
from pages.common.server.log import OncePer
from pages.streamlit_patches import apply

HEAVY = ("pandas", "plotly.graph_objects", "numpy")

WARM_UP_AFTER_S = 1.0
"""A visitor who is there at once gets the header first; otherwise the imports are done before anybody comes."""

SWITCH_S = 0.001
"""How long a thread may hold the interpreter while another waits for it; Python's own 5 ms is a third of a rerun."""

_lock = threading.Lock()
_prepared = threading.Event()


def prepare_process() -> None:
    """Import what charts and tables need, freeze it, and switch off Nagle's algorithm; once per process.

    Concurrent cold starts that import pandas lazily find it half initialised; here one thread imports and all
    others wait for it.
    """
    if _prepared.is_set():
        return
    with _lock:
        if _prepared.is_set():
            return
        send_at_once()
        for name in HEAVY:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()  # everything imported so far leaves the collector's sight
        _prepared.set()


def import_pages() -> None:
    """Import what every page imports, but not the page scripts, which would draw."""
    for page in sorted(Path(__file__).parents[2].glob("*/page.py")):
        if page.with_name("form.py").exists():  # which the sidebar imports by the page's name
            importlib.import_module(f"pages.{page.parent.name}.form")
        for node in ast.parse(page.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                module = importlib.import_module(node.module)
                for name in (one.name for one in node.names if not hasattr(module, one.name)):
                    importlib.import_module(f"{node.module}.{name}")


@contextlib.asynccontextmanager
async def lifespan(_app: object) -> AsyncIterator[None]:
    """Run around the server's life: free resources, decide how pages are found, and warm up after the start."""
    raise_limit()
    spare_the_log()
    apply()
    sys.setswitchinterval(SWITCH_S)
    # A folder called pages makes Streamlit look for pages in it until some script has called st.navigation, and
    # greet the first deep link of a fresh process with "Page not found".
    PagesManager.uses_pages_directory = False
    if os.environ.get("DATABASE_URL"):  # a replica of several: the others serve its visitors until it is ready
        import_pages()
        prepare_process()
    warm_up = threading.Timer(WARM_UP_AFTER_S, prepare_process)
    warm_up.daemon = True
    warm_up.start()
    cleanup = asyncio.create_task(clean_up_sessions())
    yield
    cleanup.cancel()
    warm_up.cancel()


class SparingLogger(logging.Logger):
    """A logger that says the same thing at most once a minute."""

    def __init__(self, name: str, level: int = logging.NOTSET) -> None:
        super().__init__(name, level)
        self.addFilter(OncePer())


def spare_the_log() -> None:
    """Keep every present and future logger from repeating a message more than once a minute.

    Streamlit gives each of its loggers a separate handler, so no single place sees all records. asyncio, without a
    descriptor left to accept connections, once filled 64 MB with one message.
    """
    logging.setLoggerClass(SparingLogger)
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger) and not any(isinstance(f, OncePer) for f in logger.filters):
            logger.addFilter(OncePer())


def send_at_once() -> int:
    """Set TCP_NODELAY on every TCP socket of this process, and give their number.

    Streamlit binds its listening socket without naming a protocol, so asyncio does not recognize it as TCP and leaves
    Nagle's algorithm on. A rerun answers in several small messages; the second then waits for the client's delayed
    acknowledgement, 40 ms on Linux. Accepted connections inherit the option from the listening socket.
    """
    if not os.path.isdir("/dev/fd"):
        return 0
    done = 0
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # a descriptor may close between listing and looking
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as seen:
                if seen.family in (socket.AF_INET, socket.AF_INET6) and seen.type == socket.SOCK_STREAM:
                    seen.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    done += 1
    return done
