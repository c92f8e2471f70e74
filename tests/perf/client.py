"""A raw websocket client of a Streamlit server: reruns without a browser, timed from request to script end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages.common.guard import MARK
from tests.patience import PATIENCE_S
from tests.ports import free_port

_FAILED = f'class="np-error {MARK}"'


@contextmanager
def spawned(
    folder: Path,
    *,
    limits: Sequence[str] = (),
    command: Sequence[str] = (sys.executable, "-m", "streamlit"),
    env: Mapping[str, str] | None = None,
) -> Iterator[tuple[int, int]]:
    """Start ``streamlit run app.py`` in ``folder`` and give its port and process id at once, before it is up.

    limits: those of the shell's ulimit, such as "-Sn 1024", that the server starts under. command: what is streamlit.
    env: more of the environment.
    """
    with free_port() as port:
        command = [*command, "run", "app.py", "--server.port", str(port)]
        command += ["--server.address", "127.0.0.1", "--server.headless", "true", "--browser.gatherUsageStats", "false"]
        if limits:
            command = ["sh", "-c", "".join(f"ulimit {limit} && " for limit in limits) + 'exec "$@"', "sh", *command]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, cwd=folder, env=os.environ | dict(env or {}), stdout=quiet, stderr=quiet)
        try:
            yield port, process.pid
        finally:
            process.terminate()
            try:
                process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


async def until_up(port: int) -> None:
    """Wait until the server accepts connections; raises ``TimeoutError`` where it never does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.005)
            else:
                writer.close()
                return


@dataclass
class Run:
    """One script run as the client saw it: seconds to first element and to the end, HTML, errors."""

    first_element_s: float = 0.0
    finished_s: float = 0.0
    html: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])


@dataclass
class Session:
    """One visitor: a websocket, the page it looks at, and its fields, buttons and boxes (key → widget id, fragment)."""

    port: int
    id: str = ""
    page_hash: str = ""
    boxes: dict[str, str] = field(default_factory=dict[str, str])
    fragments: dict[str, str] = field(default_factory=dict[str, str])
    pages: dict[str, str] = field(default_factory=dict[str, str])

    async def __aenter__(self) -> Session:
        url = f"ws://127.0.0.1:{self.port}/_stcore/stream"
        self.socket = await websockets.connect(
            url, subprotocols=["streamlit"], max_size=None, ping_interval=None, open_timeout=PATIENCE_S
        )  # type: ignore[list-item]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.socket.close()

    async def rerun(
        self, texts: dict[str, str] | None = None, *, press: str = "", unfold: str = "", query: str = ""
    ) -> Run:
        """Ask for a rerun with these boxes changed, of their fragment as a browser would, and read to its end.

        press: the key of a button that is pressed with it; unfold: of an expander or popover that is opened. query: of
        the address.
        """
        request = BackMsg()
        request.rerun_script.page_script_hash, request.rerun_script.query_string = self.page_hash, query
        changed = [*((key, "string_value", text) for key, text in (texts or {}).items())]
        changed += [(press, "trigger_value", True)] * bool(press) + [(unfold, "bool_value", True)] * bool(unfold)
        for key, kind, value in changed:
            widget = request.rerun_script.widget_states.widgets.add()
            widget.id = self.boxes[key]
            setattr(widget, kind, value)
            if self.fragments.get(key):
                request.rerun_script.fragment_id = self.fragments[key]
        seen = Run()
        start = time.perf_counter()
        await self.socket.send(request.SerializeToString())
        while True:
            raw = await self.socket.recv()
            message = ForwardMsg.FromString(raw)  # type: ignore[arg-type]
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self.id = message.new_session.initialize.session_id
            elif kind == "navigation":
                self.pages.update({p.url_pathname: p.page_script_hash for p in message.navigation.app_pages})
            elif kind == "delta":
                seen.first_element_s = seen.first_element_s or time.perf_counter() - start
                self._note_box(message)
                if message.delta.new_element.HasField("html"):
                    seen.html.append(message.delta.new_element.html.body)
                    seen.errors += ["a part failed"] if _FAILED in seen.html[-1] else []
                if message.delta.new_element.HasField("exception"):
                    seen.errors.append(message.delta.new_element.exception.type)
            elif kind == "script_finished":
                seen.finished_s = time.perf_counter() - start
                if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    seen.errors.append("does not compile")
                return seen

    def _note_box(self, message: ForwardMsg) -> None:
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        widget = getattr(element, kind).id if kind in ("text_input", "text_area", "selectbox", "button") else ""
        widget = widget or message.delta.add_block.expandable.id or message.delta.add_block.popover.id
        if widget:
            key = widget.rsplit("-", 1)[-1]
            self.boxes[key], self.fragments[key] = widget, message.delta.fragment_id

    async def open(self, url_path: str, query: str = "") -> Run:
        """Load the app and go to the page at ``url_path``, with the inputs of ``query``."""
        run = await self.rerun()
        if url_path:
            self.page_hash = self.pages[url_path]
            run = await self.rerun(query=query)
        return run
