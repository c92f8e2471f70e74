"""Colours: readable in both themes, and the same in charts, HTML and Streamlit's configuration."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from core.views.common.palette import DARK, LIGHT, ROLES, Palette, contrast, relative_luminance, shade

CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
THEMES = [pytest.param(LIGHT, "light", id="light"), pytest.param(DARK, "dark", id="dark")]


@pytest.mark.parametrize(("palette", "theme"), THEMES)
def test_contrast(palette: Palette, theme: str) -> None:
    for ground in (palette.background, palette.surface):
        for role in ROLES:
            assert contrast(palette.role(role), ground) >= 3, (theme, role)
        assert contrast(palette.text, ground) >= 4.5
        assert contrast(palette.muted, ground) >= 4.5
        assert contrast(palette.accent, ground) >= 4.5


@pytest.mark.parametrize(("palette", "theme"), THEMES)
def test_streamlits_configuration_says_the_same(palette: Palette, theme: str) -> None:
    section = CONFIG["theme"][theme]
    assert section["primaryColor"] == palette.accent
    assert section["backgroundColor"] == palette.background
    assert section["secondaryBackgroundColor"] == palette.surface
    assert section["textColor"] == palette.text
    assert section["borderColor"] == palette.border
    assert section["chartCategoricalColors"] == [palette.role(role) for role in ROLES]
    assert section["chartSequentialColors"][:5] == [
        palette.background,
        palette.surface,
        palette.border,
        palette.text,
        palette.muted,
    ]
    assert len(section["chartSequentialColors"]) == 10


@pytest.mark.parametrize(("palette", "theme"), THEMES)
def test_shades_are_in_order_to_every_eye_and_text_stays_readable_on_them(palette: Palette, theme: str) -> None:
    shades = [shade(palette, i / 20) for i in range(21)]
    assert shades[0] == palette.background
    light = [relative_luminance(colour) for colour in shades]
    assert sorted(light, reverse=theme == "light") == light
    assert len(set(light)) == len(light)
    for colour in shades:
        assert contrast(palette.text, colour) >= 4.5
        assert contrast(palette.accent, colour) >= 3
