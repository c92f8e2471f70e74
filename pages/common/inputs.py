"""Inputs whose state is the URL: every field is bound to a query parameter by a short stable id.

Streamlit leaves a field that equals its default out of the URL; the permalink spells all of them out, with a
version, so that a link opens to the same picture after a default has changed.

A page with a form reads all of its fields before it draws any: what stands in a closed panel counts like the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

from core.fields import Field, Form, ParsedForm, clipped, query_of, quoted
from core.limits import limit
from core.suggest import suggestions
from core.units import Kind, QuantityError, format_quantity, parse_quantity
from pages.common import comparison_list
from pages.common.guard import guarded
from pages.common.projector_switch import Chip
from pages.common.registry import PageSpec

_MISSING = object()
_LAST_PAGE = "inputs:last"
"""Where session state has the prefix of the page that was drawn last: who comes from another one may have a link."""


class Inputs:
    """The inputs of one page in one run. Collects every field so that the permalink can name them all.

    form: what the page asks, read at once; pages without one read each field where they draw it.
    """

    def __init__(self, page: PageSpec, form: Form | None = None) -> None:
        self.page = page
        self.form = form or Form(page.prefix, ())
        self.fields: dict[str, str] = {}
        self.errors: list[str] = []
        self.drawn: set[str] = set()
        self.chips: list[Chip] = []
        self._alone: dict[str, tuple[object, Callable[[str], object]]] = {}
        """The fields outside a form: what each holds at first, and what it holds for a text of a link."""
        self._said: set[str] = set()
        self._in_state: set[str] = set()
        """Fields of the form that session state holds as they are."""
        self._texts_key = f"{page.prefix}:texts"
        """Where session state has the texts of all fields of the form, as the last run left them."""
        self._drawn_all = False
        self.errors.extend(comparison_list.opened())
        self.reading = self._read()
        self.fields.update(self.form.address_texts(self.reading.texts))

    def key(self, name: str) -> str:
        """The query parameter and widget key of the field ``name``."""
        return f"{self.page.prefix}_{name}"

    # ------------------------------------------------------------------------------ a form

    def _read(self) -> ParsedForm:
        """The form's texts from its widgets, or from the link that opened the page, or as they were left."""
        state = st.session_state
        now: dict[str, Any] = state.to_dict()  # once: each look for a key that is not there is dear
        arrived = now.get(_LAST_PAGE) != self.page.prefix
        opened: dict[str, str] = {}
        if arrived:
            state[_LAST_PAGE] = self.page.prefix
        if f"{self.page.prefix}:opened" not in now:
            state[f"{self.page.prefix}:opened"] = True
            address = {name: st.query_params.get_all(name) for name in st.query_params}
            opened, messages = self.form.from_address(address)
            self.errors.extend(messages)
        there = st.query_params.to_dict() | {self.key(name): text for name, text in opened.items()} if arrived else {}
        left: dict[str, str] = now.get(self._texts_key, {})
        texts: dict[str, str] = {}
        for field in self.form.fields:
            key = self.key(field.id)
            if key in now:
                self._in_state.add(field.id)
                texts[field.id] = _text(now[key], field)
            elif key in there:
                texts[field.id] = there[key]
            elif field.id in left:
                texts[field.id] = left[field.id]
        reading = self.form.parse(texts, now.get(f"{self.page.prefix}:good"))
        state[f"{self.page.prefix}:good"] = dict(reading.texts)
        bad = {problem.field for problem in reading.problems}
        for name in {*reading.derived, *(bad & texts.keys())}:
            # A box keeps what was typed, whatever is wrong with it; a choice holds only what it offers.
            if name in reading.derived or self.form[name].kind not in ("text", "lines"):
                texts[name] = reading.texts[name]
                self._in_state.discard(name)
        state[self._texts_key] = {
            field.id: texts.get(field.id, field.default)[: limit("spec_chars")] for field in self.form.fields
        }
        return reading

    def put(self, name: str, text: str) -> None:
        """Give the form's field ``name`` a text, as a click on a chip does. Before its widget is drawn."""
        field = self.form[name]
        if not self._drawn_all:  # what a callback puts, the next run reads from session state
            st.session_state[self._texts_key][name] = text
        st.session_state[self.key(name)] = _widget_value(field, text)

    def folded(self) -> dict[str, object]:
        """Key → what the widget would hold, of the form's fields that are not drawn."""
        left: dict[str, str] = st.session_state[self._texts_key]
        return {
            self.key(field.id): _widget_value(field, left[field.id])
            for field in self.form.fields
            if field.id not in self.drawn
        }

    def now(self, name: str) -> str:
        """The text of the form's field ``name`` in a callback, where it may be newer than what this run has read."""
        content: object = st.session_state.get(self.key(name), _MISSING)
        return self.reading.texts[name] if content is _MISSING else _text(content, self.form[name])

    def take(self, texts: Mapping[str, str]) -> None:
        """In a callback: these fields, and of every other its default, as a link opens them."""
        for field in self.form.fields:
            self.put(field.id, texts.get(field.id, field.default))
        for name, (first, read) in self._alone.items():
            st.session_state[self.key(name)] = read(texts[name]) if name in texts else first

    def draw(
        self, field: Field, *, label: str = "", placeholder: str = "", changed: Callable[[], None] | None = None
    ) -> None:
        """The widget of a field of the form. Label and placeholder are the field's unless others are given.

        changed: called when a visitor has changed it.
        """
        key, named = self.key(field.id), label or field.label
        field = self.form[field.id]
        self.drawn.add(field.id)
        self._restore(field)
        same: dict[str, Any] = {"key": key, "help": field.help or None, "on_change": changed}
        if field.kind == "choice":
            st.selectbox(named, field.options, index=field.options.index(field.default), **same)
        elif field.kind == "segments":
            st.segmented_control(named, field.options, default=field.default, required=True, **same)
        elif field.kind == "switch":
            st.toggle(named, value=field.default == "true", **same)
        elif field.kind == "slider":
            st.slider(named, field.low, field.high, int(field.default), **same)
        else:
            st.text_input(
                named,
                value=field.default,
                max_chars=field.max_chars,
                placeholder=placeholder or field.placeholder or None,
                **same,
            )

    def _restore(self, field: Field) -> None:
        """Give a widget that was not drawn in the last run what its field holds."""
        text: str = st.session_state[self._texts_key][field.id]
        if field.id not in self._in_state and text != field.default:
            self.put(field.id, text[: field.max_chars])

    def unsaid(self) -> list[str]:
        """Messages about fields whose messages have not been said yet, such as those folded away."""
        return self.problems(*(problem.field for problem in self.reading.problems))

    def problems(self, *names: str) -> list[str]:
        """Messages about these fields of the form that have not been said yet."""
        wanted = set(names)
        new = [p for p in self.reading.problems if p.field in wanted - self._said]
        self._said |= wanted
        return [problem.message for problem in new]

    def parsed_value(self, field: Field, label: str, text: str) -> None:
        """The answer in the place of the field that it answers."""
        key = self.key(f"{field.id}_found")
        st.session_state[key] = text
        st.text_input(label, key=key, disabled=True)

    def presets_row(
        self,
        label: str,
        stories: Mapping[str, Mapping[str, str]],
        *,
        into: DeltaGenerator,
        key: str = "story",
        at: str = "",
        replaces: Callable[[Mapping[str, str]], None] | None = None,
    ) -> str | None:
        """One-click chips; each sets fields of the form. The chip whose fields mean what the present ones do is lit.

        at: the part of the page that they are about. replaces: called before a chip's texts are put, with those of
        all fields that any chip sets.
        """
        widget = f"{self.page.prefix}:{key}"

        def put(story: str) -> None:
            texts = stories.get(story, {})
            if replaces and texts:
                replaces({name: self.now(name) for texts in stories.values() for name in texts})
            for name, text in texts.items():
                self.put(name, text)

        def same(story: str) -> bool:
            return self.form.means_same(self.reading, stories[story])

        lit = next(filter(same, stories), None)
        self._chips(stories, put, same, at)
        st.session_state[widget] = lit
        into.pills(
            label,
            list(stories),
            key=widget,
            on_change=lambda: put(st.session_state.get(widget, "")),
            label_visibility="collapsed",
        )
        return lit

    def _chips(
        self, stories: Mapping[str, Any], put: Callable[[str], None], lit: Callable[[str], bool], at: str = ""
    ) -> None:
        """Remember the chips, which are slides of the page on a projector."""
        self.chips.extend(Chip(story, partial(put, story), partial(lit, story), at) for story in stories)

    def leave(self) -> None:
        """At the end of a run: fields that were not drawn leave session state, and the address carries all of them.

        What they hold stands in field place for the whole form. Streamlit goes through all of session state again and
        again, so that a hundred fields there that nobody sees would cost more than those that are drawn.
        """
        self._drawn_all = True
        for name in self._in_state - self.drawn:
            st.session_state.pop(self.key(name), None)
        # By their widgets, the address would lose what stands in a fold when it is closed.
        there, left = st.query_params.to_dict(), st.session_state[self._texts_key]
        follow = self.form.derive(self.reading.values)
        wanted = {
            self.key(field.id): left[field.id]
            for field in self.form.fields
            if left[field.id] != field.default and field.id not in follow
        }
        for field in self.form.fields:
            if (name := self.key(field.id)) in there and name not in wanted:
                del st.query_params[name]
        if new := {name: text for name, text in wanted.items() if there.get(name) != text}:
            st.query_params.update(new)

    # ------------------------------------------------------------------------------ fields one by one

    def _stands_alone(self, name: str, first: object, read: Callable[[str], object] = str) -> str:
        """The key of a field outside a form, of which `take` knows from then on what it holds."""
        self._alone[name] = (first, read)
        return self.key(name)

    def quantity(
        self,
        name: str,
        label: str,
        default: str,
        kind: Kind,
        *,
        low: float = 0.0,
        high: float = float("inf"),
        whole: bool = False,
        help: str | None = None,
    ) -> float:
        """A typed quantity (70B, 1.5T, 40%). A bad one shows why, and the last good value stays in force.

        whole: refuse fractions, for things that come one by one such as accelerators.
        """
        key = self._stands_alone(name, default)
        text = st.text_input(
            label, value=default, key=key, max_chars=limit("number_chars"), help=help, bind="query-params"
        )
        good_key = f"{key}:good"
        try:
            value = parse_quantity(text or "", kind, low=low, high=high, whole=whole, example=default)
            st.session_state[good_key] = text
        except QuantityError as problem:
            text = st.session_state.get(good_key, default)
            value = parse_quantity(text, kind, low=low, high=high)
            self.fail(problem.about(label), f"Still using {format_quantity(value, kind)}.")
        self.fields[key] = text or ""
        return value

    def choice(
        self,
        name: str,
        label: str,
        options: Sequence[str],
        default: str,
        *,
        help: str | None = None,
        segmented: bool = False,
        labels: Mapping[str, str] | None = None,
        why_not: Callable[[str], str] | None = None,
    ) -> str:
        """One of ``options``, which double as ids in the URL; ``segmented`` shows them side by side.

        why_not: what there is to say about a linked name that is no option; empty where nothing is.

        The URL carries what ``labels`` shows, so give labels only to options whose label is itself stable.
        """
        by_name = {option: option for option in options} | dict(labels or {})
        key = self._stands_alone(name, default, lambda text: _option(by_name, text, default))
        linked = self._linked(key)
        if linked is not None and linked not in by_name.values():
            names = list(by_name.values())
            text = linked[: limit("number_chars")]
            close = suggestions(text, names)
            meant = why_not(text) if why_not else ""
            if close and not meant:
                meant = f"Did you mean {' or '.join(close)}?"
            some = f"one of its {len(names)} choices" if meant else f"one of {quoted(names)}"
            self.fail(
                f"{label}: the link says “{clipped(linked)}”, which is not {some}. {meant}".rstrip(),
                f"Using {by_name[default]}.",
            )
        if segmented:
            value = st.segmented_control(
                label,
                options,
                default=default,
                required=True,
                key=key,
                help=help,
                format_func=by_name.__getitem__,
                bind="query-params",
            )
        else:
            value = st.selectbox(
                label,
                options,
                index=list(options).index(default),
                key=key,
                help=help,
                format_func=by_name.__getitem__,
                bind="query-params",
            )
        value = value if value in options else default
        self.fields[key] = by_name[value]
        return value

    def slider(self, name: str, label: str, low: int, high: int, default: int, *, shown: str | None = None) -> int:
        """A whole number from ``low`` to ``high``; ``shown``: how it is written, such as ``2^%d``."""
        key = self._stands_alone(name, default, int)
        linked = self._linked(key)
        whole = linked is not None and re.fullmatch(r"-?\d{1,9}", linked, re.ASCII)
        if linked is not None and not (whole and low <= int(linked) <= high):
            self.fail(
                f"{label}: the link says “{clipped(linked)}”, which is not a whole number from {low} to {high}.",
                f"Using {default}.",
            )
        value = int(st.slider(label, low, high, default, format=shown, key=key, bind="query-params"))
        self.fields[key] = str(value)
        return value

    def _linked(self, key: str) -> str | None:
        """What the link that opened the page says about a field, before its widget has taken it up."""
        return None if key in st.session_state else st.query_params.get(key)

    def toggle(self, name: str, label: str, default: bool, *, help: str | None = None) -> bool:
        """A switch."""
        key = self._stands_alone(name, default, _on)
        value = st.toggle(label, value=default, key=key, help=help, bind="query-params")
        self.fields[key] = "true" if value else "false"
        return value

    def text(
        self,
        name: str,
        label: str,
        default: str,
        *,
        max_chars: int,
        help: str | None = None,
        placeholder: str | None = None,
    ) -> str:
        """Raw text, capped in length. The page validates it in core and calls `keep` or `last_good`."""
        key = self._stands_alone(name, default)
        value = st.text_input(
            label,
            value=default,
            key=key,
            max_chars=max_chars,
            help=help,
            placeholder=placeholder,
            bind="query-params",
        )
        text = (value or "")[: max_chars + 1]
        self.fields[key] = text
        return text

    def lines(self, name: str, label: str, default: str, *, max_chars: int, help: str | None = None) -> str:
        """Text of several lines, such as code, in a box as high as it; otherwise like `text`.

        The box takes text of any length, because one with a cap drops a longer paste without a word; what is longer
        than ``max_chars`` comes back, so that the reader in core refuses it and says how long it is.
        """
        key = self._stands_alone(name, default)

        def cut() -> None:
            st.session_state[key] = (st.session_state[key] or "")[: limit("pasted_chars")]

        value = st.text_area(
            label, value=default, key=key, help=help, height="content", on_change=cut, bind="query-params"
        )
        text = value or ""
        self.fields[key] = text[: max_chars + 1]
        return text

    @contextmanager
    def panel(self, name: str, title: str) -> Iterator[ExpanderContainer]:
        """A titled part of the page that runs only while open; whether it is, is part of the address.

        Use as ``with inputs.panel(...) as panel: if panel.open: ...``. What raises in it takes only the panel.
        """
        key = self._stands_alone(name, False, _on)
        self.drawn.add(name)
        field = next((field for field in self.form.fields if field.id == name), None)
        if field:
            self._restore(field)
        expander = st.expander(title, key=key, on_change="rerun", bind=None if field else "query-params")
        self.fields[key] = "true" if expander.open else "false"
        with expander, guarded(title):
            yield expander

    def keep(self, name: str, text: str) -> None:
        """Remember ``text`` as the field's last good value."""
        st.session_state[f"{self.key(name)}:good"] = text

    def last_good(self, name: str, default: str) -> str:
        """The field's last good value (or ``default``), which the permalink then carries as well."""
        text: str = st.session_state.get(f"{self.key(name)}:good", default)
        self.fields[self.key(name)] = text
        return text

    def fail(self, problem: str, consequence: str = "") -> None:
        """Collect a message about a bad input; `show_errors` prints them in one place."""
        self.errors.append(f"{problem} {consequence}".strip())

    def presets(
        self,
        label: str,
        stories: Mapping[str, Mapping[str, object]],
        *,
        into: DeltaGenerator,
        key: str = "story",
    ) -> str | None:
        """One-click chips; each sets several fields. The chip whose fields match the present ones is lit.

        stories: chip → field name → value as the field's widget holds it (the option's id for a choice).
        into: a container made where the chips shall stand. Call this after all the fields' widgets, because
        only then does session state hold what the URL said. Returns the lit chip.
        """
        widget = f"{self.page.prefix}:{key}"

        def put(story: str) -> None:
            for name, value in stories.get(story, {}).items():
                st.session_state[self.key(name)] = value

        def same(story: str) -> bool:
            return all(st.session_state.get(self.key(name)) == value for name, value in stories[story].items())

        lit = next(filter(same, stories), None)
        if key.startswith("story"):  # others are those of a panel
            self._chips(stories, put, same)
        st.session_state[widget] = lit
        into.pills(
            label,
            list(stories),
            key=widget,
            on_change=lambda: put(st.session_state.get(widget, "")),
            label_visibility="collapsed",
        )
        return lit

    def query(self) -> str:
        """The query string that spells out every field, the version, and the plans to compare."""
        return query_of(self.fields | comparison_list.in_link(self.page))


def _on(text: str) -> bool:
    return text == "true"


def _option(by_name: Mapping[str, str], text: str, default: str) -> str:
    """The option that a link names by what it is ``by_name`` as."""
    return next((option for option, label in by_name.items() if label == text), default)


def _widget_value(field: Field, text: str) -> object:
    """What the widget of a field holds for a text."""
    if field.kind == "slider":
        return field.parse(text)
    return text == "true" if field.kind == "switch" else text


def _text(value: object, field: Field) -> str:
    """What a widget holds, as the text of its field."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return field.default if value is None else str(value)
