"""Changes made faster than the server answers: what a browser says of fields whose news it has not seen is an echo."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.state import query_params
from streamlit.runtime.state.common import unpack_widget_state_value
from streamlit.runtime.state.session_state import SessionState

SEEN = "napkin:seen"
"""Comes among the fields: the number of the answer that the browser had on screen."""

_TOLD = "napkin:told"


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
    """The number of the answer that ends here."""
    told: Told = st.session_state.setdefault(_TOLD, Told())
    told.answers, told.begun = told.answers + 1, False
    return told.answers


def patch() -> None:
    """Put this in place, for all sessions."""
    will_rerun, finished = SessionState.on_script_will_rerun, SessionState.on_script_finished

    def hear(self: SessionState, says: WidgetStates | None, **rest: Any) -> None:
        """Before a run: believe what the browser says, but for its echoes."""
        told, seen, held = _told(self), _seen(says), {}
        due = told.answers + told.begun
        told.behind = says is not None and seen is not None and seen < due and not rest.get("is_history_navigation")
        if told.behind and says is not None and seen is not None:
            said, (says, held) = says, _without_echoes(self, told, says, seen, due)
            told.said = said
            self.query_params._query_params = dict(told.address)
            self.query_params.set_initial_query_params_from_current()
        else:
            told.sets.clear()
            told.said = says or told.said
        told.begun = True
        try:
            will_rerun(self, says, **rest)
        finally:  # a callback's own words come after these
            self._new_session_state.update({**held, **self._new_session_state})

    def finish(self: SessionState, drawn: frozenset[str], *, remove_stale_widgets: bool = True) -> None:
        """After a run: see to it that a browser which could not know its address gets it whole."""
        finished(self, drawn, remove_stale_widgets=remove_stale_widgets)
        told = _told(self)
        if told.behind and remove_stale_widgets:
            told.behind = False
            _correct_address(self, drawn)
            self.query_params._send_query_param_msg()
        told.address = dict(self.query_params._query_params)

    SessionState.on_script_will_rerun = hear  # type: ignore[method-assign, assignment]
    SessionState.on_script_finished = finish  # type: ignore[method-assign]


def _told(state: SessionState) -> Told:
    return state._new_session_state.get(_TOLD) or state._old_state.setdefault(_TOLD, Told())


def _seen(says: WidgetStates | None) -> int | None:
    """Take the number of the answer that the browser had on screen out of what it says."""
    for i, one in enumerate(says.widgets if says is not None else ()):
        if one.id == SEEN:
            del says.widgets[i]  # type: ignore[union-attr]
            number = one.string_value
            return int(number) if number.isdecimal() and len(number) < 10 else None
    return None


def _without_echoes(
    state: SessionState, told: Told, says: WidgetStates, seen: int, due: int
) -> tuple[WidgetStates, dict[str, Any]]:
    """What the browser says less its echoes, and what the fields hold whose news it has not seen, to be told again.

    A field holds what it was set to, unless a person has touched it since: then the browser says of it neither what it
    said before, nor what the answers seen since have put there, nor what the news on its way may have begun to put
    there. The news would undo what was touched, so that is told again as well.
    """
    ids, kinds = state._key_id_mapper, state._new_widget_state.widget_metadata
    for key, value in state._new_session_state.items():
        if ids.get_id_from_key(key) in kinds:
            told.sets.setdefault(key, []).append((due, value))
    before = {one.id: one for one in told.said.widgets}
    touched = {one.id: one for one in says.widgets if one != before.get(one.id)}
    now: dict[str, Any] = {}
    for one in says.widgets:
        sets = told.sets.get(ids._id_key_mapping.get(one.id, ""), [])
        if sets:
            now[one.id] = kinds[one.id].deserializer(unpack_widget_state_value(one))
            shown = [value for number, value in sets if number <= seen]
            if shown and shown[-1] == now[one.id]:
                touched.pop(one.id, None)
            elif shown:
                touched[one.id] = one
    told.sets = {key: new for key, sets in told.sets.items() if (new := [one for one in sets if one[0] > seen])}
    echoes: set[str] = set()
    held = {key: sets[-1][1] for key, sets in told.sets.items()}
    for key, sets in told.sets.items():
        name = ids.get_id_from_key(key, "")
        if name in touched and (len(touched) == 1 or all(now[name] != news for _, news in sets)):
            held[key] = now[name]
        elif name in now:
            echoes.add(name)
    return WidgetStates(widgets=[one for one in says.widgets if one.id not in echoes]), held


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
