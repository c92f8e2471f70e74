"""What Streamlit 1.67 works out anew in every rerun of every visitor although it need not, made cheap.

Each is a replacement of one private name, found by profiling (a quarter of a rerun of a page of many fields together);
`tests/app/test_thrift.py` holds the outcome to Streamlit's own. A Streamlit without the name is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MethodType
from typing import Any

import streamlit as st
from streamlit import config
from streamlit.delta_generator import DeltaGenerator
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session, metrics_util
from streamlit.runtime.scriptrunner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType
from streamlit.runtime.state.safe_session_state import SafeSessionState


def spare_reruns() -> None:
    """Put the cheap ways in place; a second call changes nothing."""
    _theme_once()
    _one_key_at_a_time()
    _nobody_counts_commands()
    _nobody_interrupts()


def _theme_once() -> None:
    """Each run opens with the theme, put together from 200 settings that nobody changes while the server runs."""
    populate = getattr(app_session, "_populate_theme_msg", None)
    if populate is None or hasattr(populate, "thrifty"):
        return

    @lru_cache
    def made(section: str) -> CustomThemeConfig:
        message = CustomThemeConfig()
        populate(message, section)
        return message

    def once(message: CustomThemeConfig, section: str = "theme") -> None:
        if made(section).ByteSize():  # merging even an empty message into another marks it as present
            message.MergeFrom(made(section))

    once.thrifty = True  # type: ignore[attr-defined]
    app_session._populate_theme_msg = once  # type: ignore[attr-defined]


class StateByKey(Mapping[str, Any]):
    """A session's state by its users' keys, looked up one by one where Streamlit copies all of them.

    Every text box and every choice asks for the state to look at its own key, so a page of n fields made n copies of
    n values.
    """

    def __init__(self, state: SafeSessionState) -> None:
        self._safe = state

    def __getitem__(self, key: str) -> Any:
        with self._safe._lock:
            return self._safe._state[key]

    def __contains__(self, key: object) -> bool:
        with self._safe._lock:
            return key in self._safe._state

    def _all(self) -> dict[str, Any]:
        with self._safe._lock:
            return self._safe._state.filtered_state

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


def _one_key_at_a_time() -> None:
    if isinstance(getattr(SafeSessionState, "filtered_state", None), property):
        SafeSessionState.filtered_state = property(StateByKey)  # type: ignore[assignment, method-assign]


def _nobody_counts_commands() -> None:
    """Every command comes wrapped in a count of its uses, which without usage statistics counts nothing."""
    if config.get_option("browser.gatherUsageStats"):
        return
    for kind in DeltaGenerator.__mro__[:-1]:
        for name, command in list(vars(kind).items()):
            if _counts(command):
                setattr(kind, name, command.__wrapped__)
    for name, command in list(vars(st).items()):
        if (
            isinstance(command, MethodType)
            and isinstance(command.__self__, DeltaGenerator)
            and _counts(command.__func__)
        ):
            setattr(st, name, MethodType(command.__func__.__wrapped__, command.__self__))


def _counts(command: object) -> bool:
    code = getattr(command, "__code__", None)
    return hasattr(command, "__wrapped__") and code is not None and code.co_filename == metrics_util.__file__


def _nobody_interrupts() -> None:
    """A script asks at every element and every look at the state whether to stop; mostly nobody has asked it to.

    Streamlit's own way also looks after fragments that run in parallel, in threads of their own; no page has any.
    """
    own: Any = getattr(ScriptRunner, "_maybe_handle_execution_control_request", None)
    if own is None or hasattr(own, "thrifty"):
        return

    def ask(self: ScriptRunner) -> None:
        requests = self.__dict__.get("_requests")
        if getattr(requests, "_state", None) is not ScriptRequestType.CONTINUE:
            own(self)

    ask.thrifty = True  # type: ignore[attr-defined]
    ScriptRunner._maybe_handle_execution_control_request = ask  # type: ignore[method-assign]
