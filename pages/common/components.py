"""Custom components, registered once per process from ``assets/components`` (no build step)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st
import streamlit.components.v2

from core.limits import cached
from pages.common.theme import css_variables, drawn_theme
from pages.streamlit_patches import answered

_FOLDER = Path(__file__).parents[2] / "assets" / "components"


@cached("results_kept")
def component(name: str) -> Any:
    """Return the mount function of ``assets/components/<name>.js`` with its ``.css`` (and the palette's variables).

    A long script keeps its functions in ``<name>.<part>.js`` files, which are put in front of it.
    """
    parts = [*sorted(_FOLDER.glob(f"{name}.*.js")), _FOLDER / f"{name}.js"]
    script = "\n".join(part.read_text(encoding="utf-8") for part in parts)
    style = (_FOLDER / f"{name}.css").read_text(encoding="utf-8")
    return streamlit.components.v2.component(
        f"napkin_{name}",
        html='<div class="root"></div>',
        css=f":host, .root {{ {css_variables()} }}\n{style}",
        js=script,
    )


def copy_link(
    query: str, *, key: str, at: str = "", projector: bool = False, take: Callable[[object], None] | None = None
) -> None:
    """Draw a button that copies this page's address with ``query`` (every field spelled out).

    at: the key of the part of the page that the browser brings into sight, once after loading; may be empty.
    projector: whether arrow keys step through presets; ``take`` is called with the index of the one stepped to.

    It also asks for a rerun when the theme is no longer the one that the logo and the charts were drawn for, and has
    the browser say from then on that it has seen the page up to here.
    """
    data = {"query": query, "drawn": drawn_theme(), "answer": answered(), "at": at, "projector": projector}

    def step() -> None:
        if take:
            take(getattr(st.session_state.get(key), "step", None))

    component("copylink")(data=data, key=key, on_theme_change=_redraw, on_step_change=step)


def _redraw() -> None:
    """Redraw the whole app, because the logo and charts change with the theme."""
    st.rerun(scope="app")
