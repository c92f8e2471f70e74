"""A text or choice looks up its own value in session state, not a copy of everything that stands there."""

from __future__ import annotations

from types import SimpleNamespace

from streamlit.elements.widgets import selectbox, text_widgets
from streamlit.runtime.state import get_session_state


def patch() -> None:
    """Put this in place, for all sessions."""
    text_widgets.get_session_state = selectbox.get_session_state = _unfiltered  # type: ignore[assignment]


def _unfiltered() -> SimpleNamespace:
    return SimpleNamespace(filtered_state=get_session_state())
