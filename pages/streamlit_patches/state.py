"""A session's state, kept and looked up without going through all of it.

Before each run Streamlit 1.67 looks up every value of a session in four places and puts it back where most of them
were, and a look for a key that is not there raises three errors one in another. Here only what has changed is moved.
`tests/app/test_again.py` holds the outcome to Streamlit's own. A Streamlit without one of the names is left as it is.
"""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from streamlit.cursor import RunningCursor
from streamlit.runtime.state.common import require_valid_user_key, unpack_widget_state_value
from streamlit.runtime.state.session_state import KeyIdMapper, Serialized, SessionState, Value, WStates
from streamlit.runtime.state.session_state_proxy import SessionStateProxy

_NEEDED: dict[Any, tuple[str, ...]] = {
    SessionState: ("_compact_state", "_old_state", "_new_session_state", "_new_widget_state", "_key_id_mapper"),
    WStates: ("states", "widget_metadata", "set_widget_metadata"),
    KeyIdMapper: ("_key_id_mapping",),
    RunningCursor: ("_advance", "root_container", "parent_path"),
}


def spare_state() -> None:
    """Put this in place for all sessions; a second call changes nothing."""
    if hasattr(SessionState._compact_state, "spares") or not all(
        hasattr(owner, name) for owner, names in _NEEDED.items() for name in names
    ):
        return
    moved.spares = True  # type: ignore[attr-defined]
    SessionState._compact_state = moved  # type: ignore[method-assign]
    WStates.__getitem__ = read  # type: ignore[method-assign]
    SessionStateProxy.get = look  # type: ignore[method-assign, assignment]
    SessionStateProxy.__contains__ = held  # type: ignore[method-assign]
    SessionStateProxy.__setitem__ = getattr(SessionStateProxy.__setitem__, "__wrapped__", SessionStateProxy.__setitem__)  # type: ignore[method-assign]
    RunningCursor.__deepcopy__ = copied  # type: ignore[attr-defined]


def moved(self: SessionState) -> None:
    """Before a run: what the run before has set, and what the browser has said, becomes what was.

    A value that is not among them stays where it is, unless its key has become a widget's, which is known by its id,
    or its widget shows another value than it holds.
    """
    old, by_name, states = self._old_state, self._new_session_state, self._new_widget_state
    ids = self._key_id_mapper._key_id_mapping
    keyed = {ids[key] for key in old if key in ids}
    parts = {text for text, kind in states.widget_metadata.items() if kind.presenter is not None and text in old}
    for key in keyed | parts | set(states.states) | {ids.get(key, key) for key in by_name}:
        with suppress(KeyError):  # the browser speaks of a widget that was never drawn
            old[key] = self[key]
    by_name.clear()
    states.clear()


def read(self: WStates, k: str) -> Any:
    """What a widget holds; read from what the browser has said the first time that it is asked for."""
    state = self.states[k]
    if isinstance(state, Value):
        return state.value
    kind = self.widget_metadata[k]
    result = kind.deserializer(unpack_widget_state_value(state.value))
    sent: Any = state.value.WhichOneof("value")
    if kind.value_type != sent:
        self.set_widget_metadata(replace(kind, value_type=sent))
    self.states[k] = Value(result)
    return result


_ABSENT = object()


def look(self: SessionStateProxy, key: Any, default: Any = None) -> Any:
    """``st.session_state.get``."""
    ctx = getattr(threading.current_thread(), "streamlit_script_run_ctx", None)
    if ctx is None:
        return MutableMapping.get(self, key, default)
    key = str(key)
    require_valid_user_key(key)
    safe = ctx.session_state
    safe._yield_callback()
    with safe._lock:
        result = _found(safe._state, key)
    return default if result is _ABSENT else result


def held(self: SessionStateProxy, key: object) -> bool:
    """``key in st.session_state``."""
    return look(self, key, _ABSENT) is not _ABSENT


def _found(state: SessionState, key: str) -> Any:
    states = state._new_widget_state
    name = state._key_id_mapper._key_id_mapping.get(key, key)
    kind = states.widget_metadata.get(name)
    stated = states.states.get(name)
    if isinstance(stated, Serialized) or (kind is not None and kind.presenter is not None):
        with suppress(KeyError):
            return state[key]
        return _ABSENT
    if key in state._new_session_state:
        return state._new_session_state[key]
    if stated is not None:
        return stated.value
    return state._old_state.get(name, state._old_state.get(key, _ABSENT))


def copied(self: RunningCursor, _memo: Any) -> RunningCursor:
    """A copy of a place on the page. Every fragment's rerun begins with copies of places and of what stands there."""
    cursor = RunningCursor(self._root_container, self._parent_path, self._transient_index)
    cursor._index = self._index
    cursor._transient_elements._data.update(self._transient_elements._data)
    return cursor
