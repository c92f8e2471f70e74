"""Changes made faster than the server answers: each is applied in its order, and none undoes another.

What a browser says of fields whose news it has not seen is stale. Changes that wait for a run to end are applied one by
one, each with its callbacks. No change interrupts the callbacks of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils import script_requests
from streamlit.runtime.state import query_params
from streamlit.runtime.state.common import unpack_widget_state_value
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import SessionState

from core.limits import limit

SEEN = "napkin:seen"
"""Comes among the fields: the number of the answer that the browser had on screen."""

_EARLIER = "napkin:earlier"
"""Stands among the fields: the whole of a change that was made before this one and has not been applied yet."""

_KEY = "napkin:history"
_WHOLE: ContextVar[bool] = ContextVar("what may not be interrupted", default=False)


@dataclass
class SentAndReceived:
    """What one user's browser has been sent, and what it sent last.

    answers: how many were drawn. begun: the next one is under way. behind: it goes to a browser that had not seen the
    last one. sets: key → what the script gave to its field, each with the number of the answer that says so, as far as
    the browser may not have seen it. address: as it was at the end of the last run.
    """

    answers: int = 0
    begun: bool = False
    behind: bool = False
    received: WidgetStates = field(default_factory=WidgetStates)
    sets: dict[str, list[tuple[int, Any]]] = field(default_factory=dict[str, list[tuple[int, Any]]])
    address: dict[str, list[str] | str] = field(default_factory=dict[str, "list[str] | str"])


def answered() -> int:
    """Return the number of the answer that ends here."""
    history: SentAndReceived = st.session_state.setdefault(_KEY, SentAndReceived())
    history.answers, history.begun = history.answers + 1, False
    return history.answers


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep other changes from interrupting the script inside, so that related changes are complete."""
    before = _WHOLE.set(True)
    try:
        yield
    finally:
        _WHOLE.reset(before)


def patch() -> None:
    """Put this in place, for all sessions."""
    will_rerun, finished = SessionState.on_script_will_rerun, SessionState.on_script_finished
    safely = SafeSessionState.on_script_will_rerun
    yield_to_others = ScriptRunner._maybe_handle_execution_control_request

    def receive(self: SessionState, states: WidgetStates | None, **rest: Any) -> None:
        """Before a run: apply the changes that waited, then this one."""
        states, *earlier = [states] if states is None else _in_order(states)
        for change in earlier:
            apply(self, change)
            # The callbacks have run. The script may ask for the click itself.
            clicks = self._filter_active_trigger_widget_states(change)
            rest["replay_trigger_states"] = script_requests._coalesce_replay_trigger_states(
                rest.get("replay_trigger_states"), clicks
            )
        apply(self, states, **rest)

    def apply(self: SessionState, states: WidgetStates | None, **rest: Any) -> None:
        """Believe what the browser says, but for what is stale, and call the callbacks."""
        history, seen, kept = _history(self), _seen(states), {}
        due = history.answers + history.begun
        history.behind = seen is not None and seen < due and not rest.get("is_history_navigation")
        if history.behind and states is not None and seen is not None:
            history.received, (states, kept) = states, _without_stale_values(self, history, states, seen, due)
            self.query_params._query_params = dict(history.address)
            self.query_params.set_initial_query_params_from_current()
        else:
            history.sets.clear()
            history.received = states or history.received
        history.begun = True
        try:
            will_rerun(self, states, **rest)
        finally:  # what a callback sets comes after these
            self._new_session_state.update({**kept, **self._new_session_state})

    def finish(self: SessionState, drawn: frozenset[str], *, remove_stale_widgets: bool = True) -> None:
        """After a run: see to it that a browser which could not know its address gets it whole."""
        finished(self, drawn, remove_stale_widgets=remove_stale_widgets)
        history = _history(self)
        if history.behind and remove_stale_widgets:
            history.behind = False
            _correct_address(self, drawn)
            self.query_params._send_query_param_msg()
        history.address = dict(self.query_params._query_params)

    def receive_whole(self: SafeSessionState, states: WidgetStates | None, **rest: Any) -> None:
        """Apply a change that has come before the next one interrupts: it, or half of its callback, would be lost."""
        with uninterrupted():
            safely(self, states, **rest)

    def go_on(self: ScriptRunner) -> None:
        """Let another change interrupt the script, where it may be interrupted."""
        if not _WHOLE.get():
            yield_to_others(self)

    script_requests._coalesce_widget_states = _in_line  # type: ignore[assignment]
    SessionState.on_script_will_rerun = receive  # type: ignore[method-assign, assignment]
    SafeSessionState.on_script_will_rerun = receive_whole  # type: ignore[method-assign, assignment]
    SessionState.on_script_finished = finish  # type: ignore[method-assign]
    ScriptRunner._maybe_handle_execution_control_request = go_on  # type: ignore[method-assign]


