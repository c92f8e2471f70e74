"""The theme is read from the configuration once, and not at the start of every run."""

from __future__ import annotations

from functools import cache

from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session


def patch() -> None:
    """Put this in place, for runs to come; the configuration no longer changes."""
    read = app_session._populate_theme_msg

    @cache
    def once(section: str) -> CustomThemeConfig:
        theme = CustomThemeConfig()
        read(theme, section)
        return theme

    def populate(message: CustomThemeConfig, section: str = "theme") -> None:
        message.MergeFrom(once(section))

    app_session._populate_theme_msg = populate
