"""What can be asked, as data: a field with its bounds, and a form that reads and writes texts without any page.

A form reads a mapping of texts (an address, a saved row, a dictionary in a notebook) into values and problems, writes
values back, and translates what an older version of it wrote. A field that cannot be read keeps its last good text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import parse_qsl, urlencode

from core.limits import cached, limit
from core.messages import find_message, message, pick_message
from core.number_text import QuantityError
from core.quantities import parse_quantity
from core.suggest import suggestions
from core.units import Kind, format_quantity

_OTHERS: dict[Kind, str] = {
    "tokens": "input.is_tokens",
    "parameters": "input.is_parameters",
    "seconds": "input.is_time",
    "usd": "input.is_money",
    "bytes": "input.is_bytes",
}
"""Kind → the message that a text is of it."""

_SURELY_OTHER = ("tokens", "parameters", "seconds")
"""Kinds whose numbers are never offered: 8T tokens are no 8T parameters."""

_COUNTED: dict[Kind, str] = {"parameters": "[kmbt]", "tokens": "[kmbt]", "accelerators": "k?", "length": "[km]?"}
"""Kind → the letter with which its numbers are written."""

_OTHER_THINGS = re.compile(r"node|rack|pod|-\s*A?\d", re.IGNORECASE)


def nearest(text: str, kind: Kind) -> str:
    """Return one or two sentences about a ``text`` that is not of ``kind``, such as a count; empty if there is nothing
    to say."""
    if kind not in _COUNTED or _is(text, kind):
        return ""
    other = next(filter(lambda one: _is(text, one), _OTHERS), None)
    found = re.match(rf"\$?\s*(\d[\d.,' ]*{_COUNTED[kind]})(?!\d)", text.strip(), re.IGNORECASE)
    meant = found[1].replace(" ", "").upper() if found else ""
    near = _is(meant, kind) and other not in _SURELY_OTHER and not _OTHER_THINGS.search(text)
    said = message(_OTHERS[other]) if other else ""
    return " ".join(filter(None, (said, message("input.likely", likely=meant) if near else "")))


def _is(text: str, kind: Kind) -> bool:
    with suppress(QuantityError):
        parse_quantity(text, kind)
        return True
    return False


FieldKind: TypeAlias = Literal["text", "lines", "choice", "segments", "switch", "slider"]
"""How a field is filled in: typed, typed over several lines, one of many, one of a few, on or off, a whole number."""

SHARED = "p"
"""The prefix of the fields that several pages share: the current plan."""

VERSION = "v"
"""The name under which texts carry the version of their form."""

LINK_VERSION = 5
"""Of what the fields of every page mean; raised when one changes its meaning, and the older texts are translated.

In version 1 cost was a question of its own, and an MFU typed on Home or Compute budget was always of all hours. In
version 2 model states were spread in one of four ways, and a layout of the step was not asked for. In version 3 the
power drawn was that of the accelerators alone, no memory had to stay free, the k of a length was 1,000, and a batch
without a unit was one of sequences. In version 4 that k was 1,000 in lengths of examples, served contexts, and measured
layers, and a custom shape was never empty."""

_LISTED = 8
"""A message lists up to this many of a field's options."""

CATALOG = ""
"""In place of a label: the words of the field are entries of the message catalog."""

_WORDS: Mapping[str, str] = {"label": "", "help": ".help", "placeholder": ".empty"}
"""A word of a field → how its id in the catalog ends."""

_UNREAD = object()
"""Stands for a text that was not read yet."""

_UNSET = ("", "false")
"""Texts of an empty field and of a switch that was off."""


