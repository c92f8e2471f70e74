"""The process that runs code, started by the first page that needs it behind a spinner, and what holds code here."""

from __future__ import annotations

from urllib.parse import urlsplit

import streamlit as st

from core.messages import message
from core.tensors.sealed.client import LINUX, POOL
from core.tensors.sealed.trust import Site, is_local


def programs_ready() -> str:
    """Start the process; why no code can run, empty if it can."""
    _first_start()
    return POOL.warm()


def site() -> Site:
    """Return what holds code on this server, for the browser that asks."""
    address, headers = st.get_option("server.address"), st.context.headers
    # A proxy on this computer would look local by its address, and may call the server by any name.
    client = headers.get("X-Forwarded-For") or st.context.ip_address
    names = (headers.get("Host", ""), urlsplit(headers.get("Origin", "")).netloc)
    return Site(LINUX, programs_ready(), all(is_local(address, name, client) for name in names))


@st.cache_resource(show_spinner=message("server.pytorch"))
def _first_start() -> None:
    POOL.warm()
