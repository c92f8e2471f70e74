"""What leaves together is what Streamlit would have sent one by one, in its order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime, RuntimeConfig
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from pages.streamlit_patches.batches import patch
from tests.app.serving import stop
from tests.loops import run
from tests.patience import PATIENCE_S, until

SCRIPT = """
import time, streamlit as st
st.title("first")
place = st.empty()
place.write("overwritten")
with st.container():
    st.text_input("a", key="a")
for i in range(450):
    st.text(i)
place.write("last")
"""
CUT_SHORT = """
import os, time, streamlit as st
@st.fragment
def body():
    run = st.session_state["run"] = st.session_state.get("run", 0) + 1
    if run == 2:
        for i in range(250):
            st.text(i)
        with st.container():
            st.text("long " * 9_000)
    elif run == 1:
        st.text("long " * 9_000)
    else:
        st.text("short")
    if run == 2:
        open(HERE, "w").close()
        while not os.path.exists(GATE):
            time.sleep(0.005)
    st.text("after")
body()
"""
"""The second run draws more than leaves in one turn, waits at a gate, and says so by a file."""
REPLACED = ("_on_scriptrunner_event", "_enqueue_forward_msg", "_clear_queue")
SLOW = """
import os, time, streamlit as st
st.title("now")
while not os.path.exists(GATE):
    time.sleep(0.005)
st.title("later")
"""


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit's own ways again after a test that replaces them."""
    for name in REPLACED:
        monkeypatch.setattr(AppSession, name, getattr(AppSession, name))
    monkeypatch.setattr(Runtime, "_instance", None)


class Client:
    """A visitor who notes what comes."""

    client_context = None

    def __init__(self) -> None:
        self.seen: list[ForwardMsg] = []
        self.ended = 0

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        self.seen.append(msg)
        self.ended += msg.WhichOneof("type") == "script_finished"


def visited(tmp_path: Path, script: str, visit: Callable[[Runtime, str, Client], Coroutine[Any, Any, None]]) -> Client:
    """What a visitor of a server of ``script`` gets."""
    path = tmp_path / "script.py"
    gates = f"HERE, GATE = {str(tmp_path / 'here')!r}, {str(tmp_path / 'gate')!r}"
    path.write_text(f"{gates}\n{script}")
    client = Client()

    async def serve() -> None:
        Runtime._instance = None
        server = Runtime(RuntimeConfig(str(path), MemoryMediaFileStorage("/media"), MemoryUploadedFileManager("/up")))
        await server.start()
        await visit(server, server.connect_session(client, {}), client)
        await stop(server)

    run(serve())
    return client


async def rerun(server: Runtime, session: str, client: Client, *, blocked: bool = False) -> None:
    """One rerun to its end, with the event loop kept from looking until it has run."""
    ask, ended = BackMsg(), client.ended
    ask.rerun_script.query_string = ""
    server.handle_backmsg(session, ask)
    if blocked:
        until(lambda: idle(server))
    async with asyncio.timeout(PATIENCE_S):
        while client.ended == ended or client.seen[-1].WhichOneof("type") != "session_status_changed":
            await asyncio.sleep(0.01)


def idle(server: Runtime) -> bool:
    """Whether no script runs any more, whatever the event loop has heard of that."""
    runners = [info.session._scriptrunner for info in server._session_mgr.list_active_sessions()]
    threads = [runner._script_thread for runner in runners if runner]
    return not any(thread and thread.is_alive() for thread in threads)


def told(client: Client) -> list[bytes]:
    """What came, without the names of session and run."""
    shown: list[bytes] = []
    for message in client.seen:
        kept = ForwardMsg()
        kept.CopyFrom(message)
        kept.ClearField("hash")
        kept.metadata.ClearField("run")
        kept.new_session.initialize.ClearField("session_id") if message.HasField("new_session") else None
        shown.append(kept.SerializeToString(deterministic=True))
    return shown


def final(client: Client) -> list[bytes]:
    """The last that came for each place and each kind of message: what stands there, however often it was sent."""
    return list(
        {
            (m.WhichOneof("type"), *m.metadata.delta_path): one
            for m, one in zip(client.seen, told(client), strict=True)
        }.values()
    )


async def twice(server: Runtime, session: str, client: Client) -> None:
    """Two reruns, the second while the event loop is busy, so that it hears of the start after the end."""
    await rerun(server, session, client)
    await rerun(server, session, client, blocked=True)


def test_together_comes_what_came_one_by_one(own: None, tmp_path: Path) -> None:
    theirs = visited(tmp_path, SCRIPT, twice)
    patch()
    ours = visited(tmp_path, SCRIPT, twice)
    assert len(final(theirs)) > 450
    assert sorted(final(ours)) == sorted(final(theirs))
    for client in (theirs, ours):
        kinds = [message.WhichOneof("type") for message in client.seen]
        assert kinds.count("new_session") == kinds.count("script_finished") == 2
        assert kinds[0] == "new_session"
        assert kinds[-2:] == ["script_finished", "session_status_changed"]
        places = [tuple(m.metadata.delta_path) for m in client.seen if m.HasField("delta")]
        assert places.index((0, 2)) < places.index((0, 2, 0)) < places.index((0, 3)) < places.index((0, 400))


async def interrupted(server: Runtime, session: str, client: Client) -> None:
    """A run of the page, then one of its fragment that is cut short by another before anything of it was sent."""
    await rerun(server, session, client)
    ask = BackMsg()
    ask.rerun_script.fragment_id = next(m.delta.fragment_id for m in client.seen if m.delta.fragment_id)
    ask.rerun_script.cached_message_hashes.extend(m.hash for m in client.seen if m.metadata.cacheable)
    assert ask.rerun_script.cached_message_hashes
    here, gate = (Path(server._main_script_path).with_name(name) for name in ("here", "gate"))
    server.handle_backmsg(session, ask)
    until(here.exists)
    server.handle_backmsg(session, ask)
    gate.touch()
    until(lambda: idle(server))
    async with asyncio.timeout(PATIENCE_S):
        while client.seen[-1].WhichOneof("type") != "session_status_changed":
            await asyncio.sleep(0.01)


def homeless(client: Client) -> list[tuple[int, ...]]:
    """Places that something was sent for while what stood around them was no block, as in a browser."""
    blocks, lost = {(0,): True}, list[tuple[int, ...]]()
    for message in (m for m in client.seen if m.HasField("delta") or m.HasField("ref_hash")):
        path = tuple(message.metadata.delta_path)
        if not all(blocks.get(path[:n], False) for n in range(1, len(path))):
            lost.append(path)
        blocks[path] = message.delta.HasField("add_block")
    return lost


def test_what_a_run_cut_short_has_drawn_leaves_as_a_whole(own: None, tmp_path: Path) -> None:
    patch()
    assert homeless(visited(tmp_path, CUT_SHORT, interrupted)) == []


def test_a_slow_script_shows_what_it_has(own: None, tmp_path: Path) -> None:
    patch()

    async def seen_first(server: Runtime, session: str, client: Client) -> None:
        running = asyncio.create_task(rerun(server, session, client))
        async with asyncio.timeout(PATIENCE_S):
            while not any(message.HasField("delta") for message in client.seen):
                await asyncio.sleep(0.01)
        assert not idle(server)
        (tmp_path / "gate").touch()
        await running

    assert sum(message.HasField("delta") for message in visited(tmp_path, SLOW, seen_first).seen) == 2
