"""What the server process needs once, before its first page: no pauses in Python, none in the network."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import socket
import stat

import streamlit as st

HEAVY = ("pandas", "plotly.graph_objects")


@st.cache_resource
def prepare_process() -> None:
    """Import what charts and tables need, freeze it, and switch off Nagle's algorithm; once per process.

    Concurrent cold starts that import pandas lazily find it half initialised; here the first session imports
    and the others wait for it.
    """
    send_at_once()
    for name in HEAVY:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # everything imported so far leaves the collector's sight


def send_at_once() -> int:
    """Set TCP_NODELAY on every TCP socket of this process, and give their number.

    Streamlit binds its listening socket without naming a protocol, so asyncio does not recognise it as TCP and
    leaves Nagle's algorithm on. A rerun answers in several small messages; the second then waits for the client's
    delayed acknowledgement, 40 ms on Linux. Accepted connections inherit the option from the listening socket.
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
