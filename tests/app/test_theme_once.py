"""The theme that a run begins with, read once, is the one that Streamlit reads."""

from __future__ import annotations

import pytest
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session

from pages.streamlit_patches import theme


def test_the_theme_is_read_once_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    read = app_session._populate_theme_msg
    asked: list[str] = []

    def counted(message: CustomThemeConfig, section: str = "theme") -> None:
        asked.append(section)
        read(message, section)

    monkeypatch.setattr(app_session, "_populate_theme_msg", counted)
    theme.patch()
    sections = ("theme", "theme.light", "theme.dark.sidebar")
    for _ in range(2):
        for section in sections:
            mine, theirs = CustomThemeConfig(), CustomThemeConfig()
            app_session._populate_theme_msg(mine, section)
            read(theirs, section)
            assert mine == theirs
            assert mine.ByteSize()
    assert asked == list(sections)
