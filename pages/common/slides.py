"""The slides of a page on a projector: the page as entered, its presets, and its tour; and the slides of a deck.

The inputs are kept while other slides are shown. They return with the first slide and when the projector is left.
Turning it on again with unchanged inputs returns to the slide that was left.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st
from streamlit.errors import StreamlitAPIException

from core.lecture.deck import DeckError, lecture_slides
from core.messages import message
from core.planning.comparison.entry import Entry, examples
from pages.common import comparison_list
from pages.common.inputs import HELD, Inputs, PresetButton
from pages.common.links import LANDS_AT, address
from pages.common.registry import COMPARE, HOME, PAGE, PageSpec
from pages.common.theme import PROJECTOR
from pages.common.tours import TOUR, TOURS, Stop
from pages.common.widgets import text_of

AS_ENTERED = message("slides.as_entered")
_STANDS, _LEFT, _RESUME = "projector:slides", "projector:left", "projector:resume"
"""Keys of session state: slide and inputs by page, the same where it was left, and what a return to it calls."""

_GOOD = ":good"
"""How the keys end of what a page read last."""


def _last_read(page: PageSpec) -> set[str]:
    """Return the keys of what a page read last, which it shows where a field cannot be read."""
    prefixes = (f"{page.prefix}_", f"{page.prefix}:", f"{page.id}:")
    return {str(key) for key in st.session_state if str(key).startswith(prefixes) and str(key).endswith(_GOOD)}


@dataclass(frozen=True, slots=True)
class TypedPage:
    """A page as a user left it: by key what its fields hold and what is kept beside them, the parameters of its address
    that are no fields, and the plans of a comparison."""

    page: PageSpec
    values: Mapping[str, object]
    address: Mapping[str, str]
    plans: Mapping[int, Entry] | None

    @classmethod
    def on(cls, inputs: Inputs) -> TypedPage:
        """Return ``inputs.page`` unchanged."""
        page, keys = inputs.page, {*inputs.address_texts, *(inputs.key(field.id) for field in inputs.form.fields)}
        good = _last_read(page)
        return cls(
            page,
            inputs.folded()
            | {str(key): st.session_state[key] for key in keys | good if key in st.session_state}
            | {key: st.session_state.get(key) for key in HELD.values()},
            {name: text for name, text in st.query_params.to_dict().items() if name not in keys | {PROJECTOR}},
            comparison_list.held() if page is COMPARE else None,
        )

    def put(self, *, address: bool = True) -> None:
        """Restore this page (callback). address: whether the browser's address is also restored."""
        for key in _last_read(self.page) - self.values.keys():
            del st.session_state[key]
        for key, value in self.values.items():
            st.session_state[key] = value
        if self.plans is not None:
            comparison_list.put_back(self.plans)
        if address:
            for name in st.query_params.to_dict().keys() - self.values.keys() - self.address.keys() - {PROJECTOR}:
                with suppress(StreamlitAPIException):  # of a field that this slide alone draws: it goes with the field
                    del st.query_params[name]
            st.query_params.update(self.address)


@dataclass(frozen=True, slots=True)
class Slides:
    """The slides of a page, first the one that was entered; ``here``: the index of the one that is shown."""

    inputs: Inputs
    here: int
    typed: TypedPage

    @property
    def _steps(self) -> tuple[PresetButton | Stop, ...]:
        return (*_preset_buttons(self.inputs), *TOURS[self.inputs.page.id])

    @property
    def count(self) -> int:
        """How many there are."""
        return 1 + len(self._steps)

    @property
    def of_own_plan(self) -> bool:
        """Whether the page shows a custom plan, which is neither the default nor a preset."""
        if self.here or not self.inputs.page.plans:
            return False
        texts, form = self.inputs.reading.texts, self.inputs.form
        changed = any(texts[name] != form[name].default for name in form.shared)
        return changed and not any(preset.is_current() for preset in self.inputs.preset_buttons if not preset.at)

    @property
    def name(self) -> str:
        """Name of the current slide; for a preset that was changed while projecting, it says so."""
        if not self.here:
            return AS_ENTERED
        step = self._steps[self.here - 1]
        name, still = (
            (step.name, step.is_current()) if isinstance(step, PresetButton) else (step.says, _shown(self.inputs, step))
        )
        return name if still else message("slides.changed", name=name)

    def take(self, index: object) -> None:
        """Show the slide ``index`` (callback). A preset changes the entered fields, and a stop opens its link."""
        if not isinstance(index, int | float) or not 0 <= index < self.count:
            return
        page, here = self.inputs.page, int(index)
        self.typed.put()
        if here:
            step = self._steps[here - 1]
            parameters = {LANDS_AT: f"{page.prefix}_{step.at}"} if step.at else {}
            if isinstance(step, Stop):
                self.inputs.take_all(step.fields)
                parameters[TOUR] = str(1 + TOURS[page.id].index(step))
                if page is COMPARE:
                    comparison_list.put(examples())
            else:
                step.put()
            for name in (LANDS_AT, TOUR):
                st.query_params.pop(name, None)
            st.query_params.update(parameters)
        st.session_state[_STANDS][page.id] = (here, self.typed)


def slides(inputs: Inputs) -> Slides:
    """Return the slides and the current one: where the page was left, a stop that a link opens, or the entered
    fields."""
    stands: dict[str, tuple[int, TypedPage]] = st.session_state.setdefault(_STANDS, {})
    here, typed = stands.pop(inputs.page.id, None) or (_opened_at(inputs), None)
    result = Slides(inputs, here, TypedPage.on(inputs) if typed is None or not here else typed)
    stands[inputs.page.id] = (here, result.typed)  # the last one is on the wall
    return result


