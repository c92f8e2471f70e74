"""The page on a projector: a bar that names the story, and of the page only its answer and its picture, or one part."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.inputs import Inputs
from pages.parts.links import LANDS_AT
from pages.parts.projecting import Chip, projecting
from pages.parts.registry import (
    BOARD,
    CALENDAR,
    COMPARE,
    COMPUTE,
    DEVICE,
    FLOATS,
    GLOSSARY,
    HOME,
    LECTURE,
    MEMORY,
    PLAN_SEARCH,
    SAVED,
    TENSORS,
    PageSpec,
)
from pages.parts.tours import TOUR, TOURS, Stop, hrefs

PICTURES: Mapping[str, str] = {
    FLOATS.id: ".st-key-floats-bits",
    TENSORS.id: ".st-key-t-storage",
    LECTURE.id: ":has(.np-tabled)",
    GLOSSARY.id: ":has(.np-glossary)",
    COMPUTE.id: ".st-key-compute-answer",
    MEMORY.id: ".st-key-memory-bars",
    PLAN_SEARCH.id: ".st-key-plan_search-picture",
    BOARD.id: ".st-key-board-grid",
    COMPARE.id: ".st-key-compare-bars, .st-key-k_examples",
    CALENDAR.id: ".st-key-calendar-bars",
    SAVED.id: ":has(.np-tabled), :has(.np-onwards)",
    DEVICE.id: ":has(.np-tabled), .st-key-device-rates, .st-key-device-live",
}
"""Page → its picture, as a CSS selector among the page's elements that stand in no panel."""

_ROOM = 432
"""Pixels that a picture may be high, so that the bar and an answer of four lines stand with it on 720."""

_PANEL_ROOM = 540
"""The same in a panel, which may begin lower and be scrolled."""

_OPENING: Mapping[str, str] = {HOME.id: "long"}
"""Page of several answers → the part that stands for it."""

_CHARTS = frozenset(
    (
        *("home:answer", "home:memory", "compute:answer", "memory:bars", "plan_search:picture"),
        *("compare:bars", "calendar:bars", "device:rates", "device:live"),
    )
)
"""Keys of the charts that are a page's picture."""

_PART = re.compile(r"[a-z]_[a-z0-9_]{1,16}")
_DRAWN = ":has(.stHtml, .stPlotlyChart, .stBidiComponent, .stMarkdown, .stCode):not(:has(.np-onwards, .np-question))"
_AWAY = "position: absolute; visibility: hidden; height: 0; overflow: hidden;"
"""Neither seen nor read nor reached; a chart without any width would wait for one in vain."""

_OWN = "As typed"

_PLACE: ContextVar[DeltaGenerator | None] = ContextVar("place of the bar", default=None)


def begin() -> None:
    """Keep the place at the page's top for the bar, which is drawn when all inputs are known."""
    _PLACE.set(st.container() if projecting() else None)


@dataclass(frozen=True, slots=True)
class Steps:
    """What the arrow keys step through: the page's chips, then its tour; ``here``: the index of what is shown."""

    chips: Sequence[Chip]
    stops: Sequence[Stop]
    hrefs: Sequence[str]
    here: int | None

    @property
    def name(self) -> str:
        """The story that is shown."""
        if self.here is None:
            return _OWN
        if self.here < len(self.chips):
            return self.chips[self.here].name
        return self.stops[self.here - len(self.chips)].says

    def take(self, index: object) -> None:
        """In a callback: make a chip the page's story."""
        if isinstance(index, int | float) and 0 <= index < len(self.chips):
            chip = self.chips[int(index)]
            chip.put()
            st.query_params.pop(TOUR, None)
            if chip.at:
                st.query_params[LANDS_AT] = chip.at

    def control(self, by: int, words: str, sign: str) -> str:
        """The button or link of the step before or after."""
        at = (-1 if by > 0 else 0) if self.here is None else self.here
        index = (at + by) % (len(self.chips) + len(self.stops))
        kind = "next" if by > 0 else "prev"
        if index < len(self.chips):
            return f'<button type="button" class="{kind}" data-step="{index}" aria-label="{words}">{sign}</button>'
        href = html.escape(self.hrefs[index - len(self.chips)], quote=True)
        return f'<a class="{kind}" href="{href}" aria-label="{words}">{sign}</a>'


def part_shown(page: PageSpec) -> str:
    """The key of the part that a link names or the page opens with; empty for the page as a whole."""
    asked = st.query_params.get(LANDS_AT, "")
    mine = asked.startswith(f"{page.prefix}_") and _PART.fullmatch(asked) and page is not GLOSSARY
    return asked if mine else f"{page.prefix}_{_OPENING[page.id]}" if page.id in _OPENING else ""


def steps(inputs: Inputs) -> Steps:
    """The page's steps, and at which of them it stands."""
    page, at = inputs.page, part_shown(inputs.page)
    stops = TOURS[page.id]
    here = next((i for i, chip in enumerate(inputs.chips) if chip.lit and chip.at in ("", at)), None)
    asked = st.query_params.get(TOUR, "")
    if asked in map(str, range(1, len(stops) + 1)):
        stop = stops[int(asked) - 1]
        if all(inputs.fields.get(inputs.key(name)) == text for name, text in stop.fields.items()):
            here = len(inputs.chips) + int(asked) - 1
    elif not inputs.chips and not any(name.startswith(f"{page.prefix}_") for name in st.query_params):
        here = 0  # a page without chips opens where its tour begins
    return Steps(inputs.chips, stops, hrefs(page), here)


def bar(inputs: Inputs) -> Steps | None:
    """Draw the bar, and say what to show of the page; None where nobody projects."""
    place = _PLACE.get()
    if place is None:
        return None
    page, found = inputs.page, steps(inputs)
    count = len(found.chips) + len(found.stops)
    number = f"{found.here + 1} of {count}" if found.here is not None else f"{count} stories"
    place.html(
        f'<div class="np-bar" data-chips="{len(found.chips)}"><h1>{html.escape(page.h1)}</h1><span>{number}</span>'
        f"<nav>{found.control(-1, 'Previous story', '←')}{found.control(1, 'Next story', '→')}"
        '<button type="button" class="leave">Leave</button></nav>'
        f'<p class="np-story" aria-live="polite">{html.escape(found.name)}</p></div>'
        f"<style>{only(page, part_shown(page))}</style>"
    )
    return found


def room(key: str, height: int) -> int:
    """Pixels that the chart ``key``, ``height`` on a page, may be high; in a panel its rows must stay apart."""
    return _ROOM if key in _CHARTS else max(_PANEL_ROOM, height + height // 10)


def only(page: PageSpec, part: str) -> str:
    """The style rule that leaves of the page its bar, its answer and its picture, or in its place a ``part``."""
    whole = page.id in _OPENING
    answer = f".st-key-{part} :has(.np-answer)" if whole else ":has(.np-answer):not(.stExpander *)"
    shown = f".st-key-{part} {_DRAWN}" if part else f":is({PICTURES[page.id]}):not(.stExpander *)"
    kept = f":is(:has(.np-bar), :has(.np-error), {answer}, {shown})"
    panel = f"[data-testid='stLayoutWrapper']:has(> .stExpander):not(.st-key-{part or 'none'})"
    return f".stMain .stElementContainer:not({kept}), .stMain {panel} {{ {_AWAY} }}"
