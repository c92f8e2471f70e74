"""A visitor who comes from another replica, or from before a restart, and has changed a field on the way.

A browser whose server is gone connects to another, asks for the whole page, and from then on for the part whose field
was changed. Until that server has drawn the page it knows no such part, and Streamlit 1.67 drops the request: the field
then says one thing and the answer another, until the next change. Such a request asks for the whole page instead.
"""

from __future__ import annotations

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession


def welcome_back() -> None:
    """Put this in place, for all sessions; a second call changes nothing. A Streamlit without the names is left."""
    own = AppSession.request_rerun
    if hasattr(own, "welcomes"):
        return

    def ask(self: AppSession, client_state: ClientState | None) -> None:
        parts = getattr(self, "_fragment_storage", None)
        count = getattr(parts, "registration_sequence", None)
        if client_state and client_state.fragment_id and not client_state.is_auto_rerun and count and not count():
            client_state.fragment_id = ""
        own(self, client_state)

    ask.welcomes = True  # type: ignore[attr-defined]
    AppSession.request_rerun = ask  # type: ignore[method-assign]
