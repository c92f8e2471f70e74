"""Custom components, registered once per process from ``assets/components`` (no build step)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from pages.parts.theme import css_variables

_FOLDER = Path(__file__).parents[2] / "assets" / "components"


@lru_cache(maxsize=32)
def component(name: str) -> Any:
    """The mount function of ``assets/components/<name>.js`` with its ``.css`` (and the palette's variables)."""
    script = (_FOLDER / f"{name}.js").read_text(encoding="utf-8")
    style = (_FOLDER / f"{name}.css").read_text(encoding="utf-8")
    return st.components.v2.component(
        f"napkin_{name}",
        html='<div class="root"></div>',
        css=f":host, .root {{ {css_variables()} }}\n{style}",
        js=script,
    )


def copy_link(query: str, *, key: str) -> None:
    """A button that copies this page's address with ``query`` (every field spelled out)."""
    component("copylink")(data={"query": query}, key=key)


def go_link(label: str, href: str, *, key: str, on_go: Callable[[], None]) -> None:
    """A link to ``href`` whose plain click calls ``on_go`` instead of loading the app again."""
    component("golink")(data={"label": label, "href": href}, key=key, on_go_change=on_go)
