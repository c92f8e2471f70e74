"""How a report looks, on a screen and on paper."""

from __future__ import annotations

from pathlib import Path

from core.limits import cached
from core.views.common.palette import LIGHT

_SHEET = Path(__file__).parents[3] / "assets" / "report.css"


@cached("tables_kept")
def style() -> str:
    """Return the whole style sheet."""
    colors = " ".join(f"--np-{name}: {color};" for name, color in LIGHT.as_dict().items())
    return f":root {{ color-scheme: light; {colors} }}\n{_SHEET.read_text(encoding='utf-8')}"
