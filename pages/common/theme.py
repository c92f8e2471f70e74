"""One visual language: CSS variables for HTML and components, colour tokens for charts.

Streamlit sets ``color-scheme`` on the app, so ``light-dark()`` follows the theme switch in the browser. In charts
the tokens below are placeholders that Streamlit's front end replaces by the configured palette
(``chartCategoricalColors`` and ``chartSequentialColors`` of ``.streamlit/config.toml``) when it draws; a theme switch
asks for a rerun, which draws them again (``assets/components/copylink.js``).
"""

from __future__ import annotations

import html
from pathlib import Path

import streamlit as st

from core.glossary import PATTERN, TERMS
from core.limits import cached
from core.views.common.palette import DARK, LIGHT, Palette

PROJECTOR = "projector"
"""The switch's key, and its name in a link."""


_ASSETS = Path(__file__).parents[2] / "assets"

TOKENS = Palette(
    parameters="#000001",
    gradients="#000002",
    optimizer="#000003",
    master="#000004",
    activations="#000005",
    buffers="#000006",
    accent="#000007",
    sign="#000008",
    exponent="#000009",
    fraction="#000010",
    background="#000011",
    surface="#000012",
    border="#000013",
    text="#000014",
    muted="#000015",
)
"""The palette to hand to every ``core`` figure that ``show.chart`` draws."""


def css_variables() -> str:
    """Return ``--np-<colour>`` for every color of the palette, each a ``light-dark()`` pair."""
    dark = DARK.as_dict()
    pairs = (f"--np-{name}: light-dark({light}, {dark[name]});" for name, light in LIGHT.as_dict().items())
    return " ".join(pairs)


def projecting() -> bool:
    """Return whether the projector mode is on, which shows only the answer and its picture in large type."""
    content: object = st.session_state.get(PROJECTOR)
    return st.query_params.get(PROJECTOR) == "true" if content is None else bool(content)


def in_link() -> dict[str, str]:
    """Return the part of a link that carries the projector mode."""
    return {PROJECTOR: "true"} if projecting() else {}


@cached("arrays_kept")
def _stylesheet(projector: bool, scheme: str) -> str:
    names = ("napkin.css", "projector.css") if projector else ("napkin.css",)
    css = " ".join(" ".join((_ASSETS / name).read_text(encoding="utf-8").split()) for name in names)
    # On one line, since Streamlit looks through the lines of what it is given in every run.
    # A box over the page stands outside of the app, which is what Streamlit gives its colour scheme to.
    boxes = '[data-testid="stPopoverBody"]'
    return f"<style>.stApp, {boxes} {{ {css_variables()} }} {boxes} {{ color-scheme: {scheme}; }} {css}</style>"


_DRAWN = "app:theme"


def drawn_theme() -> str:
    """Return the theme that the logo was drawn for, "light" or "dark"; empty when the browser had not said."""
    return st.session_state.get(_DRAWN, "")


def install_theme() -> None:
    """Draw the logo and install the stylesheet. ``app.py`` calls this on every run of the whole app."""
    st.session_state[_DRAWN] = st.context.theme.type or ""
    st.logo(f"/app/static/{_logo()}", size="large", link=None)  # by its address, which no run reads
    st.html(_stylesheet(projecting(), drawn_theme() or "light dark"))


def _logo() -> str:
    return "logo-dark.svg" if st.context.theme.type == "dark" else "logo.svg"


def definitions() -> None:
    """Put them on the page, unseen; a marked term is described by its own."""
    st.html(_definitions())


@cached("tables_kept")
def _definitions() -> str:
    each = "".join(f'<p id="np-term-{term.id}">{html.escape(term.meaning)}</p>' for term in TERMS)
    return f'<div hidden class="np-terms" data-pattern="{html.escape(PATTERN, quote=True)}">{each}</div>'
