"""For a visitor from another replica, or from before a restart, who has changed a field, the whole page is drawn."""

from __future__ import annotations

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession


def patch() -> None:
    """Put this in place, for all sessions."""
    own = AppSession.request_rerun

    def ask(self: AppSession, client_state: ClientState | None) -> None:
        part = client_state is not None and client_state.fragment_id and not client_state.is_auto_rerun
        if client_state is not None and part and not self._fragment_storage.registration_sequence():
            client_state.fragment_id = ""
        own(self, client_state)

    AppSession.request_rerun = ask  # type: ignore[method-assign]
