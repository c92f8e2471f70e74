"""What leaves together is what Streamlit would have sent one by one, in its order."""

from __future__ import annotations

import asyncio
import time
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

from pages.streamlit_patches.parcels import patch
from tests.app.serving import stop
from tests.loops import run

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
import time, streamlit as st
@st.fragment
def body():
    run = st.session_state["run"] = st.session_state.get("run", 0) + 1
    if run == 2:
        with st.container():
            st.text("long " * 9_000)
    elif run == 1:
        st.text("long " * 9_000)
    else:
        st.text("short")
    time.sleep(0.4 if run == 2 else 0)
    st.text("after")
body()
"""
REPLACED = ("_on_scriptrunner_event", "_enqueue_forward_msg", "_clear_queue")
SLOW = "import time, streamlit as st\nst.title('now')\ntime.sleep(1.5)\nst.title('later')\n"


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit's own ways again after a test that replaces them."""
    for name in REPLACED:
        monkeypatch.setattr(AppSession, name, getattr(AppSession, name))
    monkeypatch.setattr(Runtime, "_instance", None)


class Client:
    """A visitor who notes what comes, and when."""

    client_context = None

    def __init__(self) -> None:
        self.seen: list[tuple[float, ForwardMsg]] = []
        self.ended = 0

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        self.seen.append((time.monotonic(), msg))
        self.ended += msg.WhichOneof("type") == "script_finished"


def visited(tmp_path: Path, script: str, visit: Callable[[Runtime, str, Client], Coroutine[Any, Any, None]]) -> Client:
    """What a visitor of a server of ``script`` gets."""
    path = tmp_path / "script.py"
    path.write_text(script)
    client = Client()

    async def serve() -> None:
        Runtime._instance = None
        server = Runtime(RuntimeConfig(str(path), MemoryMediaFileStorage("/media"), MemoryUploadedFileManager("/up")))
        await server.start()
        await visit(server, server.connect_session(client, {}), client)
        await stop(server)

    run(serve())
    return client


async def rerun(server: Runtime, session: str, client: Client, *, blocked_s: float = 0.0) -> None:
    """One rerun to its end, with the event loop kept from looking for a while."""
    ask, ended = BackMsg(), client.ended
    ask.rerun_script.query_string = ""
    server.handle_backmsg(session, ask)
    time.sleep(blocked_s)
    async with asyncio.timeout(60):
        while client.ended == ended or client.seen[-1][1].WhichOneof("type") != "session_status_changed":
            await asyncio.sleep(0.01)


def told(client: Client) -> list[bytes]:
    """What came, without the names of session and run."""
    shown: list[bytes] = []
    for _, message in client.seen:
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
            for (_, m), one in zip(client.seen, told(client), strict=True)
        }.values()
    )


async def twice(server: Runtime, session: str, client: Client) -> None:
    """Two reruns, the second while the event loop is busy, so that it hears of the start after the end."""
    await rerun(server, session, client)
    await rerun(server, session, client, blocked_s=0.5)


def test_together_comes_what_came_one_by_one(own: None, tmp_path: Path) -> None:
    theirs = visited(tmp_path, SCRIPT, twice)
    patch()
    ours = visited(tmp_path, SCRIPT, twice)
    assert len(final(theirs)) > 450
    assert sorted(final(ours)) == sorted(final(theirs))
    for client in (theirs, ours):
        kinds = [message.WhichOneof("type") for _, message in client.seen]
        assert kinds.count("new_session") == kinds.count("script_finished") == 2
        assert kinds[0] == "new_session"
        assert kinds[-2:] == ["script_finished", "session_status_changed"]
        places = [tuple(m.metadata.delta_path) for _, m in client.seen if m.HasField("delta")]
        assert places.index((0, 2)) < places.index((0, 2, 0)) < places.index((0, 3)) < places.index((0, 400))


async def interrupted(server: Runtime, session: str, client: Client) -> None:
    """A run of the page, then one of its fragment that is cut short by another before anything of it was sent."""
    await rerun(server, session, client)
    ask = BackMsg()
    ask.rerun_script.fragment_id = next(m.delta.fragment_id for _, m in client.seen if m.delta.fragment_id)
    ask.rerun_script.cached_message_hashes.extend(m.hash for _, m in client.seen if m.metadata.cacheable)
    assert ask.rerun_script.cached_message_hashes
    server.handle_backmsg(session, ask)
    time.sleep(0.2)
    server.handle_backmsg(session, ask)
    time.sleep(0.6)
    async with asyncio.timeout(60):
        while client.seen[-1][1].WhichOneof("type") != "session_status_changed":
            await asyncio.sleep(0.01)


def homeless(client: Client) -> list[tuple[int, ...]]:
    """Places that something was sent for while what stood around them was no block, as in a browser."""
    blocks, lost = {(0,): True}, list[tuple[int, ...]]()
    for message in (m for _, m in client.seen if m.HasField("delta") or m.HasField("ref_hash")):
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
    seen = visited(tmp_path, SLOW, rerun).seen
    first, second = (when for when, message in seen if message.HasField("delta"))
    assert second - first > 1.0
