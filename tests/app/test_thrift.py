"""The cheap ways of a rerun lead to what Streamlit's own lead to."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from inspect import signature
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import pytest
import streamlit as st
from streamlit import config
from streamlit.delta_generator import DeltaGenerator
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.scriptrunner import RerunException, ScriptRunner, StopException
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests
from streamlit.runtime.state import SessionState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.safe_session_state import SafeSessionState

from pages.streamlit_patches.thrift import StateByKey, spare_reruns

ROOT = Path(__file__).parents[2]
SECTIONS = ("theme", "theme.light", "theme.dark", "theme.sidebar", "theme.light.sidebar", "theme.dark.sidebar")


def commands() -> list[tuple[Any, str, Any]]:
    """Every command of Streamlit: where it is, its name, and what it is."""
    places: list[Any] = [*DeltaGenerator.__mro__[:-1], st]
    found = [(place, name, command) for place in places for name, command in vars(place).items()]
    return [one for one in found if isinstance(one[2], FunctionType | MethodType)]


@pytest.fixture
def thrifty(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The cheap ways for one test; gives Streamlit's own way of making a theme."""
    own = app_session._populate_theme_msg
    monkeypatch.setattr(app_session, "_populate_theme_msg", own)
    monkeypatch.setattr(SafeSessionState, "filtered_state", SafeSessionState.filtered_state)
    ask = "_maybe_handle_execution_control_request"
    monkeypatch.setattr(ScriptRunner, ask, getattr(ScriptRunner, ask))
    for owner, name, command in commands():
        monkeypatch.setattr(owner, name, command)
    spare_reruns()
    return own


def test_the_theme_is_streamlits_own_and_made_once(thrifty: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CONFIG_FILENAMES", [str(ROOT / ".streamlit" / "config.toml")], raising=False)
    for _ in range(2):
        ours, theirs = CustomThemeConfig(), CustomThemeConfig()
        for populate, message in ((app_session._populate_theme_msg, ours), (thrifty, theirs)):
            places = (
                message,
                message.light,
                message.dark,
                message.sidebar,
                message.light.sidebar,
                message.dark.sidebar,
            )
            for place, section in zip(places, SECTIONS, strict=True):
                populate(place, section)
        assert theirs.light.primary_color == "#1f4fa3"
        assert ours.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True)
    asked: list[str] = []
    monkeypatch.setattr(config, "get_options_for_section", asked.append)
    app_session._populate_theme_msg(CustomThemeConfig())
    assert not asked


def test_a_second_call_changes_nothing(thrifty: Any) -> None:
    before = app_session._populate_theme_msg
    spare_reruns()
    assert app_session._populate_theme_msg is before


def test_the_state_by_key_is_streamlits_own(thrifty: Any) -> None:
    state = SessionState()
    safe = SafeSessionState(state, lambda: None)
    state["plain"] = 1
    state["none"] = None
    identity = "$$ID-0123456789abcdef0123456789abcdef-c_x"
    state.register_widget(
        WidgetMetadata(identity, lambda value: value or "typed", lambda value: value, value_type="string_value"), "c_x"
    )
    own = state.filtered_state
    assert own == {"plain": 1, "none": None, "c_x": "typed"}
    by_key = safe.filtered_state
    assert isinstance(by_key, StateByKey)
    assert dict(by_key) == own
    assert len(by_key) == len(own)
    assert repr(by_key) == repr(own)
    for key in (*own, "absent"):
        assert (key in by_key) is (key in own)
    assert all(by_key[key] == value for key, value in own.items())
    with pytest.raises(KeyError):
        by_key["absent"]


def test_commands_are_streamlits_own_without_the_count(request: pytest.FixtureRequest) -> None:
    before = commands()
    request.getfixturevalue("thrifty")
    bare = 0
    for owner, name, command in before:
        now, inner = vars(owner)[name], getattr(command, "__func__", command)
        if now != command:
            assert getattr(now, "__func__", now) is inner.__wrapped__
            assert getattr(now, "__self__", None) is getattr(command, "__self__", None)
            assert signature(now) == signature(command)
            bare += 1
    assert bare > 100
    assert not any(hasattr(command, "__wrapped__") for command in (DeltaGenerator.html, st.html, st.text_input))


def test_a_script_that_is_asked_to_stop_or_rerun_does(thrifty: Any) -> None:
    assert not any("parallel=" in file.read_text(encoding="utf-8") for file in (ROOT / "pages").rglob("*.py"))
    for asked, raised in ((None, None), ("stop", StopException), ("rerun", RerunException)):
        runner: Any = object.__new__(ScriptRunner)
        runner._script_thread, runner._execing = threading.current_thread(), True
        runner._requests = ScriptRequests()
        runner._requests.request_rerun(RerunData())
        runner._requests.on_scriptrunner_ready()
        if asked == "stop":
            runner._requests.request_stop()
        elif asked == "rerun":
            runner._requests.request_rerun(RerunData())
        with pytest.raises(raised) if raised else nullcontext():
            runner._maybe_handle_execution_control_request()
