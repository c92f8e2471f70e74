"""A change that reaches a server before it has drawn the page is of the whole page, not of a part it has not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession

from pages.streamlit_patches.rejoin import patch


@pytest.mark.parametrize(("drawn", "automatic", "asked"), [(0, False, ""), (1, False, "part"), (0, True, "part")])
def test_what_a_session_is_asked_for(monkeypatch: pytest.MonkeyPatch, drawn: int, automatic: bool, asked: str) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(AppSession, "request_rerun", lambda _self, state: seen.append(state))
    patch()
    session: Any = SimpleNamespace(_fragment_storage=SimpleNamespace(registration_sequence=lambda: drawn))
    AppSession.request_rerun(session, ClientState(fragment_id="part", is_auto_rerun=automatic))
    AppSession.request_rerun(session, None)
    assert [state.fragment_id if state else None for state in seen] == [asked, None]


def test_a_session_that_has_drawn_nothing_says_so() -> None:
    """The name this leans on."""
    from streamlit.runtime.fragment import MemoryFragmentStorage

    assert MemoryFragmentStorage().registration_sequence() == 0
