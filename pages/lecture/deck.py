"""Lecture, the lecturer's panel: start the slides, and what to say on each."""

from __future__ import annotations

import html
from itertools import accumulate

import streamlit as st

from core.lecture.deck import lecture_slides
from core.messages import message
from pages.common import show
from pages.common.registry import LECTURE
from pages.common.slides import DECK, LECTURES, slide_address


def deck_panel() -> None:
    """Draw the length of the deck, the links that start it, and the notes."""
    slides = lecture_slides()
    minutes = sum(slide.minutes for slide in slides)
    show.takeaway(message("lecture.deck.length", slides=float(len(slides)), minutes=minutes))
    if st.query_params.get(DECK, LECTURES) != LECTURES:
        show.error(message("lecture.deck.other"))
    links = {
        message("lecture.deck.start"): slide_address(1),
        message("lecture.deck.notes"): f"{LECTURE.url_path}?l_deck=true&at=l_deck",
    }
    anchors = (f'<a href="{html.escape(to, quote=True)}" target="_blank">{label}</a>' for label, to in links.items())
    st.html(f'<p class="np-next-page">{" · ".join(anchors)}</p>')
    show.note(message("lecture.deck.keys"))
    st.html(_notes_html())


def _notes_html() -> str:
    """Return what to say on each slide. The page's script marks the slide on the wall and the time used."""
    slides = lecture_slides()
    ends = accumulate(slide.minutes for slide in slides)
    items = "".join(
        f'<li value="{number}" data-until="{end:g}" data-href="{html.escape(slide_address(number), quote=True)}">'
        f"<b>{html.escape(slide.headline)}</b> "
        f"<small>{message('lecture.deck.minutes', minutes=slide.minutes)}</small><br>{html.escape(slide.say)}"
        + (f"<br><small>{show.rich(_question(slide.ask, slide.answer))}</small>" if slide.ask else "")
        + "</li>"
        for number, (slide, end) in enumerate(zip(slides, ends, strict=True), 1)
    )
    return f'<p class="np-used" role="timer"></p><ol class="np-notes">{items}</ol>'


def _question(ask: str, answer: str) -> str:
    return message("lecture.deck.ask", ask=ask, answer=answer)
