"""Changes made faster than the server answers: what a browser says of fields whose news it has not seen is stale."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType
from streamlit.runtime.state import query_params
from streamlit.runtime.state.common import unpack_widget_state_value
from streamlit.runtime.state.session_state import SessionState

SEEN = "napkin:seen"
"""Comes among the fields: the number of the answer that the browser had on screen."""

_KEY = "napkin:history"


@dataclass
class SentAndReceived:
    """What one visitor's browser has been sent, and what it sent last.

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
    """The number of the answer that ends here."""
    history: SentAndReceived = st.session_state.setdefault(_KEY, SentAndReceived())
    history.answers, history.begun = history.answers + 1, False
    return history.answers


def patch() -> None:
    """Put this in place, for all sessions."""
    will_rerun, finished = SessionState.on_script_will_rerun, SessionState.on_script_finished
    rerun = AppSession.request_rerun

    def ask(self: AppSession, client_state: ClientState | None) -> None:
        """Before a change joins one that waits for the run under way to end: keep what a person did in that one."""
        requests = self._scriptrunner._requests if self._scriptrunner is not None else None
        if client_state is not None and requests is not None and requests._state is ScriptRequestType.RERUN:
            _keep_waiting(self._session_state, requests._rerun_data.widget_states, client_state.widget_states)
        rerun(self, client_state)

    def receive(self: SessionState, states: WidgetStates | None, **rest: Any) -> None:
        """Before a run: believe what the browser says, but for what is stale."""
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

    AppSession.request_rerun = ask  # type: ignore[method-assign]
    SessionState.on_script_will_rerun = receive  # type: ignore[method-assign, assignment]
    SessionState.on_script_finished = finish  # type: ignore[method-assign]


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
    """What the browser says less what is stale, and what the fields hold whose news it has not seen, to be sent again.

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


def _keep_waiting(state: SessionState, waiting: WidgetStates | None, states: WidgetStates) -> None:
    """Of fields that were touched in the change that waits: undo what the news of the run under way made of them."""
    ids, kinds = state._key_id_mapper, state._new_widget_state.widget_metadata
    before = {widget.id: widget for widget in _history(state).received.widgets}
    touched = {widget.id: widget for widget in (waiting.widgets if waiting else ()) if widget != before.get(widget.id)}
    for widget in states.widgets:
        key, kind = ids._id_key_mapping.get(widget.id, ""), kinds.get(widget.id)
        if widget.id not in touched or kind is None or key not in state._new_session_state:
            continue
        if kind.deserializer(unpack_widget_state_value(widget)) == state._new_session_state.get(key):
            widget.CopyFrom(touched[widget.id])


def _correct_address(state: SessionState, drawn: frozenset[str]) -> None:
    """Make the address say what the drawn fields hold, and leave out those that hold their default."""
    for name, bound in state.query_params._bindings_by_param.items():
        if bound.widget_id in drawn:
            kind, value = state._new_widget_state.widget_metadata[bound.widget_id], state[bound.widget_id]
            state.query_params._query_params.pop(name, None)
            if value != kind.deserializer(None):
                text = query_params._coerce_value_for_query_url(kind.serializer(value), bound.value_type)
                state.query_params._query_params[name] = text
