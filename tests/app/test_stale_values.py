"""Fields, address and script agree however late a browser sees what it is told, and what a person did stays done."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime import Runtime, RuntimeConfig
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils import script_requests
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import SessionState

from core.limits import limit
from pages.streamlit_patches.stale_values import SEEN, _in_line, _in_order, patch
from tests.app.serving import stop
from tests.loops import run
from tests.patience import PATIENCE_S

SCRIPT = """
import streamlit as st
from pages.streamlit_patches.stale_values import answered
CHIPS = {"one": {"a": "1", "b": "1"}, "two": {"a": "2", "c": "2"}, "none": {"a": "-", "b": "-", "c": "-"}}
def apply():
    st.session_state.update(CHIPS.get(st.session_state["chip"], {}))
def page():
    for key in "abc":
        st.text_input(key, "-", key=key, bind="query-params")
    held = {key: st.session_state[key] for key in "abc"}
    st.session_state["chip"] = next((chip for chip in ("one", "two") if CHIPS[chip].items() <= held.items()), "")
    st.text_input("chip", key="chip", on_change=apply)
    for chip in CHIPS:
        st.button(chip, key=chip, on_click=st.session_state.update, args=(CHIPS[chip],))
    if held["a"] == "2":
        st.text_input("d", "-", key="d", bind="query-params")
    st.text(repr(held))
    st.text(f"answer {answered()}")
st.fragment(page)()
"""
CHIPS = {"one": {"a": "1", "b": "1"}, "two": {"a": "2", "c": "2"}, "none": {"a": "-", "b": "-", "c": "-"}}


@dataclass
class Browser:
    """What Streamlit's front end does with fields and address; what the server says waits until `see` is called."""

    client_context = None
    fields: dict[str, str] = field(default_factory=dict[str, str])
    ids: dict[str, str] = field(default_factory=dict[str, str])
    address: dict[str, str] = field(default_factory=dict[str, str])
    fragment: str = ""
    answer: int = 0
    script_held: str = ""
    waiting: list[ForwardMsg] = field(default_factory=list[ForwardMsg])
    ended: int = 0

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        self.waiting.append(ForwardMsg.FromString(msg.SerializeToString()))
        self.ended += msg.WhichOneof("type") == "script_finished"

    def see(self, messages: int) -> None:
        """Show the first of what has come."""
        for msg in self.waiting[:messages]:
            kind = msg.WhichOneof("type")
            if kind == "page_info_changed":
                self.address = dict(parse_qsl(msg.page_info_changed.query_string))
            elif kind == "delta" and msg.delta.new_element.WhichOneof("type") == "text_input":
                box = msg.delta.new_element.text_input
                self.ids[box.label], self.fragment = box.id, msg.delta.fragment_id
                if box.set_value or box.label not in self.fields:
                    self.fields[box.label] = box.value if box.set_value else box.default
            elif kind == "delta" and msg.delta.new_element.WhichOneof("type") == "button":
                self.ids[msg.delta.new_element.button.label] = msg.delta.new_element.button.id
            elif kind == "delta" and msg.delta.new_element.WhichOneof("type") == "text":
                said = msg.delta.new_element.text.body
                if said.startswith("answer"):
                    self.answer = int(said.split()[1])
                else:
                    self.script_held = said
        del self.waiting[:messages]

    def some(self, chance: random.Random) -> int:
        """How many messages to see next: those of none, some or all of the answers that have come."""
        ends = [i + 1 for i, msg in enumerate(self.waiting) if msg.WhichOneof("type") == "script_finished"]
        return chance.choice((0, 0, *ends))

    def click(self, label: str) -> BackMsg:
        """A person clicks a button; the message that this sends, which alone says so."""
        request = self.ask()
        request.rerun_script.widget_states.widgets.add(id=self.ids[label], trigger_value=True)
        return request

    def change(self, label: str, text: str) -> BackMsg:
        """A person types; the message that this sends."""
        self.fields[label] = text
        if label != "chip":
            self.address = {name: held for name, held in self.address.items() if name != label}
            self.address |= {label: text} if text != "-" else {}
        return self.ask()

    def ask(self) -> BackMsg:
        request = BackMsg()
        request.rerun_script.query_string = urlencode(self.address)
        request.rerun_script.fragment_id = self.fragment
        for label, held in self.fields.items():
            request.rerun_script.widget_states.widgets.add(id=self.ids[label], string_value=held)
        if self.answer:
            request.rerun_script.widget_states.widgets.add(id=SEEN, string_value=str(self.answer))
        return request


