"""The glossary's definitions on every page, once, for the terms that ``assets/components/copylink.terms.js`` marks."""

from __future__ import annotations

import html
from functools import lru_cache

import streamlit as st

from core.glossary import PATTERN, TERMS


def definitions() -> None:
    """Put them on the page, unseen; a marked term is described by its own."""
    st.sidebar.html(_definitions())


@lru_cache(maxsize=1)
def _definitions() -> str:
    each = "".join(f'<p id="np-term-{term.id}">{html.escape(term.meaning)}</p>' for term in TERMS)
    return f'<div hidden class="np-terms" data-pattern="{html.escape(PATTERN, quote=True)}">{each}</div>'
