"""Streamlit's server without its web server, for tests that speak to it themselves."""

from __future__ import annotations

import asyncio

from streamlit.runtime import Runtime

from tests.patience import PATIENCE_S


async def stop(server: Runtime) -> None:
    """Stop it, and wait for its sessions’ scripts: a loop that one leaves open is a warning in some later test."""
    sessions = [info.session for info in server._session_mgr.list_sessions()]
    server.stop()
    await server.stopped
    async with asyncio.timeout(PATIENCE_S):
        while not all(session._script_event_loop.is_closed() for session in sessions):
            await asyncio.sleep(0.01)