@dataclass(frozen=True)
class Field:
    """One thing that can be asked.

    id: short and stable, unique in its form; links and rows carry it. label: `CATALOG` where label, help, placeholder,
    and the names of options that are not given are ``field.<id>``, ``field.<id>.help``, ``field.<id>.empty``, and
    ``field.<id>=<option>`` of the catalog, which is read when one of them is first shown. default: a text that
    ``parse`` takes. parse: text → value, raising `QuantityError` with rule and example. part: the part of a form that
    it belongs to, such as a panel. low, high: of a slider. omit_if_empty: links leave it out while it is empty. short:
    the options as a menu names them, where that is not as they are called.
    """

    id: str
    label: str = field(compare=False)
    default: str
    parse: Callable[[str], Any]
    kind: FieldKind = "text"
    options: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    part: str = ""
    help: str = field(default_factory=str, compare=False)
    placeholder: str = field(default_factory=str, compare=False)
    max_chars: int = 64
    omit_if_empty: bool = False
    short: tuple[str, ...] = field(default_factory=tuple[str, ...], compare=False)

    def __post_init__(self) -> None:
        if self.label == CATALOG:
            for name in ("label", "help", "placeholder", "short"):
                if not getattr(self, name):
                    object.__delattr__(self, name)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Read a word that was left to the catalog, once."""
            if name == "short":
                found = tuple(find_message(f"field.{self.id}={option}") or option for option in self.options)
            elif name in _WORDS:
                found = find_message(f"field.{self.id}{_WORDS[name]}") or ""
            else:
                raise AttributeError(name)
            object.__setattr__(self, name, found)
            return found

    def with_default(self, default: str) -> Field:
        """Return the same field beginning with another text."""
        return replace(self, default=default)


def quantity(
    id: str,
    label: str,
    default: str,
    kind: Kind,
    *,
    low: float = 0.0,
    high: float = float("inf"),
    whole: bool = False,
    bare_from: float = 0.0,
    part: str = "",
    help: str = "",
) -> Field:
    """Return a field for a quantity such as 70B, 1.5T, or 40%.

    whole: whether it is a whole number. bare_from: a smaller number without a letter lacks the letter of the default.
    """
    letter = default.lstrip("0123456789.")

    def read(text: str) -> float:
        try:
            value = parse_quantity(text, kind, low=low, high=high, whole=whole, example=default)
        except QuantityError as wrong:
            if not (meant := nearest(text, kind) if len(text) <= limit("number_chars") else ""):
                raise
            raise QuantityError(f"{wrong} {meant}") from None
        typed = text.strip()
        if value < bare_from and typed.isdecimal():
            plain = format_quantity(value, kind)
            likely = f"{typed}{letter}"
            raise QuantityError(message("input.bare", entered=typed, plain=plain, likely=likely))
        return value

    return Field(id, label, default, read, part=part, help=help, max_chars=limit("number_chars"))


def optional(
    id: str,
    label: str,
    read: Callable[[str], Any],
    *,
    nothing: Any,
    placeholder: str = "",
    part: str = "",
    help: str = "",
    omit_if_empty: bool = False,
) -> Field:
    """Return a field that may stay empty and then has the value ``nothing``."""

    def take(text: str) -> Any:
        return read(text) if text.strip() else nothing

    chars = limit("number_chars")
    return Field(
        id, label, "", take, part=part, help=help, placeholder=placeholder, max_chars=chars, omit_if_empty=omit_if_empty
    )


def as_typed(text: str) -> str:
    """Return the text as entered. Its meaning is read where it is used."""
    return text


def text(
    id: str, label: str, default: str, *, max_chars: int, lines: bool = False, placeholder: str = "", help: str = ""
) -> Field:
    """Return a field for any text, of one line or of several."""
    kind = "lines" if lines else "text"
    return Field(id, label, default, as_typed, kind, help=help, placeholder=placeholder, max_chars=max_chars)


def choice(
    id: str,
    label: str,
    options: Sequence[str],
    default: str,
    *,
    few: bool = False,
    why_not: Callable[[str], str] | None = None,
    short: Sequence[str] = (),
    part: str = "",
    help: str = "",
) -> Field:
    """Return a field for one of ``options``, which are also its labels unless ``short`` has others.

    few: whether all options are shown side by side. why_not: returns why a text is not an option; empty for no reason.
    """
    names = tuple(options)

    def read(text: str) -> str:
        if text in names:
            return text
        typed = text[: limit("number_chars")]
        reason, near = why_not(typed) if why_not else "", suggestions(typed, names)
        listed = "input.option_few" if len(names) <= _LISTED else "input.option_many"
        why = "input.option_reason" if reason else "input.option_near" if near else listed
        entered, count = clipped(text), float(len(names))
        raise QuantityError(pick_message(why, entered=entered, reason=reason, near=near, options=names, count=count))

    return Field(
        id, label, default, read, "segments" if few else "choice", names, short=tuple(short), part=part, help=help
    )


def switch(id: str, label: str, default: bool, *, part: str = "", help: str = "") -> Field:
    """Return a field that is on or off."""

    def read(text: str) -> bool:
        if text not in ("true", "false"):
            raise QuantityError(message("input.switch", entered=clipped(text)))
        return text == "true"

    return Field(id, label, "true" if default else "false", read, "switch", part=part, help=help)


def slider(id: str, label: str, low: int, high: int, default: int, *, part: str = "", help: str = "") -> Field:
    """Return a field for a whole number from ``low`` to ``high``."""

    def read(text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and low <= int(text) <= high):
            raise QuantityError(message("input.slider", entered=clipped(text), low=float(low), high=float(high)))
        return int(text)

    return Field(id, label, str(default), read, "slider", (), low, high, part, help)


@dataclass(frozen=True, slots=True)
class Problem:
    """A text that could not be read: the field's id, what is wrong, and which text counts instead."""

    field: str
    reason: str
    used: str

    @property
    def message(self) -> str:
        """What is wrong, and what counts instead."""
        used = message("input.still", text=self.used) if self.used else message("input.taken_as_empty")
        return f"{self.reason} {used}"