def _in_line(waiting: WidgetStates | None, new: WidgetStates | None) -> WidgetStates | None:
    """Return ``new`` with the change that waits for the run under way, and those before it, among its fields."""
    if waiting is None or new is None:
        return waiting if new is None else new
    # Those before it stay as they were written: to read and write them anew with each change takes ever longer.
    earlier, last = _split(waiting)
    changes = [*earlier, last.SerializeToString()][-limit("waiting_changes") :]
    while sum(map(len, changes)) > limit("waiting_bytes"):
        del changes[0]
    return WidgetStates(widgets=[*new.widgets, *(WidgetState(id=_EARLIER, bytes_value=one) for one in changes)])


def _in_order(states: WidgetStates) -> list[WidgetStates]:
    """Return the newest change, then those before it from the oldest on."""
    earlier, newest = _split(states)
    return [newest, *map(WidgetStates.FromString, earlier)]


def _split(states: WidgetStates) -> tuple[list[bytes], WidgetStates]:
    """Return the changes that wait before the newest one, and that one."""
    earlier = [one.bytes_value for one in states.widgets if one.id == _EARLIER]
    own = WidgetStates(widgets=[one for one in states.widgets if one.id != _EARLIER]) if earlier else states
    return earlier, own


def _history(state: SessionState) -> SentAndReceived:
    return state._new_session_state.get(_KEY) or state._old_state.setdefault(_KEY, SentAndReceived())


def _seen(states: WidgetStates | None) -> int | None:
    """Take the number of the answer that the browser had on screen out of what it says."""
    for i, widget in enumerate(states.widgets if states is not None else ()):
        if states is not None and widget.id == SEEN:
            del states.widgets[i]
            number = widget.string_value
            return int(number) if number.isdecimal() and len(number) < 10 else None
    return None


def _without_stale_values(
    state: SessionState, history: SentAndReceived, states: WidgetStates, seen: int, due: int
) -> tuple[WidgetStates, dict[str, Any]]:
    """Return what the browser says less what is stale, and the values to send again because it has not seen them.

    A field holds what it was set to, unless a person has touched it since: then the browser says of it neither what it
    said before, nor what the answers seen since have put there, nor what the news on its way may have begun to put
    there. The news would undo what was touched, so that is sent again as well.
    """
    ids, kinds = state._key_id_mapper, state._new_widget_state.widget_metadata
    for key, value in state._new_session_state.items():
        if ids.get_id_from_key(key) in kinds:
            history.sets.setdefault(key, []).append((due, value))
    before: dict[str, WidgetState] = {widget.id: widget for widget in history.received.widgets}
    touched = {widget.id for widget in states.widgets if widget != before.get(widget.id)}
    now: dict[str, Any] = {}
    for widget in states.widgets:
        if sets := history.sets.get(ids._id_key_mapping.get(widget.id, ""), []):
            now[widget.id] = kinds[widget.id].deserializer(unpack_widget_state_value(widget))
            if shown := [value for number, value in sets if number <= seen]:
                (touched.discard if shown[-1] == now[widget.id] else touched.add)(widget.id)
    history.sets = {key: new for key, sets in history.sets.items() if (new := [s for s in sets if s[0] > seen])}
    stale: set[str] = set()
    kept = {key: sets[-1][1] for key, sets in history.sets.items()}
    for key, sets in history.sets.items():
        name = ids.get_id_from_key(key, "")
        if name in touched and (len(touched) == 1 or all(now[name] != news for _, news in sets)):
            kept[key] = now[name]
        elif name in now:
            stale.add(name)
    return WidgetStates(widgets=[widget for widget in states.widgets if widget.id not in stale]), kept


def _correct_address(state: SessionState, drawn: frozenset[str]) -> None:
    """Make the address say what the drawn fields hold, and leave out those that hold their default."""
    for name, bound in state.query_params._bindings_by_param.items():
        if bound.widget_id in drawn:
            kind, value = state._new_widget_state.widget_metadata[bound.widget_id], state[bound.widget_id]
            state.query_params._query_params.pop(name, None)
            if value != kind.deserializer(None):
                text = query_params._coerce_value_for_query_url(kind.serializer(value), bound.value_type)
                state.query_params._query_params[name] = text
