"""The page on a projector: a bar that names the preset, and of the page only its answer and picture, or one part."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from contextvars import ContextVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.lecture.deck import DeckError
from core.messages import message
from pages.common.inputs import Inputs
from pages.common.links import LANDS_AT
from pages.common.registry import GLOSSARY, HOME, PAGES, PageSpec
from pages.common.slides import Slides, deck_slide, offer_return, slides, steps_html, turn
from pages.common.theme import PROJECTOR, projecting

PICTURES: Mapping[str, str] = {
    "floats": ".st-key-floats-bits, .st-key-floats_formula *, .st-key-floats_beside *",
    "tensors": ".st-key-t-storage",
    "lecture": ":has(.np-tabled)",
    "exercises": ".st-key-exercises-questions *",
    "glossary": ":has(.np-glossary)",
    "compute": ".st-key-compute-answer",
    "memory": ".st-key-memory-bars",
    "parallel": ".st-key-parallel-picture",
    "what_if": ".st-key-what_if-grid",
    "compare": ".st-key-compare-bars, .st-key-k_examples",
    "decide": ".st-key-decide-matrix",
    "saved": ":has(.np-tabled), :has(.np-next-page)",
    "measure": ":has(.np-tabled), .st-key-measure-rates, .st-key-measure-live",
}
"""Id of a page → its picture, as a CSS selector among the page's elements that stand in no panel."""

_ASKED = "".join(
    f", .st-key-{key}" for key in ("np-wall *", "f_x", "f_fmt", "f_more", "f_custom", "f_out", "t_shape", "t_dtype")
)
"""The fields that can be changed on a slide, in the bar or under it."""

_ROOM = 432
"""Pixels that a picture may be high, so that the bar and an answer of four lines stand with it on 720."""

_PANEL_ROOM = 466
"""The same in a panel, over which stand four lines of the smallest type."""

_CHARTS = frozenset(
    (
        *("home:answer", "home:memory", "compute:answer", "memory:bars", "parallel:picture"),
        *("compare:bars", "measure:rates", "measure:live"),
    )
)
"""Keys of the charts that are a page's picture."""

_PART = re.compile(r"[a-z]_[a-z0-9_]{1,16}")
_DRAWN = ":has(.stHtml, .stPlotlyChart, .stBidiComponent, .stMarkdown, .stCode):not(:has(.np-next-page, .np-question))"
_AWAY = "position: absolute; visibility: hidden; height: 0; overflow: hidden;"
"""Neither seen nor read nor reached; a chart without any width would wait for one in vain."""

_PLACE: ContextVar[DeltaGenerator | None] = ContextVar("place of the bar", default=None)


def switch() -> None:
    """Draw the switch itself, in the menu."""
    st.toggle(
        message("slides.switch"),
        key=PROJECTOR,
        bind="query-params",
        on_change=turn,
        help=message("slides.switch_help"),
    )


def begin() -> None:
    """Keep the place at the page's top for the bar, which is drawn when all inputs are known."""
    _PLACE.set(st.container() if projecting() else None)


def part_shown(page: PageSpec) -> str:
    """Return the key of the part that a link names or the page opens with; empty for the whole page."""
    part = st.query_params.get(LANDS_AT, "")
    is_part = part.startswith(f"{page.prefix}_") and _PART.fullmatch(part) and page is not GLOSSARY
    return part if is_part else f"{page.prefix}_long" if page is HOME else ""


def bar(inputs: Inputs) -> Slides | None:
    """Draw the bar, and return the slide that it names; None if the projector mode is off."""
    place = _PLACE.get()
    if place is None:
        return offer_return(inputs)
    page, result, deck, wrong = inputs.page, slides(inputs), None, ""
    try:
        deck = deck_slide()
    except DeckError as problem:
        wrong = str(problem)
    rest = deck.bar_html if deck else _rest(result)
    shown = deck.attributes if deck else ""
    place.html(
        f'<div class="np-bar" data-slides="{result.count}"{shown}><h1>{html.escape(page.h1)}</h1>{rest}</div>'
        f"<style>{only(page, part_shown(page))}</style>"
    )
    if wrong:
        place.html(f'<div class="np-error" role="alert">{html.escape(wrong)}</div>')
    return result


def _rest(result: Slides) -> str:
    """Draw the page's place among its slides, and the buttons between them."""
    if result.of_own_plan:
        pages = [page for page in PAGES if page.plans]
        at = pages.index(result.inputs.page)
        ways = [f'data-page="{pages[to % len(pages)].url_path}"' for to in (at - 1, at + 1)]
        where = message("slides.plan", here=at + 1.0, count=float(len(pages)))
        return steps_html(where, ways, result.name)
    before = " disabled" if result.here == 0 else ""  # after the last comes the first
    ways = [f'data-step="{result.here - 1}"{before}', f'data-step="{(result.here + 1) % result.count}"']
    where = message("slides.position", here=result.here + 1.0, count=float(result.count))
    return steps_html(where, ways, result.name)


def room(key: str) -> int:
    """Return the height in pixels that the chart ``key`` may have."""
    return _ROOM if key in _CHARTS else _PANEL_ROOM


def only(page: PageSpec, part: str) -> str:
    """Return the style rule that leaves of the page its bar, its answer and its picture, or in its place a ``part``."""
    whole = page is HOME  # which has several answers, and shows the first
    answer = f".st-key-{part} :has(.np-answer)" if whole else ":has(.np-answer):not(.stExpander *)"
    text = f".st-key-{part} {_DRAWN}" if part else f":is({PICTURES[page.id]}):not(.stExpander *)"
    selected = f":is(:has(.np-bar), :has(.np-error:not(.np-detour)), {answer}, {text}{_ASKED})"
    panel = f"[data-testid='stLayoutWrapper']:has(> .stExpander):not(.st-key-{part or 'none'})"
    unheaded = f".stMain:has(.st-key-{part} .np-takeaway) .stElementContainer:has(.np-answer)"  # a panel says its own
    others = f", {unheaded}" if part and not whole else ""
    return f".stMain .stElementContainer:not({selected}), .stMain {panel}{others} {{ {_AWAY} }}"
