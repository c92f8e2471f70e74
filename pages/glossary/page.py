"""Glossary: the terms that the pages use, each with a definition, a source, and its own link."""

from __future__ import annotations

import html

import streamlit as st

from core.fields import text
from core.glossary import TERMS, Term, matching
from core.limits import limit
from core.messages import message
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import GLOSSARY, PAGE

_SEARCH = text(
    "q",
    message("glossary.search"),
    "",
    max_chars=limit("number_chars"),
    placeholder=message("glossary.search_example"),
)


def page() -> None:
    """Draw the search field and the terms that it finds."""
    inputs = Inputs(GLOSSARY)
    wanted = inputs.ask(_SEARCH)
    show.input_errors(inputs)
    terms = matching(wanted[: limit("number_chars")])
    if terms:
        found, every = float(len(terms)), float(len(TERMS))
        all_found = message("glossary.all", terms=every)
        show.answer(message("glossary.found", found=found, terms=every) if found < every else all_found)
        st.html(f'<dl class="np-glossary">{"".join(map(_entry, terms))}</dl>')
    else:
        show.note(message("glossary.none"))
    show.footer(inputs)


def _entry(term: Term) -> str:
    """Return a term as HTML: its name with a link, other names, definition, picture, source, and page."""
    also = f"<small>{html.escape(', '.join(term.also))}</small>" if term.also else ""
    under: list[str] = []
    if term.source:
        under.append(f'<a href="{html.escape(term.source.url, quote=True)}">{html.escape(str(term.source))}</a>')
    if term.shown:
        there = PAGE[term.shown.page]
        under.append(
            f"{message('glossary.shown')} {show.link(there.title, there, term.shown.fields, at=term.shown.at)}"
        )
    return (
        f'<dt id="{_landing(term)}">{show.link(term.name, GLOSSARY, {}, at=term.id)}{also}</dt>'
        f"<dd>{show.rich(term.meaning)}{_picture(term)}<small>{' · '.join(under)}</small></dd>"
    )


def _picture(term: Term) -> str:
    """Return the cells of the term's matrix as HTML, row by row."""
    if not term.picture:
        return ""
    cells = {"1": "<b></b>", "0": "<i></i>", " ": "<s></s>"}
    rows = "".join(f"<span>{''.join(cells[cell] for cell in row)}</span>" for row in term.picture.split("/"))
    text = message("glossary.picture", term=term.name, rows=", ".join(term.picture.split("/")))
    return f'<span class="np-cells" role="img" aria-label="{html.escape(text, quote=True)}">{rows}</span>'


def _landing(term: Term) -> str:
    """Return the id at which a link to the term lands."""
    return f"{GLOSSARY.prefix}_{term.id}"


show.draw_page(page)
