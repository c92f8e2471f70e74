"""The lecture, checked, the lecturer's panel: a deck across pages, put together, started, and taken along."""

from __future__ import annotations

import html
from itertools import accumulate

import streamlit as st

from core.lecture.deck import DeckError, Slide, deck_text, lecture_slides, pack_deck, read_deck, unpack_deck
from core.limits import limit
from core.views.lecture.deck import headline, markdown
from pages.common import show
from pages.common.inputs import Inputs
from pages.common.registry import LECTURE
from pages.common.slides import DECK, PLACES, STANDARD, slide_address
from pages.common.takeaway import page_link

_TEXT, _KEPT = "l:deck", "l:deck:kept"
_HELP = (
    "A line a slide, in the order in which they are shown: move lines, take some out. F4 is a slide of the lecture; "
    "one of your own is address | headline | what to say | minutes | question, with an address from “Copy link to this "
    "page”. A question covers the slide until the next press."
)


def deck(inputs: Inputs) -> None:
    """The deck as text, how long it takes, where it starts, and what to say on each slide."""
    standard = tuple(lecture_slides().values())
    wrong = ""
    if _TEXT not in st.session_state:
        packed = st.query_params.get(DECK, STANDARD)
        st.session_state[_TEXT] = st.session_state.get(_KEPT) or deck_text(standard, PLACES)
        try:
            if packed != STANDARD:
                st.session_state[_TEXT] = unpack_deck(packed)
        except DeckError as problem:
            wrong = str(problem)
    beside, notes = st.columns([1, 2])
    with beside:
        text = st.text_area("Slides", key=_TEXT, height=420, max_chars=limit("deck_chars"), help=_HELP)
    st.session_state[_KEPT] = text  # Streamlit drops a box that is not drawn
    try:
        slides = read_deck(text or "", PLACES)
    except DeckError as problem:
        slides, wrong = (), str(problem)
    if wrong:
        show.error(wrong)
    if not slides:
        return
    name = STANDARD if slides == standard else pack_deck(deck_text(slides, PLACES))
    _in_address(inputs, name)
    with notes:
        show.takeaway(headline(slides))
        st.html(_ways(name, slides))
        st.html(_notes(name, slides))
    with st.container(horizontal=True):
        base = page_link(inputs).partition("?")[0].rpartition("/")[0]
        st.download_button(
            "Markdown",
            lambda: markdown(slides, lambda number: f"{base}/{slide_address(name, slides, number)}").encode(),
            "lecture.md",
            "text/markdown",
            key="l:deck:md",
            on_click="ignore",
        )


def _in_address(inputs: Inputs, name: str) -> None:
    """Have the address of the page, and the link that is copied, carry a deck that is not the lecture's own."""
    if name != STANDARD:
        inputs.address_texts[DECK] = name
        if st.query_params.get(DECK) != name:
            st.query_params[DECK] = name
    elif DECK in st.query_params:
        del st.query_params[DECK]


def _ways(name: str, slides: tuple[Slide, ...]) -> str:
    """Links that start it and that open the notes, each in a window of its own; the first is the link to keep."""
    start = html.escape(slide_address(name, slides, 1), quote=True)
    notes = html.escape(f"{LECTURE.url_path}?l_deck=true&{DECK}={name}&at=l_deck", quote=True)
    return (
        f'<p class="np-next-page"><a href="{start}" target="_blank">Start on the projector</a> · '
        f'<a href="{notes}" target="_blank">Notes in a second window</a></p>'
    )


def _notes(name: str, slides: tuple[Slide, ...]) -> str:
    """What to say on each; the page's component marks the slide on the wall, and says how much time was used."""
    until = accumulate(slide.minutes for slide in slides)
    items = "".join(
        f'<li value="{number}" data-until="{end:g}"><b>{html.escape(slide.headline)}</b> '
        f"<small>{slide.minutes:g} min</small><br>{html.escape(slide.say)}"
        + (f"<br><small>Ask first: {html.escape(slide.ask)}</small>" if slide.ask else "")
        + "</li>"
        for number, (slide, end) in enumerate(zip(slides, until, strict=True), 1)
    )
    deck = html.escape(name, quote=True)
    return f'<p class="np-used" role="timer"></p><ol class="np-notes" data-deck="{deck}">{items}</ol>'
