"""Glossary: the terms that the pages use, each with one definition, a source and a link of its own."""

from __future__ import annotations

import html

import streamlit as st

from core.fields import text
from core.glossary import TERMS, Term, matching
from core.limits import limit
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import GLOSSARY, PAGE

_SEARCH = text("q", "Search", "", max_chars=limit("number_chars"), placeholder="MFU, ZeRO, stride …")


def page() -> None:
    """The search field and the terms that it leaves."""
    inputs = Inputs(GLOSSARY)
    wanted = inputs.ask(_SEARCH)
    show.input_errors(inputs)
    terms = matching(wanted[: limit("number_chars")])
    if terms:
        counted = f"**{len(terms)}** of {len(TERMS)} terms" if len(terms) < len(TERMS) else f"**{len(TERMS)}** terms"
        show.answer(f"{counted}, one definition each.")
        st.html(f'<dl class="np-glossary">{"".join(map(_entry, terms))}</dl>')
    else:
        show.note(f"None of the {len(TERMS)} terms has that in its name or its definition.")
    show.footer(inputs)


def _entry(term: Term) -> str:
    """Its name, which is a link to it, other names, definition, picture, source, and the page that shows it."""
    also = f"<small>{html.escape(', '.join(term.also))}</small>" if term.also else ""
    under: list[str] = []
    if term.source:
        under.append(f'<a href="{html.escape(term.source.url, quote=True)}">{html.escape(str(term.source))}</a>')
    if term.shown:
        there = PAGE[term.shown.page]
        under.append(f"See it: {show.link(there.title, there, term.shown.fields, at=term.shown.at)}")
    return (
        f'<dt id="{_landing(term)}">{show.link(term.name, GLOSSARY, {}, at=term.id)}{also}</dt>'
        f"<dd>{show.rich(term.meaning)}{_picture(term)}<small>{' · '.join(under)}</small></dd>"
    )


def _picture(term: Term) -> str:
    """Its cells, filled and empty, row by row."""
    if not term.picture:
        return ""
    cells = {"1": "<b></b>", "0": "<i></i>", " ": "<s></s>"}
    rows = "".join(f"<span>{''.join(cells[cell] for cell in row)}</span>" for row in term.picture.split("/"))
    text = f"{term.name}, 1 for a filled cell: {', '.join(term.picture.split('/'))}"
    return f'<span class="np-cells" role="img" aria-label="{html.escape(text, quote=True)}">{rows}</span>'


def _landing(term: Term) -> str:
    """The name under which a link lands at the term."""
    return f"{GLOSSARY.prefix}_{term.id}"


show.draw_page(page)