@dataclass(frozen=True, slots=True)
class ParsedForm:
    """Values and texts of a form: for every field the value and text that apply, and the problems with the texts given.

    derived: ids of fields whose text follows from another field and differs from the text given.
    """

    values: Mapping[str, Any]
    texts: Mapping[str, str]
    problems: tuple[Problem, ...]
    derived: tuple[str, ...] = ()


@dataclass(frozen=True)
class Form:
    """Fields with a version.

    prefix: prefix of their names in an address, short and never reused. older: version → how texts of that version (by
    id) read in the next one; 0 is for addresses without a version, which may contain retired names. derive: values →
    texts of fields that follow from others. imply: texts by id → texts that they imply in links and rows that are older
    than a field. shared: ids of fields that are the same on every page that has them, such as those of a plan. An
    address has them under `SHARED`; older ones have them under the form's own prefix, which is still read. gone:
    retired fields that are dropped without a message: ids, or ids with their default text (``id=text``). Empty fields
    and switches that were off are dropped in any case. dropped: texts of an older form → what it says of those.
    """

    prefix: str
    fields: tuple[Field, ...]
    version: int = LINK_VERSION
    older: Mapping[int, Callable[[dict[str, str]], dict[str, str]]] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]
    derive: Callable[[Mapping[str, Any]], Mapping[str, str]] = lambda _: {}
    imply: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda _: {}
    shared: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    dropped: Callable[[Mapping[str, str]], str] = lambda _: ""
    _read: dict[tuple[str, str], Any] = field(default_factory=dict, init=False, compare=False, repr=False)  # pyright: ignore[reportUnknownVariableType]

    def __post_init__(self) -> None:
        if len({item.id for item in self.fields}) < len(self.fields):
            raise ValueError(f"two fields of form {self.prefix} have one id")

    def __getitem__(self, id: str) -> Field:
        result = next((item for item in self.fields if item.id == id), None)
        if result is None:
            raise KeyError(id)
        return result

    def key(self, id: str) -> str:
        """Return the name of a field in an address."""
        return f"{SHARED if id in self.shared else self.prefix}_{id}"

    def part(self, name: str) -> tuple[Field, ...]:
        """Return the fields of one part."""
        return tuple(item for item in self.fields if item.part == name)

    def parse(self, texts: Mapping[str, str], good: Mapping[str, str] | None = None) -> ParsedForm:
        """Return the values of ``texts`` by id.

        A field without a text has its default. A field with a bad text has its text from ``good``, or its default.
        """
        values: dict[str, Any] = {}
        used_texts: dict[str, str] = {}
        problems: list[Problem] = []
        texts = {**texts, **self.imply(texts)}
        for item in self.fields:
            text = texts.get(item.id, item.default)
            try:
                values[item.id] = self._value(item, text)
            except QuantityError as wrong:
                text = (good or {}).get(item.id, item.default)
                values[item.id] = self._value(item, text)
                problems.append(Problem(item.id, wrong.about(item.label), text))
            used_texts[item.id] = text
        other = {name: text for name, text in self.derive(values).items() if text != used_texts[name]}
        values |= {name: self._value(self[name], text) for name, text in other.items()}
        return ParsedForm(values, used_texts | other, tuple(problems), tuple(other))

    def change(self, reading: ParsedForm, texts: Mapping[str, str]) -> ParsedForm:
        """Return ``reading`` with a few of its texts replaced, the others not parsed again. Raises `QuantityError`."""
        values = {**reading.values, **{name: self._value(self[name], text) for name, text in texts.items()}}
        changed = {**reading.texts, **texts}
        other = {name: text for name, text in self.derive(values).items() if text != changed[name]}
        values |= {name: self._value(self[name], text) for name, text in other.items()}
        return replace(reading, values=values, texts=changed | other, derived=(*reading.derived, *other))

    def means_same(self, reading: ParsedForm, texts: Mapping[str, str]) -> bool:
        """Return whether ``texts`` by id, each of which can be read, mean what ``reading`` has: 1024 is 1,024."""
        return all(
            text == reading.texts[name] or self._value(self[name], text) == reading.values[name]
            for name, text in texts.items()
        )

    def _value(self, item: Field, text: str) -> Any:
        """Return what ``text`` says: all of a form's texts but one are those of its last reading."""
        key = (item.id, text)
        value = self._read.get(key, _UNREAD)
        if value is _UNREAD:
            if item.kind == "text" and len(text) > item.max_chars:
                raise QuantityError(message("input.too_long", length=float(len(text)), most=float(item.max_chars)))
            value = item.parse(text)
            if len(self._read) >= limit("readings_kept"):
                self._read.clear()
            if len(text) <= limit("spec_chars"):
                self._read[key] = value
        return value

    def write(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return every field with its text and the version, under the names of an address."""
        return {
            VERSION: str(self.version),
            **self.address_texts({item.id: item.default for item in self.fields} | {**texts, **self.imply(texts)}),
        }

    def address_texts(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the texts of this form's fields under the names of an address, but for those omitted if empty."""
        return {self.key(item.id): texts[item.id] for item in self.fields if texts[item.id] or not item.omit_if_empty}

    def unknown(self, texts: Mapping[str, str]) -> list[str]:
        """Return the ids in ``texts`` that no field has, without retired fields whose text had no effect."""
        ids = set(texts) - {item.id for item in self.fields} - self.gone
        return sorted(name for name in ids if texts[name] not in _UNSET and f"{name}={texts[name]}" not in self.gone)

    def from_address(self, address: Mapping[str, Sequence[str]]) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return what an address says about this form's fields, by id, and messages about the address itself.

        address: every name with all its texts. Fields of other forms are ignored. If a field of this form appears
        twice, the last text counts, as in browsers. Unknown fields are named, and texts of an older version are
        translated.
        """
        sentences: list[str] = []
        texts: dict[str, str] = {}
        named: dict[str, str] = {}
        for name, values in sorted(address.items(), key=lambda item: item[0].startswith(f"{SHARED}_")):
            prefix, _, field_id = name.partition("_")
            if values and (prefix == self.prefix or (self.shared and prefix == SHARED)):
                texts[field_id], named[field_id] = values[-1], name
                if len(values) > 1:
                    sentences.append(message("input.link_twice", name=clipped(name), times=float(len(values))))
        version = read_version(address)
        if version > self.version:
            sentences.append(newer(version))
        for step in range(version, self.version) if version else (0,):
            if step in self.older:
                texts = self.older[step](texts)
        sentences += filter(None, [self.dropped(texts)])
        texts |= self.imply(texts)
        known_ids = {item.id for item in self.fields}
        unknown = self.unknown(texts)
        if unknown and self.fields and version <= self.version:
            names = [clipped(named.get(name, self.key(name))) for name in unknown[:_LISTED]]
            sentences.append(message("input.link_unknown", names=names))
        return {name: text for name, text in texts.items() if name in known_ids}, tuple(sentences)


def with_decimal_lengths(texts: Mapping[str, str], ids: Iterable[str]) -> dict[str, str]:
    """Return older ``texts`` by id, in which the k of the lengths ``ids`` was 1,000, in full digits."""
    full = dict(texts)
    for name in ids:
        if full.get(name, "")[-1:].isalpha():
            with suppress(QuantityError):
                full[name] = f"{parse_quantity(full[name], 'count'):,.0f}"
    return full


def newer(version: int) -> str:
    """Return the message that a newer version made a link."""
    return message("input.link_newer", version=version, most=float(LINK_VERSION))


def read_version(address: Mapping[str, Sequence[str]]) -> int:
    """Return the version that an address names; 0 if it names none, as a typed one does not."""
    text = (address.get(VERSION) or ("",))[-1]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def query_of(fields: Mapping[str, str]) -> str:
    """Return the query string of these fields and the version."""
    return "&".join(_pair(name, text) for name, text in {VERSION: str(LINK_VERSION), **fields}.items())


def _pair(name: str, text: str) -> str:
    """Return one field of a query string. Links spell out fifty, of which a rerun changes one."""
    return (_short_pair if len(text) <= limit("spec_chars") else _short_pair.__wrapped__)(name, text)


@cached("texts_kept")
def _short_pair(name: str, text: str) -> str:
    return urlencode({name: text})


def clipped(text: str) -> str:
    """Return ``text``, or its beginning and how long it is."""
    return text if len(text) <= 40 else f"{text[:30]}… ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class Link:
    """The page (by id) that shows something, and the inputs (field name → text) that set it up there.

    at: the panel or other part that holds the evidence; empty if the answer itself does.
    """

    page: str
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    at: str = ""


def read_link(text: str) -> Link:
    """Return a link of a data table: ``page?field=text&field=text#part``, escaped as an address."""
    there, _, at = text.partition("#")
    page, _, fields = there.partition("?")
    return Link(page, dict(parse_qsl(fields, keep_blank_values=True)), at)
