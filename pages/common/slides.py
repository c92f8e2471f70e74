"""The slides of a page on a projector: the page as it was typed, each of its chips, each stop of its tour.

Whatever slide is shown, what was typed is kept: it comes back with its slide, and when the projector is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from core.planning.comparison.entry import Entry
from core.planning.comparison.examples import examples
from pages.common import comparison_list
from pages.common.inputs import Chip, Inputs
from pages.common.links import LANDS_AT
from pages.common.registry import COMPARE
from pages.common.theme import PROJECTOR
from pages.common.tours import TOUR, TOURS, Stop

AS_TYPED = "As typed"
_STANDS = "projector:slides"
_BESIDE = (":good", ":saved")
"""How the keys end of what a page keeps beside its fields: what could be read last, the saved plan that it shows."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A page as a visitor left it: by key what its fields hold and what is kept beside them, the parameters of its
    address that are no fields, and the plans of a comparison."""

    values: Mapping[str, object]
    address: Mapping[str, str]
    plans: Mapping[int, Entry] | None

    @classmethod
    def on(cls, inputs: Inputs) -> Typed:
        """``inputs.page`` as it stands."""
        page, keys = inputs.page, {*inputs.fields, *(inputs.key(field.id) for field in inputs.form.fields)}
        prefixes = (f"{page.prefix}_", f"{page.prefix}:", f"{page.id}:")
        beside = {key for key in st.session_state if str(key).startswith(prefixes) and str(key).endswith(_BESIDE)}
        return cls(
            inputs.folded() | {str(key): st.session_state[key] for key in keys | beside if key in st.session_state},
            {name: text for name, text in st.query_params.to_dict().items() if name not in keys | {PROJECTOR}},
            comparison_list.held() if page is COMPARE else None,
        )

    def put(self, *, address: bool = True) -> None:
        """In a callback: make it the page again; ``address``: also where the browser says that it is."""
        for key, value in self.values.items():
            st.session_state[key] = value
        if self.plans is not None:
            comparison_list.put_back(self.plans)
        if address:
            for name in st.query_params.to_dict().keys() - self.values.keys() - self.address.keys() - {PROJECTOR}:
                del st.query_params[name]
            st.query_params.update(self.address)


@dataclass(frozen=True, slots=True)
class Slides:
    """The slides of a page, first the one that was typed; ``here``: the index of the one that is shown."""

    inputs: Inputs
    here: int
    typed: Typed

    @property
    def _steps(self) -> tuple[Chip | Stop, ...]:
        return (*self.inputs.chips, *TOURS[self.inputs.page.id])

    @property
    def count(self) -> int:
        """How many there are."""
        return 1 + len(self._steps)

    @property
    def name(self) -> str:
        """What the slide that is shown says; of a preset that was changed on the wall, that it was."""
        if not self.here:
            return AS_TYPED
        step = self._steps[self.here - 1]
        name, still = (step.name, step.lit()) if isinstance(step, Chip) else (step.says, _shown(self.inputs, step))
        return name if still else f"{name}, changed"

    def take(self, index: object) -> None:
        """In a callback: show the slide ``index``. A chip changes what was typed; a stop is what its link opens."""
        if not isinstance(index, int | float) or not 0 <= index < self.count:
            return
        page, here = self.inputs.page, int(index)
        self.typed.put()
        if here:
            step = self._steps[here - 1]
            parameters = {LANDS_AT: f"{page.prefix}_{step.at}"} if step.at else {}
            if isinstance(step, Stop):
                self.inputs.take(step.fields)
                parameters[TOUR] = str(here - len(self.inputs.chips))
                if page is COMPARE:
                    comparison_list.put(examples())
            else:
                step.put()
            for name in (LANDS_AT, TOUR):
                st.query_params.pop(name, None)
            st.query_params.update(parameters)
        st.session_state[_STANDS][page.id] = (here, self.typed)


def slides(inputs: Inputs) -> Slides:
    """Where the page stands: where it was left, or where a link to a stop of its tour opens it, or as typed."""
    stands: dict[str, tuple[int, Typed]] = st.session_state.setdefault(_STANDS, {})
    here, typed = stands.pop(inputs.page.id, None) or (_opened_at(inputs), None)
    result = Slides(inputs, here, Typed.on(inputs) if typed is None or not here else typed)
    stands[inputs.page.id] = (here, result.typed)  # the last one is on the wall
    return result


def leave() -> None:
    """In the callback of the switch: what was typed comes back on every page."""
    stands: dict[str, tuple[int, Typed]] = st.session_state.pop(_STANDS, {})
    for page, (here, typed) in stands.items():
        if here:
            typed.put(address=page == next(reversed(stands)))


def _opened_at(inputs: Inputs) -> int:
    stops, text = TOURS[inputs.page.id], st.query_params.get(TOUR, "")
    number = int(text) if text in map(str, range(1, len(stops) + 1)) else 0
    return len(inputs.chips) + number if number and _shown(inputs, stops[number - 1]) else 0


def _shown(inputs: Inputs, stop: Stop) -> bool:
    return all(inputs.fields.get(inputs.key(name)) == text for name, text in stop.fields.items())
