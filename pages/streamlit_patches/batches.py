"""What a rerun draws gathers until it ends, or for a moment that nobody notices, and leaves together, in its order."""

from __future__ import annotations

from collections import deque
from typing import Any

from streamlit import runtime
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import ScriptRunnerEvent
from streamlit.runtime.session_manager import SessionClientDisconnectedError

GATHER_S = 0.02
"""How long what a running script draws may wait for company: less than an eye notices, as long as most reruns."""

MOST_AT_ONCE = 200
"""Messages sent in one turn; a connection may be given 500 before its sender has had one."""


def patch() -> None:
    """Put this in place, for sessions to come."""
    on_event, clear_queue = AppSession._on_scriptrunner_event, AppSession._clear_queue

    def gather(self: AppSession, runner: Any, event: ScriptRunnerEvent, *args: Any, **details: Any) -> None:
        """In the script's thread: keep what it draws for a moment; before it says anything else, hand that over."""
        message: ForwardMsg | None = details.get("forward_msg")
        if runner is None or message is None:
            if runner is not None and (batch := vars(runner).pop("_batch", None)):
                self._call_soon_on_event_loop(lambda: _send_batch(self, runner, batch))
            on_event(self, runner, event, *args, **details)
            return
        batch = vars(runner).setdefault("_batch", deque())

        def wait() -> None:
            self._event_loop.call_later(GATHER_S, _send_batch, self, runner, batch)

        batch.append(message)
        if len(batch) == 1:
            self._call_soon_on_event_loop(wait)

    def enqueue(self: AppSession, message: ForwardMsg) -> None:
        """In the event loop: send it with what else there is."""
        self._browser_queue.enqueue(message)
        self._event_loop.call_soon(_send, self)

    def clear(self: AppSession, fragments: list[str] | None = None) -> None:
        """In the event loop, at the start of a run: what a fragment's last run drew and nobody has sent goes first.

        Streamlit drops it, but for what the browser has had before, which travels as its hash and does not say its
        fragment: without the block that it stands in, the browser would be left with a white page.
        """
        if fragments is None:
            clear_queue(self)
        else:
            self._browser_queue._delta_index_map.clear()  # what comes now replaces nothing of that run

    AppSession._on_scriptrunner_event = gather  # type: ignore[method-assign, assignment]
    AppSession._enqueue_forward_msg = enqueue  # type: ignore[method-assign]
    AppSession._clear_queue = clear  # type: ignore[method-assign]


def _send_batch(session: AppSession, runner: Any, batch: deque[ForwardMsg]) -> None:
    """Send what ``runner`` drew; of one that was replaced, nothing."""
    while batch:
        message = batch.popleft()
        if runner is session._scriptrunner:
            session._browser_queue.enqueue(message)
    _send(session)


def _send(session: AppSession) -> None:
    """What the runtime's loop does for one session when it is woken, without a turn for each message."""
    server = runtime.get_instance()
    connection = server._session_mgr.get_active_session_info(session.id)
    if connection is None or session._browser_queue.is_empty():
        return  # gone; what there is waits for its return
    messages = session.flush_browser_queue()
    for message in messages[:MOST_AT_ONCE]:
        try:
            server._send_message(connection, message)
        except SessionClientDisconnectedError:
            server.disconnect_session(session.id, client=connection.client)
    for message in messages[MOST_AT_ONCE:]:
        session._browser_queue.enqueue(message)
    if len(messages) > MOST_AT_ONCE:
        session._event_loop.call_soon(_send, session)
    session.on_flushed_messages_sent()
