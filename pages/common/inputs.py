"""Inputs whose state is the URL: every field is bound to a query parameter by a short stable id.

Streamlit leaves a field that equals its default out of the URL; the permalink spells all of them out, with a
version, so that a link opens to the same picture after a default has changed.

A page with a form reads all of its fields before it draws any: what stands in a closed panel counts like the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

from core.fields import LINK_VERSION, SHARED, VERSION, Field, Form, ParsedForm, as_typed, query_of, read_version, switch
from core.limits import limit
from core.messages import message
from core.number_text import QuantityError
from core.planning.comparison.entry import EntryKind
from pages.common import comparison_list, widgets
from pages.common.guard import guarded
from pages.common.registry import PAGES, PageSpec
from pages.streamlit_patches import uninterrupted

_MISSING = object()
_LAST_PAGE = "inputs:last"
"""Where session state has the prefix of the page that was drawn last: who comes from another one may have a link."""

_FIRST_TEXTS = "inputs:first"
"""Where session state has, by key, what a widget began with, which is part of what it is."""

HELD: Mapping[EntryKind, str] = {"plan": "plan:saved", "decision": "decision:saved"}
"""Where session state has the saved plan that one works on, which is the same on all pages, and the saved decision."""

PLAN_TEXTS = "plan:texts"
"""Where session state has, by id, the texts of the plan that one is working on, the same on all pages."""

PACKED = "d"
"""The parameter of a link that carries all fields of a page, or names where they are saved."""

_FOUND_TEXTS = "plan:found"
"""Where session state has what the page that is left has found, for the next one."""


@dataclass(frozen=True, slots=True)
class PresetButton:
    """Preset of the page in this run: its name, what selects it, whether it is current, and its part of the page.

    at: name of that part, without prefix; empty for the whole page.
    """

    name: str
    put: Callable[[], None]
    is_current: Callable[[], bool]
    at: str = ""


class Inputs:
    """The inputs of one page in one run. Collects every field so that the permalink can name them all.

    form: what the page asks, read at once; pages without one read each field where they draw it. packed: what a link
    says of all fields in one parameter, where it does not spell them out.
    """

    def __init__(
        self, page: PageSpec, form: Form | None = None, packed: Callable[[Mapping[str, str]], str] | None = None
    ) -> None:
        self.page = page
        self.form = form or Form(page.prefix, ())
        self._packed = packed
        self.address_texts: dict[str, str] = {}
        """Key in the address → text, of every field."""
        self._field_texts: dict[str, str] = {}
        """Id → text of every field of the form, as the next run finds it."""
        self.errors: list[str] = []
        self.drawn: set[str] = set()
        self.linked = False
        """Whether the page has just been opened by an address that names the plan."""
        self.arrived = False
        """Whether the run before was one of another page, or there was none."""
        self.preset_buttons: list[PresetButton] = []
        self._alone: dict[str, Field] = {}
        """The fields outside the form that were drawn."""
        self._said: set[str] = set()
        self._in_state: set[str] = set()
        """Fields of the form that session state holds as they are."""
        self._texts_key = f"{page.prefix}:texts"
        """Where session state has the texts of the page's own fields, as the last run left them."""
        self._drawn_all = self._outdated = False
        self.errors.extend(comparison_list.take_up_link())
        with uninterrupted():  # what it takes out of session state is in its place again
            self.reading = self._read()
        self.address_texts.update(self.form.address_texts(self.reading.texts))

    def key(self, name: str) -> str:
        """Return the query parameter and widget key of the field ``name``."""
        return self.form.key(name)

    def _read(self) -> ParsedForm:
        """Return the form's texts: of each field that of its widget, else as it was left here, or on another page of
        the plan.

        Where the page has just been opened, by the address or with what the page before found, that goes before both;
        an address that names a field of the plan is a plan of its own, whose other fields are as usual.
        """
        state = st.session_state
        now: dict[str, Any] = state.to_dict()  # once: each look for a key that is not there is dear
        shared, fresh = self.form.shared, _LAST_PAGE not in now
        left: dict[str, str] = dict(now.get(self._texts_key, {}))
        left |= {name: text for name, text in now.get(PLAN_TEXTS, {}).items() if name in shared}
        self.arrived = arrived = now.get(_LAST_PAGE) != self.page.prefix
        opened: dict[str, str] = {}
        if arrived:
            state[_LAST_PAGE] = self.page.prefix
            opened = dict(state.pop(_FOUND_TEXTS, {})) if shared else {}
            opened |= (link := self._opened(now))
            self.linked = any(name in shared for name in link)
            left |= opened
        texts: dict[str, str] = {}
        for field in self.form.fields:
            key = self.key(field.id)
            if key in now:
                self._in_state.add(field.id)
            if self.linked and field.id in shared and field.id not in opened:
                continue
            if key in now and (fresh or field.id not in opened):
                texts[field.id] = widgets.text_of(field, now[key])
            elif field.id in left:
                texts[field.id] = left[field.id]
        reading = self.form.parse(texts, now.get(f"{self.page.prefix}:good"))
        state[f"{self.page.prefix}:good"] = dict(reading.texts)
        bad = {problem.field for problem in reading.problems}
        overruled = [
            # A box keeps what was typed, whatever is wrong with it; a choice holds only what it offers.
            *reading.derived,
            *(name for name in bad & texts.keys() if self.form[name].kind not in ("text", "lines")),
        ]
        texts |= {name: reading.texts[name] for name in overruled}
        cap, fields = limit("spec_chars"), self.form.fields
        self._keep({field.id: texts.get(field.id, field.default)[: max(cap, field.max_chars)] for field in fields})
        # On another page a field is another widget, which Streamlit gives what it holds only if it is told.
        for name in self._in_state if arrived else self._in_state.intersection(overruled):
            self.put(name, texts.get(name, self.form[name].default))
        return reading

    def _opened(self, now: Mapping[str, Any]) -> dict[str, str]:
        """Return by id, what the address that the page was opened with says of its fields."""
        address = {name: st.query_params.get_all(name) for name in st.query_params}
        opened, messages = self.form.from_address(address)
        if f"{self.page.prefix}:opened" not in now:
            st.session_state[f"{self.page.prefix}:opened"] = True
            self.errors.extend(messages)
        return opened

    def _keep(self, texts: Mapping[str, str]) -> None:
        """Draw the texts of all fields, those of the plan in one place for all pages."""
        shared = self.form.shared
        self._field_texts = dict(texts)
        st.session_state[self._texts_key] = {name: text for name, text in texts.items() if name not in shared}
        if shared:
            st.session_state[PLAN_TEXTS] = {name: text for name, text in texts.items() if name in shared}

    def put(self, name: str, text: str) -> None:
        """Give the form's field ``name`` a text, as a click on a preset does. Before its widget is drawn."""
        if not self._drawn_all and name not in self._alone:  # a callback's text is read by the next run
            self._field_texts[name] = text
            st.session_state[PLAN_TEXTS if name in self.form.shared else self._texts_key][name] = text
        st.session_state[self.key(name)] = self._content(name, text)

    def set_everywhere(self, name: str, texts: Mapping[str, str]) -> dict[str, str]:
        """Give each page's own field ``name`` the text that ``texts`` has for its prefix, or its default (callback).

        Returns what the pages had before, by prefix.
        """
        if name in self._field_texts:
            self.put(name, texts.get(self.page.prefix, self.form[name].default))
        before: dict[str, str] = {}
        for prefix in (page.prefix for page in PAGES):
            own = st.session_state.get(f"{prefix}:texts", {})
            before |= {prefix: own.pop(name)} if name in own else {}
            own |= {name: texts[prefix]} if prefix in texts else {}
        return before

    def _content(self, name: str, text: str) -> object:
        """Return what the widget of a field holds for a text."""
        field = self._alone.get(name) or next((field for field in self.form.fields if field.id == name), None)
        return widgets.content(field, text) if field else text

    def folded(self) -> dict[str, object]:
        """Return key → what the widget would hold, of the form's fields that are not drawn."""
        return {
            self.key(field.id): widgets.content(field, self._field_texts[field.id])
            for field in self.form.fields
            if field.id not in self.drawn
        }

    def now(self, name: str) -> str:
        """Return the text of the form's field ``name`` in a callback, where it may be newer than what this run has
        read."""
        content: object = st.session_state.get(self.key(name), _MISSING)
        return self.reading.texts[name] if content is _MISSING else widgets.text_of(self.form[name], content)

    def plan_now(self) -> dict[str, str]:
        """Return the texts of the plan in a callback, by id, with what was changed since this run."""
        texts, now = st.session_state[PLAN_TEXTS], st.session_state.to_dict()
        keys = {name: self.key(name) for name in texts}
        return texts | {
            name: widgets.text_of(self.form[name], now[key])[: limit("spec_chars")]
            for name, key in keys.items()
            if key in now
        }

    def take_all(self, texts: Mapping[str, str]) -> None:
        """Set these fields, and every other to its default, as a link does (callback)."""
        texts = {**texts, **self.form.imply(texts)}
        for field in self.form.fields:
            self.put(field.id, texts.get(field.id, field.default))
        for name, field in self._alone.items():
            self.put(name, texts.get(name, field.default))

    def draw(
        self,
        field: Field,
        *,
        label: str = "",
        placeholder: str = "",
        changed: Callable[[], None] | None = None,
        bare: bool = False,
    ) -> None:
        """Draw the widget of a field of the form. Label and placeholder are the field's unless others are given.

        changed: called when a user has changed it. bare: its label is read out, but not seen.
        """
        field, key = self.form[field.id], self.key(field.id)
        self.drawn.add(field.id)
        first: dict[str, str] = st.session_state.setdefault(_FIRST_TEXTS, {})
        if field.id not in self._in_state:
            # Not by way of session state, which a browser obeys: where a server took over from another one, what was
            # typed in the meantime stands in the browser alone.
            first[key] = self._field_texts[field.id][: field.max_chars]
        field = field.with_default(first.get(key, field.default))
        seen = "collapsed" if bare else "visible"
        content = widgets.drawn(
            field, label=label, placeholder=placeholder, key=key, on_change=changed, label_visibility=seen
        )
        if field.id not in self._in_state and widgets.text_of(field, content) != field.default:
            self._outdated = True  # the browser had more to say of it than the address

    def ask(self, field: Field, **more: Any) -> Any:
        """Draw a field outside the form, and return its value. A bad text shows an error, and the last good one still
        applies.

        more: options of its widget, such as ``format``.
        """
        key = self.key(field.id)
        self._alone[field.id] = field
        linked = None if key in st.session_state else st.query_params.get(key)
        if linked is not None and field.kind in ("choice", "segments", "slider", "switch"):
            try:
                field.parse(linked)
                if field.short:
                    st.session_state[key] = linked
            except QuantityError as problem:  # the widget will not take it up
                self.fail(problem.about(field.label), message("input.still", text=field.default))
        if field.kind == "lines":
            more["on_change"] = partial(widgets.cut, key)
        if not field.short:  # the address would have the display labels
            more["bind"] = "query-params"
        text = widgets.text_of(field, widgets.drawn(field, key=key, **more))
        if field.short and st.query_params.get(key, field.default) != text:
            st.query_params[key] = text
        if field.kind in ("text", "lines"):
            text = text[: field.max_chars + 1]
        try:
            value = field.parse(text)
            if field.parse is not as_typed:
                self.keep_good(field.id, text)
        except QuantityError as problem:
            text = self.last_good(field.id, field.default)
            value = field.parse(text)
            self.fail(problem.about(field.label), message("input.still", text=text))
        self.address_texts[key] = text
        return value

    def problems(self, *names: str) -> list[str]:
        """Return messages about these fields of the form that have not been shown yet."""
        wanted = set(names)
        new = [p for p in self.reading.problems if p.field in wanted - self._said]
        self._said |= wanted
        shared = self.form.shared  # what counts instead of these is said over the answer
        return [problem.reason if problem.field in shared else problem.message for problem in new]

    def presets(
        self,
        texts_by_preset: Mapping[str, Mapping[str, str]],
        *,
        into: DeltaGenerator,
        key: str = "presets",
        at: str = "",
        replaces: Callable[[], None] | None = None,
    ) -> str | None:
        """Return presets to click, which set fields of the form. One whose fields mean what the present ones do is
        current.

        key: of a row of its own; rows of panels, which do not begin with “presets” and are of no part, are no slides.
        at: the part of the page that they are about. replaces: called before a preset's texts are put. Fields in no
        form are drawn before this is called.
        """
        if not texts_by_preset:
            return None
        row = f"{self.page.prefix}:{key}"

        def put(preset: str) -> None:
            if replaces:
                replaces()
            for name, text in texts_by_preset[preset].items():
                self.put(name, text)

        def same(preset: str) -> bool:
            texts = texts_by_preset[preset]
            if not any(name in self._alone for name in texts):
                return self.form.means_same(self.reading, texts)
            contents = {self.key(name): self._content(name, text) for name, text in texts.items()}
            return all(st.session_state.get(key, _MISSING) == content for key, content in contents.items())

        current = next(filter(same, texts_by_preset), None)
        if at or key.startswith("presets"):
            self.preset_buttons.extend(
                PresetButton(preset, partial(put, preset), partial(same, preset), at) for preset in texts_by_preset
            )
        with into, st.container(horizontal=True, gap="xxsmall", key=f"np-presets-{row}"):
            for preset in texts_by_preset:
                # A button holds nothing. A choice that is not on screen would keep what it held, and send it again.
                kind = "primary" if preset == current else "secondary"
                st.button(preset, key=f"{row}:{preset}", type=kind, on_click=put, args=(preset,))
        return current

    def hand_on(self, texts: Mapping[str, str]) -> None:
        """Give the next page what was found: texts, by id, of the fields whose place the answer takes here."""
        st.session_state[_FOUND_TEXTS] = dict(texts)

    def finish(self) -> None:
        """End a run: remove the fields that were not drawn from session state, and write all fields to the address.

        Their values are stored in one place for the whole form. Streamlit walks through session state repeatedly, so a
        hundred hidden fields would cost more than the visible ones.
        """
        self._drawn_all = True
        for name in self._in_state - self.drawn:
            st.session_state.pop(self.key(name), None)
        # By their widgets, the address would lose what stands in a fold when it is closed.
        there, left = st.query_params.to_dict(), self._field_texts
        follow = self.form.derive(self.reading.values)
        changed = {field.id for field in self.form.fields if left[field.id] != field.default and field.id not in follow}
        changed |= self.form.imply({name: left[name] for name in changed}).keys()  # a default that has to be said
        wanted = {self.key(name): left[name] for name in changed}
        # Also what older links call a plan's fields, and a plan on a page that answers for none.
        older = (f"{self.form.prefix}_{name}" for name in self.form.shared)
        of_plan = (name for name in there if name.startswith(f"{SHARED}_"))
        for name in {*(self.key(field.id) for field in self.form.fields), *older, *of_plan}:
            if name in there and name not in wanted:
                del st.query_params[name]
        new = {name: text for name, text in wanted.items() if there.get(name) != text}
        if (
            0 < read_version({VERSION: (there.get(VERSION, ""),)}) < LINK_VERSION
        ):  # what the address says from here on is of today's version
            new |= {VERSION: str(LINK_VERSION), **comparison_list.in_link(self.page)}
        if new:
            st.query_params.update(new)
        again = f"{self.page.prefix}:again"
        second_time = st.session_state.pop(again, False)
        if self._outdated and not second_time:
            st.session_state[again] = True
            st.rerun()

    @contextmanager
    def panel(self, name: str, title: str) -> Iterator[ExpanderContainer]:
        """Draw a titled part of the page that runs only while it is open, which the address records.

        Use as ``with inputs.panel(...) as panel: if panel.open: ...``. An error in it affects only the panel.
        """
        key, of_form = self.key(name), name in self._field_texts
        self.drawn.add(name)
        if not of_form:
            self._alone[name] = switch(name, title, False)
        elif name not in self._in_state and self._field_texts[name] != self.form[name].default:
            self.put(name, self._field_texts[name])  # it was not drawn in the last run
        expander = st.expander(title, key=key, on_change="rerun", bind=None if of_form else "query-params")
        self.address_texts[key] = "true" if expander.open else "false"
        with expander, guarded(title):
            yield expander

    def keep_good(self, name: str, text: str) -> None:
        """Remember ``text`` as the field's last good value."""
        st.session_state[f"{self.key(name)}:good"] = text

    def last_good(self, name: str, default: str) -> str:
        """Return the field's last good value (or ``default``), which the permalink then carries as well."""
        text: str = st.session_state.get(f"{self.key(name)}:good", default)
        self.address_texts[self.key(name)] = text
        return text

    def fail(self, problem: str, consequence: str = "") -> None:
        """Collect a message about a bad input; `show.input_errors` shows them in one place."""
        self.errors.append(f"{problem} {consequence}".strip())

    def query(self) -> str:
        """Return the query string that spells out every field, the version, and the plans to compare."""
        fields = {PACKED: self._packed(self.reading.texts)} if self._packed else self.address_texts
        return query_of(fields | comparison_list.in_link(self.page))
