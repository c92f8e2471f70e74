"""How a document of ours looks: on paper-like light, on the board at night, and printed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from core.views.common.palette import DARK, LIGHT, Palette

_SHEET = Path(__file__).parents[3] / "assets" / "report.css"


@lru_cache(maxsize=1)
def style() -> str:
    """The whole style sheet: light where it is printed, whatever the screen is."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{ {_root('dark', DARK)} }}"
    return f"{_root('light', LIGHT)}\n{dark}\n{_SHEET.read_text(encoding='utf-8')}"


def _root(scheme: str, palette: Palette) -> str:
    colours = " ".join(f"--np-{name}: {colour};" for name, colour in palette.as_dict().items())
    return f":root {{ color-scheme: {scheme}; {colours} }}"
