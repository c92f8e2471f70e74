"""What a rerun draws just as the run before did is sent again as it was, and not worked out anew.

A change of one field draws the whole page again, and of its sixty elements ten differ. Streamlit 1.67 checks, hashes
and registers each of them from the beginning. Here a command that is called in a fragment's rerun as in the rerun
before (same place, same arguments, its widget holding the same value, which nobody has set) sends the very message that
it made then, and claims the same widget. Everything else goes Streamlit's way: runs of the whole page, changed
widgets, those that the script or the address has set. `tests/app/test_again.py` holds what is sent, and what is held
afterwards, to Streamlit's own. A Streamlit without one of the names is left as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import MethodType
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_cache import create_reference_msg
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext, ThreadState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState

COMMANDS = (
    "button",
    "columns",
    "container",
    "expander",
    "html",
    "markdown",
    "number_input",
    "plotly_chart",
    "segmented_control",
    "selectbox",
    "slider",
    "text_input",
    "toggle",
)

MOST_BYTES = 32768
"""A longer message is not kept: a session keeps one for each place on its page."""

_VALUES = frozenset((str, int, float, bool, type(None)))
"""What a widget may hold that Streamlit need not copy before it gives it away."""

_NONE = object()

_NEEDED = {
    DeltaGenerator: ("_active_dg", "_cursor", *COMMANDS),
    ScriptRunContext: ("enqueue", "fragment_ids_this_run", "_enqueue"),
    SessionState: ("_new_session_state", "_new_widget_state", "_old_state", "query_params", "_get_widget_metadata"),
}


@dataclass(slots=True)
class _Drawn:
    """What a command sent: the call, fragment and place, messages with the kind of what each made, and its widget.

    ids: of elements, and of keys, that only one command of a run may claim. usual: whether ``value`` is the default.
    """

    said: tuple[Any, ...]
    fragment: str
    messages: list[ForwardMsg]
    blocks: list[tuple[type, str | None]]
    ids: frozenset[str]
    keys: frozenset[str]
    widget: str
    key: str
    value: Any
    usual: bool


def draw_again() -> None:
    """Put this in place for all sessions; a second call changes nothing."""
    names = {owner: {*dir(owner), *getattr(owner, "__annotations__", ())} for owner in _NEEDED}
    if hasattr(DeltaGenerator.html, "again") or not all(names[owner].issuperset(_NEEDED[owner]) for owner in _NEEDED):
        return
    for name in COMMANDS:
        owner = next(kind for kind in DeltaGenerator.__mro__ if name in vars(kind))
        way = _again(name, getattr(owner, name))
        setattr(owner, name, way)
        bound: Any = getattr(st, name)
        setattr(st, name, MethodType(way, bound.__self__))


def _again(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """The command ``name`` that looks first whether it was called so before."""

    @wraps(own)
    def command(self: DeltaGenerator, *args: Any, **kwargs: Any) -> Any:
        ctx: ScriptRunContext | None = getattr(threading.current_thread(), "streamlit_script_run_ctx", None)
        if ctx is None or not ctx.fragment_ids_this_run or ctx.is_history_navigation:
            return own(self, *args, **kwargs)
        dg, now = self._active_dg, ThreadState.get()
        cursor, within = dg._provided_cursor, now.delta_path
        if cursor is None or cursor.is_locked or not now.fragment_id or not within or now.in_fragment_callback:
            return own(self, *args, **kwargs)
        place = (cursor.root_container, *cursor.parent_path, cursor.index)
        if place[: len(within)] != within or (dg._form_data is not None and dg._form_data.form_id):
            return own(self, *args, **kwargs)
        table: dict[tuple[int, ...], _Drawn] = vars(ctx.fragment_storage).setdefault("_drawn", {})
        drawn, results = table.get(place), (name, args, kwargs)
        if drawn is not None and drawn.said == results and drawn.fragment == now.fragment_id and _holds(ctx, drawn):
            return _send(ctx, dg, drawn)
        table.pop(place, None)
        result = _Noted(ctx, now.fragment_id, place, results)
        with result:
            given = own(self, *args, **kwargs)
        if (drawn := result.drawn(given)) is not None:
            table[place] = drawn
        return given

    command.again = True  # type: ignore[attr-defined]
    return command


def _holds(ctx: ScriptRunContext, drawn: _Drawn) -> bool:
    """Claim the elements of ``drawn``; False, and nothing claimed, where Streamlit has to look at them again."""
    shared = ctx.shared
    if drawn.widget:
        state: SessionState = ctx.session_state._state
        with ctx.session_state._lock:
            if not _unchanged(state, drawn):
                return False
    elif not drawn.ids:
        return True
    ids, keys = shared.widget_ids_this_run, shared.widget_user_keys_this_run
    if any(text in ids for text in drawn.ids) or any(text in keys for text in drawn.keys):
        return False
    for text in drawn.ids:
        ids.check_and_add(text)
    for text in drawn.keys:
        keys.check_and_add(text)
    return True


def _unchanged(state: SessionState, drawn: _Drawn) -> bool:
    """Whether the widget holds what it held, and neither script nor address has a say in it."""
    widget, key = drawn.widget, drawn.key
    kind = state._new_widget_state.widget_metadata.get(widget)
    if kind is None or key in state._new_session_state or key in state._old_state:
        return False
    bound = kind.bind is not None
    if widget in state._new_widget_state.states:
        value = state._new_widget_state[widget]
    elif bound and state.query_params.get_initial_value(key) is not None:
        return False
    else:
        value = state._old_state.get(widget, _NONE)
    if type(value) is not type(drawn.value) or value != drawn.value:
        return False
    if bound and drawn.usual:
        state.query_params.discard_param_no_forward_msg(key)
    return True


def _send(ctx: ScriptRunContext, dg: DeltaGenerator, drawn: _Drawn) -> Any:
    """Send what was sent, and give what the command gave."""
    generators: list[DeltaGenerator] = []
    for message, (kind, block) in zip(drawn.messages, drawn.blocks, strict=True):
        cacheable = message.metadata.cacheable and message.hash in ctx.cached_message_hashes
        ctx._enqueue(create_reference_msg(message) if cacheable else message)
        parent = generators[0] if generators else dg
        at: Any = parent._cursor
        item = kind(parent._root_container, at.open_block() if block else at.lock_element(), parent, block)
        item._form_data = dg._form_data
        item._creating_fragment_id = drawn.fragment if block else None
        generators.append(item)
    if drawn.said[0] == "columns":
        return generators[1:]
    if drawn.blocks[0][1]:
        if drawn.widget:
            generators[0].open = drawn.value  # type: ignore[attr-defined]
        return generators[0]
    return drawn.value if drawn.widget else generators[0]


class _Noted:
    """Notes what a command sends and claims while it runs."""

    def __init__(self, ctx: ScriptRunContext, fragment: str, place: tuple[int, ...], anies: tuple[Any, ...]) -> None:
        self.ctx, self.fragment, self.place, self.said = ctx, fragment, place, anies
        self.messages: list[ForwardMsg] = []

    def __enter__(self) -> None:
        self.ids = self.ctx.shared.widget_ids_this_run.snapshot()
        self.keys = self.ctx.shared.widget_user_keys_this_run.snapshot()

        self.before = vars(self.ctx).get("enqueue")
        send = self.ctx.enqueue

        def note(message: ForwardMsg) -> None:
            self.messages.append(message)
            send(message)

        vars(self.ctx)["enqueue"] = note

    def __exit__(self, *_: object) -> None:
        if self.before is None:
            del vars(self.ctx)["enqueue"]
        else:
            vars(self.ctx)["enqueue"] = self.before

    def drawn(self, given: Any) -> _Drawn | None:
        """What there is to keep; ``None`` where the next run has to ask Streamlit again."""
        places = [tuple(message.metadata.delta_path) for message in self.messages]
        columns = self.said[0] == "columns"
        inner = [(*self.place, i) for i in range(len(given))] if columns else []
        if places != [self.place, *inner] or any(m.ByteSize() > MOST_BYTES for m in self.messages):
            return None
        ids = self.ctx.shared.widget_ids_this_run.snapshot() - self.ids
        keys = self.ctx.shared.widget_user_keys_this_run.snapshot() - self.keys
        state = self.ctx.session_state._state
        results = [kind for text in ids if (kind := state._get_widget_metadata(text)) is not None]
        widget, key, value, usual = "", "", None, False
        if results:
            kind: WidgetMetadata[Any] = results[0]
            named = state._key_id_mapper.id_key_mapping.get(kind.id)
            asks = kind.presenter or kind.persist_state or kind.disabled
            if len(ids) > 1 or named is None or asks or named in state._new_session_state or _told(self.messages[0]):
                return None
            widget, key, value = kind.id, named, state[kind.id]
            if type(value) not in _VALUES:
                return None
            usual = value == kind.deserializer(None)
        blocks = [_kind(message, given, i) for i, message in enumerate(self.messages)]
        return _Drawn(self.said, self.fragment, self.messages, blocks, ids, keys, widget, key, value, usual)


def _told(message: ForwardMsg) -> bool:
    """Whether a message tells a field what to hold."""
    element = message.delta.new_element
    kind = element.WhichOneof("type")
    return bool(kind and getattr(getattr(element, kind), "set_value", False))


def _kind(message: ForwardMsg, given: Any, index: int) -> tuple[type, str | None]:
    """The class of what stands for a message's element on the server, and the kind of a block."""
    block = message.delta.add_block.WhichOneof("type") if message.delta.HasField("add_block") else None
    if block is None:
        return DeltaGenerator, None
    return (type(given) if isinstance(given, DeltaGenerator) else DeltaGenerator), block
