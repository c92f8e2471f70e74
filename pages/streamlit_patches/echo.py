"""Changes made faster than the server answers: what a browser says of fields whose news it has not seen is an echo.

With every change Streamlit 1.67's browser sends what all its fields hold, and its address. A change made before the
answer to the one before is there thus says again what a chip has just replaced, and the script believed it: the chip
was lost. The answer, in turn, brought back the address from before the second change, and put what it set over what
had been typed since. So answers are numbered (`answered`), the browser says with each change which one it had on
screen (``assets/components/copylink.js``), and here the fields and the address that it could not know yet keep what
they were given, while what a person has changed since stays changed. A message without a number is believed, as is
one that knew the last answer. A Streamlit without one of the names is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.state import query_params, session_state
from streamlit.runtime.state.query_params import QueryParams
from streamlit.runtime.state.session_state import SessionState

SEEN = "napkin:seen"
"""Comes among the fields: the number of the answer that the browser had on screen."""

_TOLD = "napkin:told"

_NEEDED: Mapping[Any, tuple[str, ...]] = {
    SessionState: ("on_script_will_rerun", "on_script_finished", "_old_state", "_new_session_state", "_key_id_mapper"),
    QueryParams: ("set_initial_query_params_from_current", "_send_query_param_msg"),
    query_params: ("_coerce_value_for_query_url",),
    session_state: ("unpack_widget_state_value",),
}


@dataclass
class Told:
    """What one visitor's browser has been told, and what it said last.

    answers: how many were drawn. begun: the next one is under way. behind: it goes to a browser that had not seen the
    last one. sets: key → what the script gave to its field, each with the number of the answer that says so, as far as
    the browser may not have seen it. address: as it was at the end of the last run.
    """

    answers: int = 0
    begun: bool = False
    behind: bool = False
    said: WidgetStates = field(default_factory=WidgetStates)
    sets: dict[str, list[tuple[int, Any]]] = field(default_factory=dict[str, list[tuple[int, Any]]])
    address: dict[str, list[str] | str] = field(default_factory=dict[str, "list[str] | str"])


def answered() -> int:
    """The number of the answer that ends here; every page draws it into its link. 0: nobody listens for it."""
    if not hasattr(SessionState.on_script_will_rerun, "hears"):
        return 0
    text: Told = st.session_state.setdefault(_TOLD, Told())
    text.answers, text.begun = text.answers + 1, False
    return text.answers


def tell_echoes() -> None:
    """Put this in place, for all sessions; a second call changes nothing."""
    will_rerun, finished = SessionState.on_script_will_rerun, SessionState.on_script_finished
    if hasattr(will_rerun, "hears") or not all(hasattr(at, name) for at, names in _NEEDED.items() for name in names):
        return

    def hear(self: SessionState, says: WidgetStates | None, **rest: Any) -> None:
        """Before a run: believe what the browser says, but for its echoes."""
        message, seen, table = _told(self), _seen(says), {}
        due = message.answers + message.begun
        message.behind = says is not None and seen is not None and seen < due and not rest.get("is_history_navigation")
        if message.behind and says is not None and seen is not None:
            states, (says, table) = says, _without_echoes(self, message, says, seen, due)
            message.said = states
            self.query_params._query_params = dict(message.address)
            self.query_params.set_initial_query_params_from_current()
        else:
            message.sets.clear()
            message.said = says or message.said
        message.begun = True
        try:
            will_rerun(self, says, **rest)
        finally:  # a callback's own words come after these
            self._new_session_state.update({**table, **self._new_session_state})

    def finish(self: SessionState, drawn: frozenset[str], *, remove_stale_widgets: bool = True) -> None:
        """After a run: see to it that a browser which could not know its address gets it whole."""
        finished(self, drawn, remove_stale_widgets=remove_stale_widgets)
        text = _told(self)
        if text.behind and remove_stale_widgets:
            text.behind = False
            _correct_address(self, drawn)
            self.query_params._send_query_param_msg()
        text.address = dict(self.query_params._query_params)

    hear.hears = True  # type: ignore[attr-defined]
    SessionState.on_script_will_rerun = hear  # type: ignore[method-assign, assignment]
    SessionState.on_script_finished = finish  # type: ignore[method-assign]


def _told(state: SessionState) -> Told:
    return state._new_session_state.get(_TOLD) or state._old_state.setdefault(_TOLD, Told())


def _seen(says: WidgetStates | None) -> int | None:
    """Take the number of the answer that the browser had on screen out of what it says."""
    for i, state in enumerate(says.widgets if says is not None else ()):
        if state.id == SEEN:
            del says.widgets[i]  # type: ignore[union-attr]
            number = state.string_value
            return int(number) if number.isdecimal() and len(number) < 10 else None
    return None


def _without_echoes(
    state: SessionState, text: Told, says: WidgetStates, seen: int, due: int
) -> tuple[WidgetStates, dict[str, Any]]:
    """What the browser says less its echoes, and what the fields hold whose news it has not seen, to be told again.

    A field holds what it was set to, unless a person has touched it since: then the browser says of it neither what it
    said before, nor what the answers seen since have put there, nor what the news on its way may have begun to put
    there. The news would undo what was touched, so that is told again as well.
    """
    ids, kinds = state._key_id_mapper, state._new_widget_state.widget_metadata
    for key, value in state._new_session_state.items():
        if ids.get_id_from_key(key) in kinds:
            text.sets.setdefault(key, []).append((due, value))
    before = {widget.id: widget for widget in text.said.widgets}
    touched = {widget.id: widget for widget in says.widgets if widget != before.get(widget.id)}
    now: dict[str, Any] = {}
    for widget in says.widgets:
        sets = text.sets.get(ids._id_key_mapping.get(widget.id, ""), [])
        if sets:
            now[widget.id] = kinds[widget.id].deserializer(session_state.unpack_widget_state_value(widget))
            values = [value for number, value in sets if number <= seen]
            if values and values[-1] == now[widget.id]:
                touched.pop(widget.id, None)
            elif values:
                touched[widget.id] = widget
    text.sets = {
        key: new for key, sets in text.sets.items() if (new := [results for results in sets if results[0] > seen])
    }
    echoes: set[str] = set()
    by_name = {key: sets[-1][1] for key, sets in text.sets.items()}
    for key, sets in text.sets.items():
        name = ids.get_id_from_key(key, "")
        if name in touched and (len(touched) == 1 or all(now[name] != news for _, news in sets)):
            by_name[key] = now[name]
        elif name in now:
            echoes.add(name)
    return WidgetStates(widgets=[widget for widget in says.widgets if widget.id not in echoes]), by_name


def _correct_address(state: SessionState, drawn: frozenset[str]) -> None:
    """Make the address say what the drawn fields hold, and leave out those that hold their default."""
    address = state.query_params
    for name, bound in address._bindings_by_param.items():
        if bound.widget_id not in drawn:
            continue
        kind, value = state._new_widget_state.widget_metadata[bound.widget_id], state[bound.widget_id]
        if value == kind.deserializer(None):
            address._query_params.pop(name, None)
        else:
            text = query_params._coerce_value_for_query_url(kind.serializer(value), bound.value_type)
            address._query_params[name] = text
