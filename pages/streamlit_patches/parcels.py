"""What a rerun draws gathers until it ends, or for a moment that nobody notices, and leaves together, in its order."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from streamlit import runtime
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.scriptrunner import ScriptRunnerEvent
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState
from streamlit.runtime.session_manager import SessionClientDisconnectedError

GATHER_S = 0.02
"""How long what a running script draws may wait for company: less than an eye notices, as long as most reruns."""

PARCEL = 200
"""Messages sent in one turn; a connection may be given 500 before its sender has had one."""


def patch() -> None:
    """Put this in place, for sessions to come."""
    on_event, on_event_in_loop = AppSession._on_scriptrunner_event, AppSession._handle_scriptrunner_event_on_event_loop
    clear_queue = AppSession._clear_queue

    def gather(self: AppSession, sender: Any, event: ScriptRunnerEvent, *args: Any, **rest: Any) -> None:
        """In the script's thread: keep what it draws, and wake the event loop for the first of it."""
        message = rest.get("forward_msg")
        if event is not ScriptRunnerEvent.ENQUEUE_FORWARD_MSG or message is None or sender is None:
            if sender is not None:
                _gathered(sender).append(None)
                vars(self).setdefault("_due", None)  # the event wakes the loop, which will look for what follows it
            on_event(self, sender, event, *args, **rest)
            return
        _gathered(sender).append(message)
        if message.HasField("ref_hash"):
            _fragments(self)[tuple(message.metadata.delta_path)] = getattr(ThreadState.get(), "fragment_id", None)
        if not hasattr(self, "_due"):  # who sends takes it away, and then looks for what was drawn
            self._due = None  # type: ignore[attr-defined]
            self._call_soon_on_event_loop(lambda: _send_later(self))

    def handle(self: AppSession, sender: Any, event: ScriptRunnerEvent, *args: Any, **rest: Any) -> None:
        """In the event loop: what was drawn before a script's event goes before what the event says."""
        if sender is not None:
            _take(self, sender)
            _gathered(sender).popleft()
        on_event_in_loop(self, sender, event, *args, **rest)
        if vars(self).get("_due", self) is None:
            _send_later(self)

    def enqueue(self: AppSession, message: ForwardMsg) -> None:
        """In the event loop: send it with what else there is, at once unless a script runs."""
        self._browser_queue.enqueue(message)
        _send_later(self)

    def clear(self: AppSession, fragments: list[str] | None = None) -> None:
        """In the event loop, at the start of a run: what the run before has drawn and nobody has sent is void.

        An element that the browser has had before travels as its hash, which does not say its fragment: Streamlit
        would send it on without the block that it stands in, and the browser would be left with a white page.
        """
        if fragments is not None:
            queue = self._browser_queue
            places = {path for path, fragment in _fragments(self).items() if fragment in fragments}
            queue._queue = [
                m for m in queue._queue if not (m.HasField("ref_hash") and tuple(m.metadata.delta_path) in places)
            ]
        clear_queue(self, fragments)

    AppSession._on_scriptrunner_event = gather  # type: ignore[method-assign, assignment]
    AppSession._handle_scriptrunner_event_on_event_loop = handle  # type: ignore[method-assign, assignment]
    AppSession._enqueue_forward_msg = enqueue  # type: ignore[method-assign]
    AppSession._clear_queue = clear  # type: ignore[method-assign]


def _gathered(sender: Any) -> deque[ForwardMsg | None]:
    """What a script has drawn and its session has not taken; ``None`` where an event of the script stands."""
    return sender.__dict__.setdefault("_gathered", deque())


def _fragments(session: AppSession) -> dict[tuple[int, ...], str | None]:
    """Place on the page → the fragment of what stood there and travelled as its hash."""
    return vars(session).setdefault("_fragments", {})


def _take(session: AppSession, sender: Any) -> None:
    """Move what ``sender`` drew before its next event into the session's queue; of one that was replaced, nowhere."""
    waiting = _gathered(sender)
    while waiting and (message := waiting[0]) is not None:
        waiting.popleft()
        if sender is session._scriptrunner:
            session._browser_queue.enqueue(message)


def _send_later(session: AppSession) -> None:
    """See to it that the session's messages are sent: soon while its script runs, else in the loop's next turn."""
    due: asyncio.Handle | None = getattr(session, "_due", None)
    running = session._state is AppSessionState.APP_IS_RUNNING
    if due is None or not (running or not isinstance(due, asyncio.TimerHandle)):
        if due is not None:
            due.cancel()
        loop = session._event_loop
        turn = loop.call_later(GATHER_S, _send, session) if running else loop.call_soon(_send, session)
        session._due = turn  # type: ignore[attr-defined]


def _send(session: AppSession) -> None:
    """What the runtime's loop does for one session when it is woken, without a turn for each message."""
    vars(session).pop("_due", None)
    if session._scriptrunner is not None:
        _take(session, session._scriptrunner)
    server = runtime.get_instance()
    connection = server._session_mgr.get_active_session_info(session.id)
    if connection is None:
        return  # gone; what there is waits for its return
    messages = session.flush_browser_queue()
    for message in messages[:PARCEL]:
        try:
            server._send_message(connection, message)
        except SessionClientDisconnectedError:
            server.disconnect_session(session.id, client=connection.client)
    for message in messages[PARCEL:]:
        session._browser_queue.enqueue(message)
    if messages and (len(messages) > PARCEL or session._state is AppSessionState.APP_IS_RUNNING):
        _send_later(session)  # a script that draws is looked after, and need not wake the loop again
    session.on_flushed_messages_sent()
