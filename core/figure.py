"""What every figure shares: type, axes with units, thin rules, no chart junk.

Figures are plain dicts in plotly's schema (no plotly import), made from a `Palette`; numpy arrays go in as they are.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from core.palette import Palette

Figure: TypeAlias = dict[str, Any]

SANS = "Inter, system-ui, sans-serif"
MONO = "'JetBrains Mono', ui-monospace, monospace"


def axis(palette: Palette, title: str, **options: Any) -> dict[str, Any]:
    """One axis: ``title`` with its unit, quiet grid, ticks in the product's type. ``options`` override."""
    return {
        "title": {"text": title, "font": {"family": SANS, "size": 13, "color": palette.muted}, "standoff": 8},
        "tickfont": {"family": MONO, "size": 12, "color": palette.muted},
        "gridcolor": palette.border,
        "linecolor": palette.border,
        "zeroline": False,
        "automargin": True,
        **options,
    }


def layout(palette: Palette, *, height: int, **options: Any) -> dict[str, Any]:
    """The base layout of a figure ``height`` pixels tall. ``options`` override."""
    return {
        "template": {"layout": {}},
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 16, "b": 8},
        "paper_bgcolor": palette.background,
        "plot_bgcolor": palette.background,
        "font": {"family": SANS, "size": 13, "color": palette.text},
        "showlegend": False,
        "dragmode": False,
        "hoverlabel": {
            "bgcolor": palette.surface,
            "bordercolor": palette.border,
            "font": {"family": MONO, "size": 12, "color": palette.text},
        },
        **options,
    }


def label(palette: Palette, text: str, **options: Any) -> dict[str, Any]:
    """A text annotation without arrow, for labelling data directly instead of by legend."""
    return {
        "text": text,
        "showarrow": False,
        "font": {"family": SANS, "size": 12, "color": palette.text},
        **options,
    }
