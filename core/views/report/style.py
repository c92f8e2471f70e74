"""How a report looks, on a screen and on paper."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from core.views.common.palette import LIGHT

_SHEET = Path(__file__).parents[3] / "assets" / "report.css"


@lru_cache(maxsize=1)
def style() -> str:
    """Return the whole style sheet."""
    colors = " ".join(f"--np-{name}: {color};" for name, color in LIGHT.as_dict().items())
    return f":root {{ color-scheme: light; {colors} }}\n{_SHEET.read_text(encoding='utf-8')}"
