"""The lecture, checked, the lecturer's panel: its deck across pages, started, and what to say on each slide."""

from __future__ import annotations

import html
from itertools import accumulate

import streamlit as st

from core.lecture.deck import lecture_slides
from pages.common import show
from pages.common.registry import LECTURE
from pages.common.slides import DECK, LECTURES, OTHER_DECK, slide_address


def deck() -> None:
    """How long the deck takes, where it starts, and what to say on each slide."""
    slides = lecture_slides()
    show.takeaway(f"**{len(slides)}** slides, **{sum(slide.minutes for slide in slides):g}** minutes.")
    if st.query_params.get(DECK, LECTURES) != LECTURES:
        show.error(OTHER_DECK)
    start = html.escape(slide_address(1), quote=True)
    notes = html.escape(f"{LECTURE.url_path}?l_deck=true&at=l_deck", quote=True)
    st.html(
        f'<p class="np-next-page"><a href="{start}" target="_blank">Start on the projector</a> · '
        f'<a href="{notes}" target="_blank">Notes in a second window</a></p>'
    )
    st.html(_notes())


def _notes() -> str:
    """What to say on each; the page's component marks the slide on the wall, and says how much time was used."""
    slides = lecture_slides()
    until = accumulate(slide.minutes for slide in slides)
    items = "".join(
        f'<li value="{number}" data-until="{end:g}"><b>{html.escape(slide.headline)}</b> '
        f"<small>{slide.minutes:g} min</small><br>{html.escape(slide.say)}"
        + (f"<br><small>Ask first: {html.escape(slide.ask)}</small>" if slide.ask else "")
        + "</li>"
        for number, (slide, end) in enumerate(zip(slides, until, strict=True), 1)
    )
    return f'<p class="np-used" role="timer"></p><ol class="np-notes">{items}</ol>'