def on_a_slide(page: PageSpec) -> bool:
    """Return whether ``page`` shows something else than what was entered on it."""
    here, _ = st.session_state.get(_STANDS, {}).get(page.id, (0, None))
    return bool(here)


def typed_plan(inputs: Inputs) -> dict[str, str]:
    """Return the plan as entered on the page, whatever slide is shown."""
    _, typed = st.session_state[_STANDS][inputs.page.id]
    keys = {name: inputs.key(name) for name in inputs.form.shared}
    return {name: text_of(inputs.form[name], typed.values[key]) for name, key in keys.items() if key in typed.values}


def offer_return(inputs: Inputs) -> None:
    """Let the switch return to the slide of this page that was left, unless its inputs have changed since then."""

    def resume() -> None:
        here, left = st.session_state.get(_LEFT, {}).get(inputs.page.id, (0, {}))
        now = TypedPage.on(inputs)
        unchanged = all(left.get(name, value) == value for name, value in now.values.items())  # of what both have
        if unchanged and 0 < here < Slides(inputs, here, now).count:
            st.session_state[_STANDS] = {}
            Slides(inputs, 0, now).take(here)

    st.session_state[_RESUME] = resume


def turn() -> None:
    """Restore the inputs of every page, or return to the slide that was left (callback of the switch)."""
    stands: dict[str, tuple[int, TypedPage]] = st.session_state.pop(_STANDS, {})
    for page, (here, typed) in stands.items():
        if here:
            typed.put(address=page == next(reversed(stands)))
    st.session_state.setdefault(_LEFT, {}).update({page: (here, one.values) for page, (here, one) in stands.items()})
    if not stands and (resume := st.session_state.get(_RESUME)):
        resume()


def _opened_at(inputs: Inputs) -> int:
    stops, text = TOURS[inputs.page.id], st.query_params.get(TOUR, "")
    number = int(text) if text in map(str, range(1, len(stops) + 1)) else 0
    return len(_preset_buttons(inputs)) + number if number and _shown(inputs, stops[number - 1]) else 0


def _preset_buttons(inputs: Inputs) -> list[PresetButton]:
    """Return those whose slides come before the tour. Home has none: its tour goes through what they set."""
    return [] if inputs.page is HOME else inputs.preset_buttons


def _shown(inputs: Inputs, stop: Stop) -> bool:
    return all(inputs.address_texts.get(inputs.key(name), "") == text for name, text in stop.fields.items())


def steps_html(where: str, ways: Sequence[str], says: str) -> str:
    """Return the rest of a bar: the position, buttons with the attributes ``ways``, and what the slide says."""
    labels = (message("slides.previous"), message("slides.next"))
    buttons = "".join(
        f'<button type="button" class="{kind}" {way} aria-label="{label}">{sign}</button>'
        for kind, way, label, sign in zip(("prev", "next"), ways, labels, "←→", strict=True)
    )
    leave = f'<button type="button" class="leave">{message("slides.leave")}</button>'
    return (
        f'<span>{where}</span><nav>{buttons}{leave}</nav><p class="np-slide" aria-live="polite">{html.escape(says)}</p>'
    )


DECK, SLIDE, LECTURES = "deck", "slide", "lecture"
"""Parameters of an address, the deck and the slide, from 1; and the name of the lecture's deck."""


def slide_address(number: int) -> str:
    """Return the address of the slide ``number`` of the lecture, from 1."""
    link = lecture_slides()[number - 1].link
    others = {PROJECTOR: "true", DECK: LECTURES, SLIDE: str(number)}
    return address(PAGE[link.page], link.fields, others, at=link.at)


@dataclass(frozen=True, slots=True)
class DeckSlide:
    """A slide of the lecture that is shown. here: its number, from 1."""

    here: int

    @property
    def attributes(self) -> str:
        """Return the attributes of the bar: the slide's number, and the addresses of the first and last slide."""
        ends = " ".join(f'data-{key}="{_address(to)}"' for key, to in (("home", 1), ("end", len(lecture_slides()))))
        return f' data-deck-slide="{self.here}" {ends}'

    @property
    def bar_html(self) -> str:
        """HTML of the rest of the bar, with the question that covers the page at first."""
        slide, count = lecture_slides()[self.here - 1], len(lecture_slides())
        ask = f'<div class="np-predict"><p>{html.escape(slide.ask)}</p></div>' if slide.ask else ""
        ways = [
            f'data-href="{_address(to)}"' if 1 <= to <= count else 'data-href="" disabled'
            for to in (self.here - 1, self.here + 1)
        ]
        where = message("slides.position", here=float(self.here), count=float(count))
        return steps_html(where, ways, slide.headline) + ask


def _address(number: int) -> str:
    return html.escape(slide_address(number), quote=True)


def deck_slide() -> DeckSlide | None:
    """Return the slide that the address names, or None if it names none. Raises `DeckError` for an unknown one."""
    name, number = st.query_params.get(DECK, ""), st.query_params.get(SLIDE, "")
    if not name or not number:
        return None
    if name != LECTURES:
        raise DeckError(message("lecture.deck.other"))
    count = len(lecture_slides())
    here = {str(one): one for one in range(1, count + 1)}.get(number)
    if here is None:
        raise DeckError(message("lecture.deck.none", slides=float(count), typed=number[:12]))
    return DeckSlide(here)
