"""A widget that asks whether its own key holds nothing looks at that key, and not at a copy of the whole state."""

from __future__ import annotations

from functools import partial
from typing import Any

from streamlit.elements.widgets import number_input, selectbox, text_widgets


def patch() -> None:
    """Put this in place for all sessions."""
    for module in (number_input, selectbox, text_widgets):
        module.get_session_state = partial(OneKey, module.get_session_state)  # type: ignore[attr-defined]


class OneKey:
    """A session's state to a widget, which only asks ``key in state and state[key] is None``."""

    def __init__(self, own: Any) -> None:
        self._state, self.filtered_state = own(), self

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: str) -> Any:
        try:
            return self._state[key]
        except KeyError:
            return self  # which is not None