@pytest.fixture
def stale_values_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put in place for this test alone."""
    for owner, name in (
        (script_requests, "_coalesce_widget_states"),
        (ScriptRunner, "_maybe_handle_execution_control_request"),
        (SafeSessionState, "on_script_will_rerun"),
        (SessionState, "on_script_will_rerun"),
        (SessionState, "on_script_finished"),
        (Runtime, "_instance"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    patch()


WHOLE = SCRIPT.replace("st.fragment(page)()", "page()")
"""The page as a whole script, which the next change interrupts."""


def walk(tmp_path: Path, seeds: range, script: str = SCRIPT, *, waits: bool = True) -> None:
    """Users who type and click at random while what they are told comes late. waits: for a run to end before the next
    change; else any number of changes come while one runs."""
    path = tmp_path / "script.py"
    path.write_text(script)

    async def visits(server: Runtime) -> None:
        for seed in seeds:
            await visit(server, random.Random(seed), f"seed {seed}", waits=waits)

    served(path, visits)


def served(path: Path, visits: Callable[[Runtime], Awaitable[None]]) -> None:
    """Start a server of the script, let visitors come, and stop it."""

    async def serve() -> None:
        Runtime._instance = None
        server = Runtime(RuntimeConfig(str(path), MemoryMediaFileStorage("/media"), MemoryUploadedFileManager("/up")))
        await server.start()
        await visits(server)
        await stop(server)

    run(serve())


def session_of(server: Runtime, id: str) -> AppSession:
    info = server._session_mgr.get_active_session_info(id)
    assert info is not None
    return info.session


async def opened(server: Runtime) -> tuple[Browser, str]:
    """A browser that has seen the first answer, and its session."""
    browser = Browser()
    session = server.connect_session(browser, {})
    session_of(server, session).track_settling()
    first = BackMsg()
    first.rerun_script.query_string = ""
    await asked(server, session, browser, first)
    browser.see(len(browser.waiting))
    return browser, session


async def visit(server: Runtime, chance: random.Random, name: str, *, waits: bool) -> None:
    browser, session = await opened(server)
    wanted = dict.fromkeys("abc", "-")
    did: list[str] = []
    for step in range(chance.randint(2, 5)):
        label = chance.choice(("a", "b", "c", "chip", *CHIPS))
        # Of a run that was interrupted a browser may have seen a part: a text that was there before it would be stale.
        texts = ("-", f"typed {step}") if waits else (f"typed {step}",)
        text = chance.choice(list(CHIPS) if label == "chip" else texts)
        if text == browser.fields.get(label):
            continue
        did.append(f"{label} = {text}, seen {browser.answer}")
        wanted |= CHIPS.get(label) or (CHIPS[text] if label == "chip" else {label: text})
        request = browser.click(label) if label in CHIPS else browser.change(label, text)
        if waits or chance.random() < 0.4:
            await asked(server, session, browser, request)
        else:
            server.handle_backmsg(session, request)
            await asyncio.sleep(chance.choice((0, 0, 0.002, 0.005)))
        browser.see(browser.some(chance))
    async with asyncio.timeout(PATIENCE_S):
        await session_of(server, session).wait_until_settled()
    browser.see(len(browser.waiting))
    told = f"{name}: {did}"
    assert browser.script_held == repr(wanted), told
    assert {label: browser.fields[label] for label in wanted} == wanted, told
    linked = {label: held for label, held in browser.address.items() if label in wanted}
    assert linked == {label: held for label, held in wanted.items() if held != "-"}, told


async def asked(server: Runtime, session: str, browser: Browser, request: BackMsg) -> None:
    """Run to its end what the browser asks for."""
    ended = browser.ended
    server.handle_backmsg(session, request)
    async with asyncio.timeout(PATIENCE_S):
        while browser.ended == ended or browser.waiting[-1].WhichOneof("type") != "session_status_changed":
            await asyncio.sleep(0.001)


@pytest.mark.usefixtures("stale_values_left_out")
def test_nothing_is_lost_however_late_a_browser_sees_what_it_is_told(tmp_path: Path) -> None:
    walk(tmp_path, range(40))


@pytest.mark.usefixtures("stale_values_left_out")
@pytest.mark.parametrize("script", [SCRIPT, WHOLE], ids=["fragment", "whole"])
def test_nothing_is_lost_of_changes_that_come_while_one_runs(tmp_path: Path, script: str) -> None:
    walk(tmp_path, range(40), script, waits=False)


@pytest.mark.usefixtures("stale_values_left_out")
def test_a_preset_that_waits_for_a_slow_run_outlives_the_news_of_that_run(tmp_path: Path) -> None:
    """The news empties the chip's box, and the next change says so before the server has read the chip."""
    path, closed = tmp_path / "script.py", tmp_path / "closed"
    wait = f"    import os, time\n    while os.path.exists({str(closed)!r}): time.sleep(0.005)\n"
    path.write_text(SCRIPT.replace("    st.text(repr(held))", f"{wait}    st.text(repr(held))"))

    async def hurried(server: Runtime) -> None:
        browser, session = await opened(server)
        ended = browser.ended
        closed.touch()
        server.handle_backmsg(session, browser.change("c", "typed"))
        server.handle_backmsg(session, browser.change("chip", "one"))
        async with asyncio.timeout(PATIENCE_S):
            while sum(msg.WhichOneof("type") == "delta" for msg in browser.waiting) < 5:  # but not yet what was slow
                await asyncio.sleep(0.001)
            browser.see(len(browser.waiting))
            assert browser.fields["chip"] == ""
            assert browser.ended == ended
            server.handle_backmsg(session, browser.change("c", "typed later"))
            closed.unlink()
            while "typed later" not in browser.script_held:
                await asyncio.sleep(0.001)
                browser.see(len(browser.waiting))
        assert browser.script_held == repr({"a": "1", "b": "1", "c": "typed later"})

    served(path, hurried)


@pytest.mark.parametrize("chars", [1, limit("waiting_bytes") // 10])
def test_the_last_changes_wait_in_their_order_and_no_more_than_there_is_room_for(chars: int) -> None:
    texts = [f"{number}{'x' * chars}" for number in range(2 * limit("waiting_changes"))]
    waiting: WidgetStates | None = None
    for text in texts:
        waiting = _in_line(waiting, WidgetStates(widgets=[WidgetState(id="a", string_value=text)]))
        assert waiting is not None
        assert waiting.ByteSize() < 1.2 * limit("waiting_bytes")
    newest, *earlier = _in_order(waiting or WidgetStates())
    held = [change.widgets[0].string_value for change in (*earlier, newest)]
    assert held == texts[-len(held) :]
    assert len(held) == (1 + limit("waiting_changes") if chars == 1 else 10)
